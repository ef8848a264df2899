// Access tokens of the signing API: what gives one, where it works, and what ends it.
import assert from 'node:assert/strict';
import crypto, { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { after, mock, test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import { type Key, startApp } from '../../support/app.ts';
import { authorization, csc, digest, INVALID, newCloudKey, requireError, sign } from '../../support/cloud-keys.ts';
import { rule } from '../../support/contract.ts';
import { sendRaw } from '../../support/raw-http.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const HOUR = 3_600_000;
const UNKNOWN = [401, 'invalid_token', /HTTP Basic/] as const;
const basic = (text: string | Uint8Array) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
const basicOf = ({ keyId, authKey }: Key) => basic(`${keyId}:${authKey}`);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const post = (method: string, headers: Record<string, string>, json: unknown = {}, version = 'v2') =>
  app.call('POST', `/csc/${version}/${method}`, { headers, json });
const list = (token: string) => post('credentials/list', bearer(token));

async function login(key: Key, version = 'v2'): Promise<string> {
  const answer = await post('auth/login', basicOf(key), {}, version);
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(Object.keys(answer.body), ['access_token', 'expires_in']);
  return answer.body.access_token;
}

rule('csc 1', 'gives an access token that authenticates as `Authorization: Bearer` under `/csc`', async () => {
  const held = await newCloudKey(app);
  const { body } = await csc(app, 'auth/login', held.key, { rememberMe: true, clientData: 'x' });
  assert.equal(body.expires_in, 3_600);
  const tokens = [body.access_token, await login(held.key), await login(held.key, 'v1')];
  assert.equal(new Set(tokens).size, 3);
  for (const token of tokens) {
    assert.equal(Buffer.from(token, 'base64url').length, 32);
    for (const version of ['v1', 'v2']) {
      const answer = await post('credentials/list', bearer(token), {}, version);
      assert.deepEqual(answer.body, { credentialIDs: [held.id] }, answer.text);
    }
  }
  const hash = digest('sha256', 'x');
  const authorized = await post('credentials/authorize', bearer(tokens[0]), authorization(held.id, [hash]));
  assert.equal(authorized.status, 200, authorized.text);
  // The scheme is not case-sensitive, and wins over the two headers.
  const mixed = { authorization: `bEARER  ${tokens[0]}`, 'X-CC-Key-ID': 'x', 'X-CC-Auth-Key': 'x' };
  assert.equal((await post('credentials/list', mixed)).status, 200);
});

rule('csc 1', 'under `/csc`, and nowhere else', async () => {
  const key = await app.newKey();
  const token = await login(key);
  for (const headers of [
    bearer(token),
    basicOf(key),
    { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': token },
    { ...bearer(token), 'X-CC-Key-ID': key.keyId },
  ] as Record<string, string>[]) {
    const { status, body } = await app.call('GET', '/openapi/v3/account', { headers });
    assert.deepEqual([status, body.code], [401, 'unauthenticated_request'], JSON.stringify(Object.keys(headers)));
  }
  requireError(await csc(app, 'credentials/list', { ...key, authKey: token }), UNKNOWN, 'in place of the secret');
  requireError(await post('credentials/list', basic(`${key.keyId}:${token}`)), UNKNOWN, 'as the password');
});

rule('csc 2', 'with its key, with the suspension of its account or with `auth/revoke`', async () => {
  const disabled = await app.newKey();
  const ofDisabled = await login(disabled);
  await app.app.access.disableKey(disabled.keyId);
  requireError(await list(ofDisabled), [401, 'expired_token', /disabled/]);

  const suspended = await app.newKey();
  const ofSuspended = await login(suspended);
  await app.app.access.suspendAccount(suspended.accountId, null);
  requireError(await list(ofSuspended), UNKNOWN);
  requireError(await post('auth/login', basicOf(suspended)), [403, 'access_denied', /suspended/]);
  await app.app.access.resumeAccount(suspended.accountId);
  requireError(await list(ofSuspended), UNKNOWN, 'it does not come back');
  assert.equal((await list(await login(suspended))).status, 200);

  const key = await app.newKey();
  const [one, other] = [await login(key), await login(key)];
  const revoked = await post('auth/revoke', bearer(one), { token: other, token_type_hint: 'access_token' });
  assert.deepEqual([revoked.status, revoked.text], [204, '']);
  requireError(await list(other), UNKNOWN);
  assert.equal((await post('auth/revoke', bearer(one), { token: one }, 'v1')).status, 204);
  requireError(await list(one), UNKNOWN);
  requireError(await post('auth/revoke', bearer(one), { token: one }), UNKNOWN);
});

rule('csc 2', 'An access token ends after an hour, with its key', async () => {
  await using later = await startApp();
  const { accountId } = await later.newKey();
  const used = async (token: string) =>
    (await later.call('POST', '/csc/v2/credentials/list', { headers: bearer(token) })).status;
  const loginLater = async (key: Key) => (await csc(later, 'auth/login', key)).body;
  const lasting = await loginLater(await later.anotherKey(accountId, 'standard'));
  const short = await loginLater(await later.anotherKey(accountId, 'standard', later.now() + 90_500));
  assert.deepEqual([lasting.expires_in, short.expires_in], [3_600, 90], 'never longer than the key');
  later.advance(90_499);
  assert.deepEqual([await used(short.access_token), await used(lasting.access_token)], [200, 200]);
  later.advance(1);
  assert.equal(await used(short.access_token), 401);
  later.advance(HOUR - 90_500 - 1);
  assert.equal(await used(lasting.access_token), 200);
  later.advance(1);
  assert.equal(await used(lasting.access_token), 401);
});

rule('csc 2', 'it cannot be exchanged for another one', async () => {
  const key = await app.newKey();
  const token = await login(key);
  const exchanged = await post('auth/login', bearer(token), { refresh_token: token });
  requireError(exchanged, [401, 'invalid_token', /no access token/]);
  const withHeaders = { ...bearer(token), 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey };
  requireError(await post('auth/login', withHeaders), [401, 'invalid_token', /no access token/]);
});

rule('csc 3', 'A key has at most 100 access tokens; a further login ends the oldest', async () => {
  await using fresh = await startApp();
  const key = await fresh.newKey();
  const tokens: string[] = [];
  const other = (await csc(fresh, 'auth/login', await fresh.anotherKey(key.accountId, 'standard'))).body.access_token;
  for (let count = 0; count < 102; count += 1) {
    tokens.push((await csc(fresh, 'auth/login', key)).body.access_token);
    fresh.advance(1);
  }
  const works = async (token: string | undefined) =>
    (await fresh.call('POST', '/csc/v2/credentials/list', { headers: bearer(token ?? '') })).status === 200;
  assert.deepEqual(
    [await works(tokens[0]), await works(tokens[1]), await works(tokens[2]), await works(tokens.at(-1))],
    [false, false, true, true],
  );
  assert.ok(await works(other), 'those of another key stay');
});

rule('csc 4', 'Of an access token only a digest is stored, and it appears in no log line', async () => {
  await using fresh = await startApp();
  const key = await fresh.newKey();
  const { access_token: token } = (await csc(fresh, 'auth/login', key)).body;
  await csc(fresh, 'auth/revoke', key, { token: `${token}x` });
  await fresh.call('POST', '/csc/v2/credentials/list', { headers: bearer(token) });
  const hash = createHash('sha256').update(token).digest('hex');
  assert.equal((await fresh.app.store.accessTokens.findCaller(hash, fresh.now()))?.credential.keyId, key.keyId);
  await fresh.stop();
  const files = globSync('*', { cwd: fresh.folder }).map((name) => readFileSync(join(fresh.folder, name)));
  for (const needle of [token, Buffer.from(token, 'base64url')]) {
    for (const text of [...files, Buffer.from(fresh.output)]) assert.equal(text.includes(needle), false);
  }
  assert.ok(files.some((file) => file.includes(hash)));
});

rule('csc 5', 'a malformed `Authorization` header and an unknown access token get the same answer', async () => {
  const key = await app.newKey();
  const { keyId, authKey } = key;
  const [theirs, token] = [await app.newKey(), await login(key)];
  const attempts: Record<string, string>[] = [
    basic(`${keyId}:wrong`),
    basic(`unknown:${authKey}`),
    basic(`${theirs.keyId}:${authKey}`),
    basic(`${keyId}:${authKey}:`),
    basic(`${keyId}:${authKey}\n`),
    basic(`:${keyId}:${authKey}`),
    basic(`${keyId}\0:${authKey}`),
    basic(`${keyId}:密码`),
    basic(`密码:${authKey}`),
    basic(Uint8Array.of(0xff, 0xfe, 0x3a, 0xc3, 0x28)),
    basic(keyId),
    basic(':'),
    basic(`${'x'.repeat(9_000)}:${authKey}`),
    { authorization: 'Basic' },
    { authorization: 'Basic ' },
    { authorization: `Basic ${keyId}:${authKey}` },
    { authorization: `${basicOf(key).authorization}!` },
    { authorization: `${basicOf(key).authorization}, ${basicOf(key).authorization}` },
    { authorization: `Basic${basicOf(key).authorization.slice(6)}` },
    { authorization: 'Bearer' },
    bearer('x'),
    bearer('x'.repeat(12_000)),
    bearer(`${token}x`),
    bearer(token.toUpperCase()),
    bearer(createHash('sha256').update(token).digest('hex')),
    bearer(`${token} ${token}`),
    bearer(authKey),
    { authorization: `Digest ${token}` },
    // Authorization decides, although the two headers would do.
    { ...bearer('x'), 'X-CC-Key-ID': keyId, 'X-CC-Auth-Key': authKey },
    { ...basic('x'), 'X-CC-Key-ID': keyId, 'X-CC-Auth-Key': authKey },
  ];
  const expected = (await post('credentials/list', {})).body;
  for (const headers of attempts) {
    for (const method of ['credentials/list', 'signatures/signHash']) {
      const answer = await post(method, headers);
      requireError(answer, UNKNOWN, JSON.stringify(headers));
      assert.deepEqual(answer.body, expected);
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic .*, Bearer /);
    }
    if (!/^bearer/i.test(headers.authorization ?? ''))
      assert.deepEqual((await post('auth/login', headers)).body, expected);
  }
  const tooLong = `POST /csc/v2/auth/login HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${'A'.repeat(17_000)}\r\n\r\n`;
  assert.equal((await sendRaw(app.url, tooLong)).status, 431);
});

rule('csc 5', 'An unknown key id, a wrong secret', async () => {
  // The comparison is the cost: timing itself would be flaky.
  const key = await app.newKey();
  const compare = mock.method(crypto, 'timingSafeEqual');
  syncBuiltinESMExports();
  try {
    for (const attempt of [`${key.keyId}:wrong`, 'unknown:wrong']) {
      const before = compare.mock.callCount();
      requireError(await post('auth/login', basic(attempt)), UNKNOWN);
      assert.equal(compare.mock.callCount() - before, 1, attempt);
    }
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
});

test('a token acts for its account and with the permissions of its kind only', async () => {
  const held = await newCloudKey(app);
  const stranger = await login(await app.newKey());
  requireError(
    await post('credentials/info', bearer(stranger), { credentialID: held.id }),
    INVALID(/^Invalid parameter credentialID/),
  );
  const token = await login(held.key);
  for (const foreign of [stranger, await login(await app.anotherKey(held.key.accountId, 'standard'))]) {
    const refused = await post('auth/revoke', bearer(foreign), { token });
    requireError(refused, INVALID(/^Invalid string parameter token/));
  }
  assert.equal((await list(token)).status, 200, 'it was not revoked by another key');
  for (const kind of CREDENTIAL_KINDS.filter((one) => one !== 'standard')) {
    const limited = await login(await app.anotherKey(held.key.accountId, kind));
    assert.deepEqual((await list(limited)).body, { credentialIDs: [held.id] }, kind);
    const refused = await post('credentials/authorize', bearer(limited), authorization(held.id, ['x']));
    requireError(refused, [403, 'unauthorized_client', /./], kind);
  }
  assert.equal((await sign(app, held, [digest('sha256', 'x')])).status, 200);
});

test('login and revocation validate their parameters, and are audited without the token', async () => {
  const key = await app.newKey();
  const token = await login(key);
  for (const [method, json, phrase] of [
    ['auth/login', { rememberMe: 'yes' }, /^Invalid parameter rememberMe/],
    ['auth/revoke', {}, /^Missing \(or invalid type\) string parameter token/],
    ['auth/revoke', { token: 7 }, /^Missing \(or invalid type\) string parameter token/],
    ['auth/revoke', { token, token_type_hint: 'x' }, /^Invalid parameter token_type_hint/],
    ['auth/revoke', { token: `${token}x` }, /^Invalid string parameter token/],
  ] as const) {
    requireError(await csc(app, method, key, json), INVALID(phrase), JSON.stringify(json));
  }
  assert.equal((await csc(app, 'auth/revoke', key, { token })).status, 204);
  const entries = await app.app.store.audit.listOf(key.accountId, { limit: 100 });
  const ours = entries.filter(({ action }) => action.startsWith('access-token:'));
  assert.deepEqual(
    ours.map(({ action, actor, subject, details }) => [action, actor, subject, details]),
    [
      ['access-token:issued', key.keyId, key.keyId, { expires_at: app.now() + HOUR }],
      ['access-token:revoked', key.keyId, key.keyId, {}],
    ],
  );
  assert.ok(!JSON.stringify(entries).includes(token));
});
