// Dual SM2 certificates over HTTP. Signatures and envelopes are verified by an independent library, and by openssl if
// installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sm2 as oracle } from 'sm-crypto-v2';
import { openAuthority } from '../../../src/adapters/ca/authority.ts';
import { checkSm2 } from '../../../src/adapters/doctor/sm2.ts';
import { placeholderKey } from '../../../src/domain/cloud-keys/cloud-key.ts';
import { planReissue } from '../../../src/domain/issuance/reissue.ts';
import { newFolder, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { newDualOrder, newSm2Csr, openEnvelope, readSm2Certificate } from '../../support/dual.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { issuedIn } from '../../support/records.ts';
import { CONTEXT, REQUEST } from '../../support/reissue.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const first = await newSm2Csr();

const dualBody = (csr: string, change: Record<string, unknown> = {}) => ({
  certificate: { csr, common_name: 'www.example.com', sign_hash: 'sm3', ...change },
});

async function reissued(order: PlacedOrder, csr: string, change: Record<string, unknown> = {}) {
  const { status, body: answer, text } = await reissue(app, order, dualBody(csr, change));
  assert.equal(status, 200, text);
  return await certificate(app, order, answer.data.certificate.id);
}

const encryptionPoint = (shown: { encryption_pem: string }) => readSm2Certificate(shown.encryption_pem).point;

rule('dual 1', 'makes a new encryption key pair by default', async () => {
  const order = await newDualOrder(app, first);
  const before = await certificate(app, order, order.certificateId);
  const second = await reissued(order, first.csr);
  const third = await reissued(order, first.csr, { un_modify_key: false });
  assert.equal(new Set([before, second, third].map(encryptionPoint)).size, 3);
});

rule('dual 2', 'the new encryption certificate keeps the encryption key pair of the old one', async () => {
  const order = await newDualOrder(app, first);
  const before = await certificate(app, order, order.certificateId);
  const other = await newSm2Csr();
  const after = await reissued(order, other.csr, { un_modify_key: true });
  assert.equal(encryptionPoint(after), encryptionPoint(before));
  assert.notEqual(after.encryption_serial_number, before.encryption_serial_number);
  assert.equal(readSm2Certificate(after.pem).point, other.point);
  // The later envelope, for another signing key, holds the same encryption key.
  const message = 'written down before the reissue';
  const sealed = oracle.doEncrypt(message, encryptionPoint(before), 1);
  const { scalar } = openEnvelope(after.encryption_key_envelope, other);
  assert.equal(oracle.doDecrypt(sealed, scalar, 1), message);
  const again = await reissued(order, first.csr, { un_modify_key: true });
  assert.equal(encryptionPoint(again), encryptionPoint(before));
});

rule('dual 3', 'the encryption certificate is on a key pair of the service and may encrypt', async () => {
  const order = await newDualOrder(app, first);
  const shown = await certificate(app, order, order.certificateId);
  assert.equal(readSm2Certificate(shown.pem).point, first.point);
  const { scalar, point } = openEnvelope(shown.encryption_key_envelope, first);
  assert.equal(point, encryptionPoint(shown));
  assert.equal(oracle.getPublicKeyFromPrivateKey(scalar), point);
  assert.notEqual(point, first.point);
  const usages = [shown.pem, shown.encryption_pem].map((pem) => keyUsageOf(pem));
  // digitalSignature and nonRepudiation; keyEncipherment, dataEncipherment and keyAgreement.
  assert.deepEqual(usages, ['030206c0', '03020338']);
  for (const pem of [shown.pem, shown.encryption_pem]) {
    const { subject, subjectAltName, validTo } = new X509Certificate(pem);
    assert.deepEqual([subject, subjectAltName], ['CN=www.example.com', 'DNS:www.example.com']);
    assert.equal(new Date(validTo).getTime(), Date.parse(shown.not_after));
  }
});

/** The KeyUsage value in hex, found by its OID. */
function keyUsageOf(pem: string): string {
  const text = new X509Certificate(pem).raw.toString('hex');
  return /0603551d0f0101ff0404([0-9a-f]{8})/.exec(text)?.[1] ?? '';
}

rule('dual 4', 'Both certificates are signed with SM2 and SM3 under the distinguishing id', async () => {
  const order = await newDualOrder(app, first);
  const shown = await certificate(app, order, order.certificateId);
  const { ica_pem: issuing, root_pem: root } = shown;
  const links = [
    [shown.pem, issuing],
    [shown.encryption_pem, issuing],
    [issuing, root],
    [root, root],
  ] as const;
  for (const [leaf, issuer] of links) {
    const { signed, signature, algorithm } = readSm2Certificate(leaf);
    assert.equal(algorithm, '300a06082a811ccf55018375');
    const { point } = readSm2Certificate(issuer);
    const judge = (userId: string) =>
      oracle.doVerifySignature(signed, signature, point, { der: true, hash: true, userId });
    assert.deepEqual([judge('1234567812345678'), judge('')], [true, false]);
  }
  const serials = [shown.serial_number, shown.encryption_serial_number];
  assert.equal(new Set(serials).size, 2);
});

test('openssl, if installed, accepts both certificates and opens the envelope', async (context) => {
  const order = await newDualOrder(app, first);
  const shown = await certificate(app, order, order.certificateId);
  const folder = newFolder();
  const { ica_pem: issuing, root_pem: root } = shown;
  const key = `-----BEGIN PRIVATE KEY-----\n${Buffer.from(first.pkcs8).toString('base64')}\n-----END PRIVATE KEY-----\n`;
  const files = { sign: shown.pem, encrypt: shown.encryption_pem, issuing, root, key };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const envelope = Buffer.from(shown.encryption_key_envelope, 'base64');
  // SM2Cipher is the second element: after the header of three bytes and twelve of the algorithm.
  writeFileSync(join(folder, 'wrapped'), envelope.subarray(15, 15 + 2 + envelope[16]!));
  const run = (...args: string[]) => spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' });
  const hasSm2 = /SM2/.test(run('ecparam', '-list_curves').stdout ?? '');
  context.diagnostic(`oracles present: ${hasSm2 ? 1 : 0} of 1 (openssl with SM2)`);
  if (!hasSm2) return;
  const verify = (trusted: string, ...certificates: string[]) =>
    run(
      'verify',
      '-no_check_time',
      '-vfyopt',
      'distid:1234567812345678',
      '-partial_chain',
      '-trusted',
      trusted,
      ...certificates,
    );
  assert.equal(verify('issuing', 'sign', 'encrypt').stdout, 'sign: OK\nencrypt: OK\n');
  assert.equal(verify('root', 'issuing').stdout, 'issuing: OK\n');
  const opened = run('pkeyutl', '-decrypt', '-inkey', 'key', '-in', 'wrapped', '-hexdump');
  assert.match(opened.stdout, /^0000 - (([0-9a-f]{2})[ -]?){16}/, opened.stderr);
});

rule(
  'dual 5',
  'shows both certificates and the encryption private key as an SM2EnvelopedKey for the signing key',
  async () => {
    const order = await newDualOrder(app, first);
    const shown = await certificate(app, order, order.certificateId);
    for (const field of ['pem', 'encryption_pem']) assert.match(shown[field], /^-----BEGIN CERTIFICATE-----\n/);
    assert.doesNotThrow(() => openEnvelope(shown.encryption_key_envelope, first));
    assert.throws(() => {
      const stranger = openEnvelope(shown.encryption_key_envelope, { ...first, scalar: '1'.padStart(64, '0') });
      assert.equal(oracle.getPublicKeyFromPrivateKey(stranger.scalar), stranger.point);
    });
    const ordinary = await newOrder(app, {}, order.key);
    const single = await certificate(app, ordinary, ordinary.certificateId);
    assert.deepEqual(
      Object.keys(single).filter((name) => name.startsWith('encryption')),
      [],
    );
    const stranger = await app.newKey();
    assert.equal((await app.call('GET', `/openapi/v3/certs/${shown.id}`, { key: stranger })).status, 404);
  },
);

rule('dual 6', 'A reissue never makes earlier encryption keys unreadable: they stay in escrow, sealed', async () => {
  const order = await newDualOrder(app, first);
  const before = await certificate(app, order, order.certificateId);
  await reissued(order, (await newSm2Csr()).csr);
  const still = await certificate(app, order, order.certificateId);
  assert.equal(still.encryption_key_envelope, before.encryption_key_envelope);
  const { scalar } = openEnvelope(still.encryption_key_envelope, first);
  const { encryption } = await issuedIn(app.app.store, order.key.accountId, order.certificateId);
  const escrowed = await app.app.store.escrowedKeys.find(order.key.accountId, encryption!.escrowedKeyId);
  assert.ok(Buffer.from(escrowed!.privateKey).toString('hex').includes(scalar));
  assert.equal(await app.app.store.escrowedKeys.find('another', encryption!.escrowedKeyId), undefined);
});

test('un_modify_key has no effect on an ordinary certificate, whatever its key', async () => {
  for (const [product, certificateWish] of [
    ['ssl-dv', body({ un_modify_key: true }).certificate],
    ['document-signing', { csr: first.csr, sign_hash: 'sm3', un_modify_key: true }],
  ] as const) {
    const order = await newOrder(app, { product });
    const { status, body: answer } = await reissue(app, order, { certificate: certificateWish });
    assert.equal(status, 200);
    const shown = await certificate(app, order, answer.data.certificate.id);
    assert.equal(shown.encryption_pem, undefined);
  }
});

test('un_modify_key on an order that became dual only now makes the first encryption key', async () => {
  const single = { ...OWN_PRODUCT, form: 'single', csr: 'required', keys: [{ type: 'sm2' }], sign_hashes: ['sm3'] };
  await using own = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(single) });
  const key = await own.newKey();
  const { orderId, certificateId } = await own.issuance.placeOrder({
    ...{ accountId: key.accountId, productId: single.id, alternativeId: null, actor: 'cli', vouchesForNames: true },
    request: {
      ...{ commonName: 'www.example.com', csr: first.csr, keySource: 'caller', signHash: 'sm3' },
      keepsEncryptionKey: false,
    },
  });
  await own.stop();
  await own.start({ RESEAL_PRODUCTS_FILE: productsFile({ ...single, form: 'dual' }) });
  const order = { key, id: orderId, certificateId };
  const { status, body: answer } = await reissue(own, order, dualBody(first.csr, { un_modify_key: true }));
  assert.equal(status, 200);
  const shown = await certificate(own, order, answer.data.certificate.id);
  assert.match(shown.encryption_pem, /^-----BEGIN CERTIFICATE-----/);
});

test('with SM2 disabled nothing new is signed, and issued certificates are still served', async () => {
  const { issuers } = app.issuance;
  const without = openAuthority(issuers, 'http://pki.example.com', ['p256', 'p384', 'rsa']);
  assert.equal(without.issuerFor('sm2', 'sm3', 0), undefined);
  assert.ok(without.issuerFor('p256', 'sha256', 0));
  const sm2 = issuers.find(({ keyType, role }) => keyType === 'sm2' && role === 'issuing')!;
  assert.equal(without.chainOf(sm2.id).length, 2);
  const request = { ...REQUEST, signHash: 'sm3' as const };
  const product = {
    ...CONTEXT.product,
    signHashes: ['sm3' as const],
    keys: [{ type: 'sm2' as const, minBits: 256, maxBits: 256 }],
  };
  const readCsr = () => placeholderKey({ type: 'sm2', bits: 256 });
  const context = { ...CONTEXT, product, readCsr, issuers: { choose: without.issuerFor, served: without.served } };
  assert.throws(() => planReissue({ ...request, commonName: 'example.com', csr: 'sm2-256' }, context), {
    code: 'service_busy',
  });
  assert.equal(checkSm2('the signature of the standard does not verify').state, 'warning');
});

test('a request that is not SM2 is refused and names the allowed values', async () => {
  const order = await newDualOrder(app, first);
  const { csr: ecCsr } = body().certificate;
  const cases: [Record<string, unknown>, string, string][] = [
    [{ csr: ecCsr }, 'invalid_csr', 'certificate.csr'],
    [{ sign_hash: 'sha256' }, 'invalid_parameters', 'certificate.sign_hash'],
    [{ csr: undefined }, 'invalid_parameters', 'certificate.csr'],
    [{ csr_from: 'sign-cloud-csc' }, 'invalid_parameters', 'certificate.csr_from'],
  ];
  for (const [change, code, field] of cases) {
    const { body: answer } = await reissue(app, order, dualBody(first.csr, change));
    assert.deepEqual([answer.code, answer.field], [code, field]);
  }
  const ordinary = await newOrder(app);
  const { body: answer } = await reissue(app, ordinary, dualBody(first.csr));
  assert.equal(answer.code, 'invalid_parameters');
});
