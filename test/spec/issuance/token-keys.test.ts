// Contract: issuer keys in tokens. The token is a double here; test/adapters/hsm/softhsm.test.ts and the campaign `hsm` have a
// real one.
import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readImportedIssuer } from '../../../src/adapters/ca/imported-issuer.ts';
import { readCrl } from '../../../src/adapters/ca/status/crl-reader.ts';
import { checkTokens } from '../../../src/adapters/doctor/tokens.ts';
import { ATTRIBUTE, type Attribute, type Cryptoki } from '../../../src/adapters/hsm/cryptoki.ts';
import { pinFromFile } from '../../../src/adapters/hsm/pin-file.ts';
import { tokenKeys } from '../../../src/adapters/hsm/token-keys.ts';
import { openToken } from '../../../src/adapters/hsm/token-session.ts';
import { bytesFrom } from '../../../src/adapters/store/engine/columns.ts';
import type { Issuer } from '../../../src/domain/certificate/authority.ts';
import { parseKeyUri } from '../../../src/domain/certificate/key-uri.ts';
import { newUsedFolder, TestApp } from '../../support/app.ts';
import { caChain } from '../../support/authority.ts';
import { rule } from '../../support/contract.ts';
import { DOUBLE, type DoubleToken, doubleToken } from '../../support/double-token.ts';
import { reseal } from '../../support/in-process.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';

const CA = caChain([{}, {}], Date.UTC(2026, 10, 15, 12));
let app: TestApp;
let double: DoubleToken;
let issuer: Issuer;
let order: PlacedOrder;

const silent = { onAnswered() {}, onFailed() {}, onStarted() {} };
const keysOf = (token: DoubleToken) =>
  tokenKeys({
    pinFor: ({ pinFile }, name) => pinFromFile(pinFile ?? undefined, name, token.folder),
    observe: () => silent,
    program: DOUBLE,
  });
const importFrom = (isKeyOf: (key: X509Certificate['publicKey']) => boolean) =>
  readImportedIssuer(
    { chain: CA.chain.join('\n'), key: { uri: double.uri, isKeyOf }, purposes: ['public-tls'], policy: null },
    app.now(),
    app.app.newId,
  );

before(async () => {
  double = doubleToken(CA.key);
  app = new TestApp(await newUsedFolder());
  await app.start({}, DOUBLE);
  const keys = keysOf(double);
  const chain = importFrom(await keys.prove(parseKeyUri(double.uri), 'p256'));
  keys.close();
  issuer = await app.app.store.transaction((tx) => tx.issuers.adopt(chain));
  await app.issuance.sweep();
  order = await newOrder(app);
});
after(() => app.stop());

const again = () => reissue(app, order, body());
const voided = async (): Promise<number> => {
  const found = await app.issuance.interrupted.list();
  return found.length;
};
const digests = () => double.asked().filter((line) => line.startsWith('sign '));

async function recovered(): Promise<void> {
  double.set({ behaves: 'sign', opens: true });
  // The next process starts after its back-off, which can only be waited for.
  while ((await again()).status !== 200) await sleep(20);
}

rule('custody 26', 'A PIN in it, an attribute that is not used here or is given twice, is refused', async () => {
  for (const uri of [`${double.uri}&pin-value=1234`, 'pkcs11:token=t;token=u;object=o?module-name=m']) {
    const chain = join(double.folder, 'chain.pem');
    writeFileSync(chain, CA.chain.join('\n'));
    const args = ['ca', 'import', '--for', 'public-tls', chain, '--key-uri', uri];
    const { code, err } = await reseal(args, { RESEAL_DATA_DIR: app.folder });
    assert.deepEqual([code, /--key-uri cannot be used/.test(err), /1234/.test(err)], [2, true, false], err);
  }
});

rule('custody 27', 'only if the key in the token has signed a random text that its certificate verifies', async () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const stranger = doubleToken(other.export({ type: 'pkcs8', format: 'pem' }).toString());
  const keys = keysOf(stranger);
  const isKeyOf = await keys.prove(parseKeyUri(stranger.uri), 'p256');
  keys.close();
  assert.throws(() => importFrom(isKeyOf), /the key is not that of a certificate in the chain/);
  const { pem } = await certificate(app, order, order.certificateId);
  assert.ok(new X509Certificate(pem).verify(new X509Certificate(issuer.certificate).publicKey));
});

rule('custody 28', 'is made sensitive and not extractable', async () => {
  const made: (readonly Attribute[])[] = [];
  const cryptoki: Cryptoki = {
    tokens: async () => [{ slot: 1, label: 't', serial: 's', isAtFinalTry: false, isLocked: false }],
    openSession: async () => 1,
    login: async () => {},
    find: async (_session, template) => (made.length === 0 || template.length === 0 ? [] : [1]),
    read: async () => undefined,
    async generate(_session, _mechanism, templates) {
      made.push(templates.private);
      return { publicKey: 1, privateKey: 2 };
    },
    sign: async () => Buffer.alloc(64),
  };
  const opening = { module: '/m.so', token: 't', serial: null, pin: '1234', isWritable: true };
  const token = await openToken(opening, async () => cryptoki);
  const request = { id: 1, act: 'generate', key: { object: 'o', id: null }, keyType: 'p256' } as const;
  // The double shows no attributes of the key that it has made.
  await assert.rejects(token.perform(request), /neither RSA nor on a curve/);
  const value = (type: number) => made[0]?.find((one) => one.type === type)?.value;
  assert.deepEqual(
    [value(ATTRIBUTE.sensitive), value(ATTRIBUTE.extractable), value(ATTRIBUTE.token)],
    [true, false, true],
  );
  const facts = { keyType: 'p256', spki: null, isExtractable: true } as const;
  const keys = { describe: async () => facts, prove: async () => () => true };
  const { state, text } = await checkTokens([{ ...issuer, keyUri: double.uri }], keys);
  assert.deepEqual([state, /can leave their token/.test(text)], ['warning', true]);
});

rule('custody 29', 'refused as `service_busy` with `Retry-After`, and nothing is left of it', async () => {
  const before = await voided();
  double.set({ behaves: 'lost' });
  const { status, headers, body: refused } = await again();
  assert.deepEqual([status, refused.code], [503, 'service_busy']);
  assert.match(refused.message, /token that does not answer/);
  assert.ok(Number(headers.get('retry-after')) >= 1);
  assert.equal(await voided(), before);
  // An issuer whose key is in the store is not affected.
  await newOrder(app, { product: 'tls-private', commonName: 'db.internal' });
  await recovered();
});

rule(
  'custody 30',
  'is never sent again: its serial number is voided and stays revocable, and the order is free at once',
  async () => {
    const [before, sent] = [await voided(), digests().length];
    double.set({ behaves: 'crash' });
    assert.equal((await again()).status, 503);
    assert.equal(await voided(), before + 1);
    assert.equal(digests().length, sent + 1);
    await recovered();
    assert.equal(new Set(digests()).size, digests().length);
  },
);

rule('custody 31', 'is not issued unless it verifies', async () => {
  const before = await voided();
  double.set({ behaves: 'wrong' });
  assert.equal((await again()).status, 503);
  assert.equal(await voided(), before + 1);
  await recovered();
});

rule('custody 32', '`/readyz` stays ready and counts the tokens that do not sign', async () => {
  double.set({ behaves: 'crash', opens: false });
  assert.equal((await again()).status, 503);
  const ready = await app.call('GET', '/readyz');
  assert.deepEqual([ready.status, ready.body.data.hsm], [200, { tokens: 1, unavailable: 1 }]);
  const { text } = await app.call('GET', '/metrics');
  assert.match(text, /^reseal_hsm_unavailable 1$/m);
  assert.match(text, /^reseal_hsm_restarts_total [1-9]/m);
  await recovered();
  // The probe is cached for a moment.
  while ((await app.call('GET', '/readyz')).body.data.hsm !== undefined) await sleep(20);
  assert.ok(app.output.includes('the token double: '));
});

rule('custody 33', 'is not tried again before its file is written anew', async () => {
  const token = doubleToken(CA.key);
  writeFileSync(token.pinFile, '9999\n');
  for (let start = 0; start < 2; start += 1) {
    const keys = keysOf(token);
    await assert.rejects(keys.describe(parseKeyUri(token.uri)));
    keys.close();
  }
  assert.deepEqual(token.asked(), ['open false']);
});

rule('custody 34', 'CRLs of an issuer whose key is in a token are signed in the token', async () => {
  const { der } = await app.app.store.transaction(async (tx) => {
    const found = await tx.certificates.find(order.key.accountId, order.certificateId);
    assert.ok(found?.state === 'issued');
    return found;
  });
  const signed = digests().length;
  const { serialNumber } = new X509Certificate(der);
  const path = `/openapi/v3/certs/${order.certificateId}/revoke`;
  const revoked = await app.call('POST', path, { key: order.key, json: { reason: 'superseded' } });
  assert.equal(revoked.status, 200, revoked.text);
  for (const { run } of app.issuance.revocationChores) await run();
  assert.ok(digests().length > signed);
  const heads = (await app.app.store.crls.heads()).filter(({ issuerId }) => issuerId === issuer.id);
  const crls = await Promise.all(heads.map((head) => app.app.store.crls.find(head)));
  const serials = crls.flatMap((crl) =>
    readCrl(crl?.der ?? bytesFrom(''), [issuer]).entries.map(({ serial }) => serial),
  );
  assert.ok(serials.includes(serialNumber.toLowerCase()));
});
