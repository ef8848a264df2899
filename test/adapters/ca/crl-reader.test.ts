// Reading CRLs for a restore: what an issuer of the store has signed, and nothing else, whatever is done to the bytes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authorityKeyIdentifier } from '../../../src/adapters/ca/profiles.ts';
import { crlToBeSigned, encodeEntry } from '../../../src/adapters/ca/status/crl.ts';
import { CrlRejected, readCrl } from '../../../src/adapters/ca/status/crl-reader.ts';
import { statusSigners } from '../../../src/adapters/ca/status/signers.ts';
import { extension } from '../../../src/adapters/ca/to-be-signed.ts';
import { explicit, integer, oid, raw, sequence, time } from '../../../src/adapters/der/writer.ts';
import { ISSUER_KEY_TYPES } from '../../../src/domain/certificate/authority.ts';
import type { CrlEntry } from '../../../src/domain/revocation/ports.ts';
import { startApp } from '../../support/app.ts';

const app = await startApp();
const issuers = await app.app.store.issuers.list();
const listed = await app.app.store.issuers.listPublic();
const signers = statusSigners(() => issuers, ISSUER_KEY_TYPES)();
await app.stop();
const at = Date.UTC(2027, 0, 31);
const ENTRIES: readonly CrlEntry[] = [
  { serial: `40${'0'.repeat(28)}05`, reason: 'key_compromise', revokedAt: at - 1_000 },
  { serial: `41${'0'.repeat(28)}05`, reason: 'superseded', revokedAt: at - 2_000 },
];

const signersOf = (role: 'root' | 'issuing') => [...signers.values()].filter((one) => one.isRoot === (role === 'root'));

for (const signer of [...signersOf('issuing'), ...signersOf('root')]) {
  const address = `http://pki.example/crl/${signer.id}/5.crl`;
  const content = {
    ...{ algorithm: signer.algorithm, issuer: signer.name, issuerKeyId: signer.keyId },
    ...{ number: at + 7, thisUpdate: at, nextUpdate: at + 1_000, addresses: signer.isRoot ? [] : [address] },
    entries: Buffer.concat(ENTRIES.map(encodeEntry)),
  };
  const der = await signer.signed(crlToBeSigned(content));
  const name = `${signer.isRoot ? 'root' : 'issuing'} ${signer.keyType}`;

  test(`${name}: a CRL is read as it was written, from DER and from PEM`, () => {
    const pem = `-----BEGIN X509 CRL-----\n${Buffer.from(der).toString('base64')}\n-----END X509 CRL-----\n`;
    for (const bytes of [der, Buffer.from(pem)]) {
      const { entries, issuerNotAfter, der: read, ...head } = readCrl(bytes, listed);
      const shard = signer.isRoot ? 0 : 5;
      assert.deepEqual(head, {
        ...{ issuerId: signer.id, shard, number: at + 7, thisUpdate: at, nextUpdate: at + 1_000 },
        addresses: content.addresses,
      });
      assert.deepEqual(
        entries,
        ENTRIES.map((one) => ({ ...one, issuerId: signer.id, shard })),
      );
      assert.deepEqual([issuerNotAfter, Buffer.compare(read, der)], [signer.notAfter, 0]);
    }
  });

  test(`${name}: any altered, missing or additional byte is rejected`, () => {
    // Every byte of the frame, and one in eight of the rest: an RSA verification each.
    for (let position = 0; position < der.length; position += position < 40 ? 1 : 8) {
      for (const bit of [1, 128]) {
        const copy = Buffer.from(der);
        copy.writeUInt8((copy[position] ?? 0) ^ bit, position);
        assert.throws(() => readCrl(copy, listed), CrlRejected, `byte ${position}`);
      }
    }
    for (const length of [0, 1, 20, der.length - 1]) {
      assert.throws(() => readCrl(der.subarray(0, length), listed), CrlRejected, `${length} bytes`);
    }
    assert.throws(() => readCrl(Buffer.concat([der, Buffer.of(0)]), listed), CrlRejected);
    assert.throws(
      () =>
        readCrl(
          der,
          listed.filter(({ id }) => id !== signer.id),
        ),
      CrlRejected,
    );
  });
}

test('signed CRLs of a kind that is never published are rejected: delta, indirect, partial by reason', async () => {
  const [signer = assert.fail()] = signersOf('issuing');
  const crl = (extensions: readonly Uint8Array[]) =>
    signer.signed(
      sequence([
        ...[integer(1), signer.algorithm, signer.name, time(new Date(at)), time(new Date(at + 1_000))],
        explicit(
          0,
          sequence([
            authorityKeyIdentifier(signer.keyId),
            extension({ id: oid('2.5.29.20'), isCritical: false, value: integer(9) }),
            ...extensions,
          ]),
        ),
      ]),
    );
  const point = (...fields: Uint8Array[]) =>
    extension({ id: oid('2.5.29.28'), isCritical: true, value: sequence(fields) });
  const TRUE = Buffer.of(0xff);
  for (const [what, extensions] of Object.entries({
    'a delta CRL': [extension({ id: oid('2.5.29.27'), isCritical: true, value: integer(1) })],
    'an indirect CRL': [point(raw(0x84, TRUE))],
    'user certificates only': [point(raw(0x81, TRUE))],
  })) {
    const der = await crl(extensions);
    assert.throws(() => readCrl(der, listed), CrlRejected, what);
  }
  // A complete CRL of an authority that was imported: its entries count, its number belongs to none of ours.
  assert.equal(readCrl(await crl([]), listed).shard, null);
});
