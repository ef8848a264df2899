// ACME accounts over HTTP: keys, nonces, registration with external account bindings, changes, and who is refused.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { NONCE_MS } from '../../../src/domain/acme/nonce.ts';
import { MINUTE_MS } from '../../../src/kernel/durations.ts';
import {
  AcmeClient,
  type AcmeKeyType,
  b64,
  binding,
  jws,
  newAcmeClient,
  newAcmeKey,
  newEab,
  problemOf,
} from '../../support/acme.ts';
import { startApp, TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const app = await startApp();
after(() => app.stop());
const { store } = app.app;
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());
const usedNonces = (): number => Number(db.prepare('select count(*) as n from acme_used_nonce').get()?.n);

const { accountId: TENANT } = await app.newKey();
/** Tests that change nothing share it. */
const shared = await newAcmeClient(app, { accountId: TENANT });
const { newAccount: NEW_ACCOUNT, keyChange: KEY_CHANGE } = await shared.directory();
const idOf = (kid: string): string => kid.slice(kid.lastIndexOf('/') + 1);

test('accounts have keys of every supported kind', async () => {
  for (const type of ['p256', 'p384', 'rsa', 'ed25519'] satisfies AcmeKeyType[]) {
    const client = await newAcmeClient(app, { accountId: TENANT, key: newAcmeKey(type) });
    const bound = await store.acmeAccounts.find(idOf(client.kid));
    assert.equal(bound?.account.thumbprint, client.key.thumbprint, type);
    assert.equal((await client.post(client.kid)).status, 200, type);
  }
});

rule('acme 18', 'or sent with its private half is `badPublicKey`', async () => {
  const key = newAcmeKey();
  const { jwk: strong } = newAcmeKey('rsa');
  const short = Buffer.from(String(strong.n), 'base64url').subarray(-128).with(0, 0x80);
  const zeros = Buffer.alloc(32).toString('base64url');
  const keys: Readonly<Record<string, unknown>> = {
    'not on its curve': { ...key.jwk, y: key.jwk.x },
    'at infinity': { ...key.jwk, x: zeros, y: zeros },
    'short coordinate': { ...key.jwk, x: String(key.jwk.x).slice(4) },
    padded: { ...key.jwk, x: `${key.jwk.x}=` },
    'RSA of 1024 bits': { ...strong, n: b64(short) },
    'small exponent': { ...strong, e: 'Aw' },
    'even modulus': { ...strong, n: `${String(strong.n).slice(0, -1)}A` },
    'leading zero': { ...strong, e: 'AAEAAQ' },
    'modulus too long': { ...strong, n: `u${'A'.repeat(700)}` },
    'private half': key.privateKey.export({ format: 'jwk' }),
    'small order': { kty: 'OKP', crv: 'Ed25519', x: zeros },
    X25519: { kty: 'OKP', crv: 'X25519', x: zeros },
    'P-521': generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey.export({ format: 'jwk' }),
    symmetric: { kty: 'oct', k: zeros },
    text: 'key',
    nothing: null,
  };
  const client = new AcmeClient(app.url, key);
  for (const [name, jwk] of Object.entries(keys)) {
    const answer = await client.postAs({ jwk }, NEW_ACCOUNT, {});
    assert.equal(problemOf(answer), 'badPublicKey', `${name}: ${answer.text}`);
  }
});

rule('acme 21', 'and the nonce of that answer is good for a retry', async () => {
  const good = await shared.nonce();
  const bytes = Buffer.from(good, 'base64url');
  const flipped = (at: number) => bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
  const altered = [0, 5, 10, 20, 33].map((at) => Buffer.from(flipped(at)).toString('base64url'));
  for (const nonce of [undefined, '', 1, 'x', `${good}A`, `${good}=`, ...altered]) {
    assert.equal(problemOf(await shared.post(shared.kid, undefined, { header: { nonce } })), 'badNonce', String(nonce));
    assert.equal((await shared.post(shared.kid)).status, 200);
  }
  app.advance(NONCE_MS);
  assert.equal(problemOf(await shared.post(shared.kid, undefined, { header: { nonce: good } })), 'badNonce');
  const later = await shared.nonce();
  app.advance(-2 * MINUTE_MS);
  assert.equal(problemOf(await shared.post(shared.kid, undefined, { header: { nonce: later } })), 'badNonce');
  app.advance(2 * MINUTE_MS);
  assert.equal((await shared.post(shared.kid, undefined, { header: { nonce: later } })).status, 200);
});

rule('acme 22', 'A nonce is good once, at any process and instance', async () => {
  const other = new TestApp(app.folder);
  other.advance(app.now() - other.now());
  await other.start({});
  try {
    const there = new AcmeClient(other.url, shared.key);
    there.kid = shared.kid.replace(app.url, other.url);
    const use = (at: AcmeClient, nonce: string) => at.post(at.kid ?? '', undefined, { header: { nonce } });
    for (const [from, first, second] of [[shared, there, shared] as const, [there, shared, there] as const]) {
      const nonce = await from.nonce();
      assert.equal((await use(first, nonce)).status, 200);
      for (const again of [second, first]) assert.equal(problemOf(await use(again, nonce)), 'badNonce');
    }
    const nonce = await shared.nonce();
    const together = await Promise.all([shared, there, shared, there].map((one) => use(one, nonce)));
    assert.deepEqual(together.map(({ status }) => status).sort(), [200, 400, 400, 400]);
  } finally {
    await other.stop();
  }
});

rule('acme 23', 'nor by a refused request of a key without an account', async () => {
  const before = usedNonces();
  for (let asked = 0; asked < 5; asked += 1) await shared.nonce();
  const stranger = new AcmeClient(app.url);
  assert.equal(problemOf(await stranger.register(undefined)), 'externalAccountRequired');
  assert.equal(problemOf(await stranger.register({ kid: 'x', macKey: 'x' })), 'unauthorized');
  assert.equal(usedNonces(), before);
  await shared.post(shared.kid);
  assert.equal(usedNonces(), before + 1);
});

rule('acme 24', 'every resource but `newAccount` and `revokeCert` refuses `jwk`', async () => {
  const kids = [
    `${app.url}/acme/account/none`,
    idOf(shared.kid),
    `${shared.kid}/`,
    `https://other.example/acme/account/x`,
  ];
  for (const kid of kids) {
    assert.equal(problemOf(await shared.postAs({ kid }, shared.kid, undefined)), 'accountDoesNotExist', kid);
  }
  for (const url of [shared.kid, KEY_CHANGE]) {
    assert.equal(problemOf(await shared.postAs({ jwk: shared.key.jwk }, url, {})), 'malformed', url);
  }
  const other = await newAcmeClient(app, { accountId: TENANT });
  assert.equal(
    problemOf(await shared.postAs({ kid: other.kid }, other.kid, undefined)),
    'malformed',
    'another account',
  );
});

rule('acme 25', '`newAccount` refuses `kid`', async () => {
  assert.equal(problemOf(await shared.postAs({ kid: shared.kid }, NEW_ACCOUNT, {})), 'malformed');
});

rule('acme 26', "is answered 201 with the account's URL in `Location`", async () => {
  const client = new AcmeClient(app.url);
  const contact = ['mailto:admin@example.com'];
  const { status, headers, body } = await client.register(await newEab(app, TENANT), { contact });
  const url = headers.get('location') ?? '';
  assert.ok(url.startsWith(`${app.url}/acme/account/`));
  assert.deepEqual([status, body], [201, { status: 'valid', contact, orders: `${url}/orders` }]);
  assert.equal((await store.acmeAccounts.find(idOf(url)))?.tenant.id, TENANT);
});

rule('acme 27', 'without a binding, and changes nothing', async () => {
  const client = await newAcmeClient(app, { accountId: TENANT });
  const before = (await client.post(client.kid)).body;
  for (const payload of [{}, { contact: ['mailto:other@example.com'] }, { onlyReturnExisting: true }]) {
    const { status, headers, body } = await client.postAs({ jwk: client.key.jwk }, NEW_ACCOUNT, payload);
    assert.deepEqual([status, headers.get('location'), body], [200, client.kid, before]);
  }
});

rule('acme 28', 'a key without an account is `accountDoesNotExist`', async () => {
  const client = new AcmeClient(app.url);
  const answer = await client.register(await newEab(app, TENANT), { onlyReturnExisting: true });
  assert.equal(problemOf(answer), 'accountDoesNotExist');
  assert.equal(await store.acmeAccounts.findByKey(client.key.thumbprint), undefined);
});

rule('acme 29', 'A new account needs an external account binding', async () => {
  const client = new AcmeClient(app.url);
  for (const payload of [{}, { externalAccountBinding: undefined }]) {
    const answer = await client.register(undefined, payload);
    assert.deepEqual([answer.status, problemOf(answer)], [403, 'externalAccountRequired']);
  }
});

rule('acme 30', "no `nonce`, and the account's key as payload", async () => {
  const eab = await newEab(app, TENANT);
  const client = new AcmeClient(app.url);
  const { jwk } = client.key;
  const sent = binding(eab, NEW_ACCOUNT, jwk);
  const wrong: Readonly<Record<string, readonly [string, unknown]>> = {
    'no JWS': ['malformed', 'x'],
    null: ['malformed', null],
    'an unprotected header': ['malformed', { ...sent, header: {} }],
    'another url': ['malformed', binding(eab, KEY_CHANGE, jwk)],
    'a nonce': ['malformed', binding(eab, NEW_ACCOUNT, jwk, { nonce: await client.nonce() })],
    'a jwk': ['malformed', binding(eab, NEW_ACCOUNT, jwk, { jwk })],
    'no kid': ['malformed', binding(eab, NEW_ACCOUNT, jwk, { kid: undefined })],
    'another key': ['malformed', binding(eab, NEW_ACCOUNT, newAcmeKey().jwk)],
    'no key': ['badPublicKey', binding(eab, NEW_ACCOUNT, {})],
    ES256: ['badSignatureAlgorithm', jws(client.key, { alg: 'ES256', kid: eab.kid, url: NEW_ACCOUNT }, jwk)],
    none: ['badSignatureAlgorithm', binding(eab, NEW_ACCOUNT, jwk, { alg: 'none' })],
  };
  for (const [name, [type, externalAccountBinding]] of Object.entries(wrong)) {
    assert.equal(problemOf(await client.register(undefined, { externalAccountBinding })), type, name);
  }
  for (const alg of ['HS256', 'HS384', 'HS512']) {
    const fresh = new AcmeClient(app.url);
    const bound = binding(await newEab(app, TENANT), NEW_ACCOUNT, fresh.key.jwk, { alg });
    assert.equal((await fresh.register(undefined, { externalAccountBinding: bound })).status, 201, alg);
  }
});

rule('acme 31', 'An unknown `kid` and a wrong MAC of a binding get the same answer', async () => {
  const eab = await newEab(app, TENANT);
  const { macKey } = await newEab(app, TENANT);
  const answers = [];
  for (const wrong of [
    { ...eab, kid: 'unknown' },
    { ...eab, macKey },
    { ...eab, macKey: '' },
  ]) {
    answers.push((await new AcmeClient(app.url).register(wrong)).body);
  }
  for (const body of answers) assert.deepEqual(body, answers[0]);
  assert.match(answers[0].type, /:unauthorized$/);
});

rule('acme 32', 'also when several register with it at the same time, unless it is reusable', async () => {
  const register = async (isReusable: boolean) => {
    const eab = await newEab(app, TENANT, { isReusable });
    const clients = Array.from({ length: 4 }, () => new AcmeClient(app.url));
    for (const one of clients) await one.directory();
    const together = await Promise.all(clients.map((one) => one.register(eab)));
    return [...together, await new AcmeClient(app.url).register(eab)].map(({ status }) => status).sort();
  };
  assert.deepEqual(await register(false), [201, 403, 403, 403, 403]);
  assert.deepEqual(await register(true), [201, 201, 201, 201, 201]);
});

test('requests that register one key at the same time all get its account', async () => {
  const eab = await newEab(app, TENANT);
  const key = newAcmeKey();
  const clients = Array.from({ length: 4 }, () => new AcmeClient(app.url, key));
  const answers = await Promise.all(clients.map((one) => one.register(eab)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 201]);
  assert.equal(new Set(clients.map(({ kid }) => kid)).size, 1);
});

rule('acme 33', 'another scheme is `unsupportedContact`, anything else `invalidContact`', async () => {
  const ten = Array.from({ length: 10 }, (_, index) => `mailto:a${index}@example.com`);
  const wrong: Readonly<Record<string, readonly unknown[]>> = {
    unsupportedContact: [['tel:+1'], ['https://example.com'], ['admin@example.com']],
    invalidContact: [
      ...['mailto:a@example.com', [1], [...ten, 'mailto:b@example.com'], null, {}],
      ...[['mailto:'], ['mailto:a'], ['mailto:a@b'], ['mailto:a@example.com,b@example.com']],
      ...[['mailto:a@example.com?subject=x'], ['mailto:a b@example.com'], [`mailto:${'a'.repeat(250)}@example.com`]],
      ...[['mailto:a@example.com\r\nBcc:x@example.com'], ['mailto:a%0d@example.com']],
    ],
  };
  for (const [type, values] of Object.entries(wrong)) {
    for (const contact of values) {
      assert.equal(problemOf(await shared.post(shared.kid, { contact })), type, JSON.stringify(contact));
    }
  }
  assert.deepEqual((await shared.post(shared.kid, { contact: ten })).body.contact, ten);
});
