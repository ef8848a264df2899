import assert from 'node:assert/strict';
import crypto, { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { after, mock, test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { Secret } from '../../../src/domain/secret.ts';
import { authenticateCaller } from '../../../src/usecases/access/authenticate-caller.ts';
import { type Key, NOON, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const PATH = '/openapi/v3/account';
const withSecret = (key: Key, authKey: string): Key => ({ ...key, authKey });
const withId = (key: Key, keyId: string): Key => ({ ...key, keyId });

rule('auth 1', 'A request without the header `X-CC-Auth-Key`', async () => {
  const { keyId } = await app.newKey();
  const { status, body } = await app.call('GET', PATH, { headers: { 'X-CC-Key-ID': keyId } });
  assert.deepEqual([status, body.code], [401, 'unauthenticated_request']);
});

rule('auth 2', 'A request without the header `X-CC-Key-ID`', async () => {
  const { authKey } = await app.newKey();
  const { status, body } = await app.call('GET', PATH, { headers: { 'X-CC-Auth-Key': authKey } });
  assert.deepEqual([status, body.code], [401, 'unauthenticated_request']);
});

rule('auth 3', 'A missing header, an unknown key id and a wrong secret get the same answer', async () => {
  const key = await app.newKey();
  const other = await app.newKey();
  const attempts: (Key | undefined)[] = [
    undefined,
    withId(key, '0'.repeat(26)),
    withId(key, `${key.keyId}x`),
    withId(key, key.keyId.toUpperCase()),
    withId(key, '%'),
    withSecret(key, ''),
    withSecret(key, 'x'),
    withSecret(key, `${key.authKey}x`),
    withSecret(key, key.authKey.slice(0, -1)),
    withSecret(key, other.authKey),
    withSecret(key, createHash('sha256').update(key.authKey).digest('hex')),
    withSecret(key, '\u00ff\u00fe'),
  ];
  const expected = { ...(await app.call('GET', PATH)).body, request_id: '' };
  for (const attempt of attempts) {
    const { status, body, headers } = await app.call('GET', PATH, { key: attempt });
    assert.equal(status, 401);
    assert.deepEqual({ ...body, request_id: '' }, expected);
    assert.equal(headers.get('www-authenticate'), null);
  }
});

rule('auth 4', 'An unknown key id costs the same hash and the same comparison as a wrong secret', async () => {
  // Counts hash comparisons and store queries: timing itself would be flaky.
  const key = await app.newKey();
  const { credentials } = app.app.store;
  const cost = async (keyId: string) => {
    const seen: string[] = [];
    const findForAuthentication = (id: string) => {
      seen.push('query');
      return credentials.findForAuthentication(id);
    };
    const counting = { ...app.app.store, credentials: { ...credentials, findForAuthentication } };
    const authenticate = authenticateCaller(counting, app.now, (secret, hash) => {
      seen.push(`compare ${secret} with ${hash.length} characters`);
      return false;
    });
    await assert.rejects(authenticate({ keyId, authKey: new Secret('wrong') }), Refusal);
    return seen;
  };
  assert.deepEqual(await cost('unknown'), await cost(key.keyId));
  assert.deepEqual(await cost('unknown'), ['query', 'compare wrong with 64 characters']);
});

rule('auth 5', 'a broken or oversized body without valid credentials is 401', async () => {
  const headers = { 'content-type': 'application/json' };
  for (const raw of ['{', '{"name":7}', `"${'x'.repeat(300_000)}"`]) {
    assert.equal((await app.call('PUT', PATH, { headers, raw })).status, 401);
  }
});

rule('auth 6', 'an unknown path or a wrong method without valid credentials is 401', async () => {
  for (const [method, path] of [
    ['GET', '/openapi/v3'],
    ['GET', '/openapi/v3/'],
    ['GET', '/openapi/v3/nowhere'],
    ['POST', '/openapi/v3/orders/x/reissue'],
    ['DELETE', PATH],
    ['OPTIONS', PATH],
    ['PROPFIND', PATH],
  ] as const) {
    assert.equal((await app.call(method, path)).status, 401, `${method} ${path}`);
  }
});

rule('auth 7', 'Only a caller who sends the right secret learns that a key is disabled or expired', async () => {
  const disabled = await app.newKey();
  await app.app.access.disableKey(disabled.keyId);
  const expired = await app.anotherKey(disabled.accountId, 'standard', NOON - 1);
  for (const key of [disabled, expired]) {
    const right = await app.call('GET', PATH, { key });
    assert.deepEqual([right.status, right.body.code], [403, 'api_key_disabled']);
    const wrong = await app.call('GET', PATH, { key: withSecret(key, 'wrong') });
    assert.deepEqual([wrong.status, wrong.body.code], [401, 'unauthenticated_request']);
  }
});

rule('errors api_key_disabled', 'is 403: the key is disabled or has expired', async () => {
  const now = app.now();
  const { accountId } = await app.newKey();
  const statusAt = async (expiresAt: number) =>
    (await app.call('GET', PATH, { key: await app.anotherKey(accountId, 'standard', expiresAt) })).status;
  assert.equal(await statusAt(now + 1), 200);
  assert.equal(await statusAt(now), 403, 'a key has expired in the millisecond it expires');
});

rule('errors unauthenticated_request', 'is 401: the two authentication headers do not identify a key', async () => {
  const { status, body } = await app.call('GET', PATH);
  assert.deepEqual([status, body.code], [401, 'unauthenticated_request']);
});

rule('auth 8', 'Of a secret only its SHA-256 digest is stored', async () => {
  await using fresh = await startApp();
  const { keyId, authKey } = await fresh.newKey();
  const found = await fresh.app.store.credentials.findForAuthentication(keyId);
  assert.equal(found?.secretHash, createHash('sha256').update(authKey).digest('hex'));
  await fresh.stop();
  const files = ['reseal.db', 'seal.key'].map((name) => readFileSync(join(fresh.folder, name)));
  for (const needle of [authKey, Buffer.from(authKey, 'base64url'), Buffer.from(authKey).toString('base64')]) {
    for (const file of files) assert.equal(file.includes(needle), false);
  }
});

rule('auth 9', 'Digests of secrets are compared in constant time', async () => {
  // Timing cannot be asserted on a busy machine, but that every comparison uses timingSafeEqual can.
  const key = await app.newKey();
  const compare = mock.method(crypto, 'timingSafeEqual');
  syncBuiltinESMExports();
  try {
    for (const [secret, isRight] of [
      ['wrong', false],
      [key.authKey, true],
    ] as const) {
      const { status } = await app.call('GET', PATH, { key: withSecret(key, secret) });
      assert.equal(status, isRight ? 200 : 401);
      const call = compare.mock.calls.at(-1);
      const digest = createHash('sha256').update(secret).digest('hex');
      assert.deepEqual([String(call?.arguments[0]), call?.result], [digest, isRight]);
    }
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
});

rule('auth 10', 'A secret carries 256 bits of randomness', async () => {
  const secrets = await Promise.all(Array.from({ length: 50 }, async () => (await app.newKey()).authKey));
  assert.equal(new Set(secrets).size, secrets.length);
  for (const secret of secrets) assert.equal(Buffer.from(secret, 'base64url').length, 32);
  // Among 50 random secrets each of the 256 bits takes both values.
  for (let bit = 0; bit < 256; bit += 1) {
    const values = secrets.map((secret) => (Buffer.from(secret, 'base64url')[bit >> 3]! >> (bit & 7)) & 1);
    assert.equal(new Set(values).size, 2, `bit ${bit} never changes`);
  }
});

rule('auth 11', 'A credential is of one of four kinds', async () => {
  assert.deepEqual([...CREDENTIAL_KINDS], ['standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key']);
  for (const kind of CREDENTIAL_KINDS) {
    const { body } = await app.call('GET', PATH, { key: await app.newKey({}, kind) });
    assert.equal(body.data.credential.kind, kind);
  }
  const { accountId } = await app.newKey();
  await assert.rejects(app.app.access.createKey({ accountId, kind: 'other' as 'standard', expiresAt: null }));
});

rule('auth 12', 'An account is of one of two kinds', async () => {
  for (const kind of ['standard', 'managed_pki'] as const) {
    const { body } = await app.call('GET', PATH, { key: await app.newKey({ kind }) });
    assert.equal(body.data.account.kind, kind);
  }
  await assert.rejects(app.newKey({ kind: 'other' as 'standard' }));
});

rule('auth 13', 'no operation of the interface creates one', async () => {
  const { body } = await app.call('GET', '/openapi.json');
  const key = await app.newKey();
  for (const [path, methods] of Object.entries<Record<string, unknown>>(body.paths)) {
    assert.doesNotMatch(path, /(?<!cloud-)key|(?<!^\/csc.*)credential/);
    for (const method of Object.keys(methods)) {
      const { text } = await app.call(method.toUpperCase(), path, { key, ...(method !== 'get' && { json: {} }) });
      assert.doesNotMatch(text, /auth_key/);
    }
  }
});

rule('auth 16', 'Failed attempts to authenticate are counted in the metrics and logged', async () => {
  const count = async () => {
    const { text } = await app.call('GET', '/metrics');
    return Number(/^reseal_authentication_failures_total (\d+)$/m.exec(text)?.[1]);
  };
  const before = await count();
  const { headers } = await app.call('GET', PATH);
  assert.equal(await count(), before + 1);
  const id = headers.get('x-request-id');
  const line = app.lines.find((one) => one.event === 'request' && one.request_id === id);
  assert.ok(line?.event === 'request' && line.code === 'unauthenticated_request' && line.remote === '127.0.0.1');
});

rule('auth 17', 'No number of failed attempts slows down or locks a key', async () => {
  const key = await app.newKey();
  const wrong = withSecret(key, 'wrong');
  for (let attempt = 0; attempt < 100; attempt += 1) {
    assert.equal((await app.call('GET', PATH, { key: wrong })).status, 401);
  }
  assert.equal((await app.call('GET', PATH, { key })).status, 200);
});

rule('auth 19', 'A request acts on the account that owns its credential, and on no other', async () => {
  const [mine, theirs] = [await app.newKey({ name: 'Mine' }), await app.newKey({ name: 'Theirs' })];
  const changed = await app.call('PUT', PATH, { key: mine, json: { name: 'Changed', id: theirs.accountId } });
  assert.equal(changed.body.data.account.id, mine.accountId);
  const other = await app.call('GET', PATH, { key: theirs });
  assert.equal(other.body.data.account.name, 'Theirs');
  assert.equal(other.body.data.account.id, theirs.accountId);
  const mixed = await app.call('GET', PATH, { key: withId(mine, theirs.keyId) });
  assert.equal(mixed.status, 401);
});

test('last use is recorded once a minute, not on every request', async () => {
  await using fresh = await startApp();
  const key = await fresh.newKey();
  const commits = async () => {
    const { text } = await fresh.call('GET', '/metrics');
    return Number(/^reseal_store_group_commit_transactions_sum (\d+)$/m.exec(text)?.[1]);
  };
  await fresh.call('GET', PATH, { key });
  // A write queued later runs later.
  await fresh.app.store.probeWrite();
  const before = await commits();
  for (let request = 0; request < 20; request += 1) await fresh.call('GET', PATH, { key });
  await fresh.app.store.probeWrite();
  assert.equal((await commits()) - before, 1, 'only the probe of this test was written');
  fresh.advance(60_000);
  await fresh.call('GET', PATH, { key });
  await fresh.app.store.probeWrite();
  assert.equal((await commits()) - before, 3);
});
