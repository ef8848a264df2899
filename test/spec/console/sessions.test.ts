// Sessions of the console: what begins and ends one, what it may do, and where it counts.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { CREDENTIAL_KINDS, permissionsOf } from '../../../src/domain/access/credential.ts';
import { type Answer, startApp } from '../../support/app.ts';
import { post, signedIn, signIn, signInAgain, signInOperator, withSession } from '../../support/console.ts';
import { rule } from '../../support/contract.ts';
import { newOrder } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const secure = await startApp({ RESEAL_PUBLIC_URL: 'https://certs.example.com/pki' });
after(() => secure[Symbol.asyncDispose]());

const HOUR = 3_600_000;
const outcome = ({ status, body }: Answer) => [status, body?.code];
const UNAUTHENTICATED = [401, 'unauthenticated_request'];

rule('console 1', 'sets a cookie with a token of 256 random bits, which is new at each sign-in', async () => {
  const key = await app.newKey();
  const [first, second] = [await signIn(app, key), await signIn(app, key)];
  for (const { token } of [first, second]) assert.equal(Buffer.from(token, 'base64url').length, 32);
  assert.notEqual(first.token, second.token);
  // Session fixation: a token that the browser had before is not taken over.
  const planted = 'A'.repeat(43);
  const fixed = await signIn(app, key, { cookie: `reseal_console=${planted}` });
  assert.notEqual(fixed.token, planted);
  assert.deepEqual(
    outcome(await withSession(app, { cookie: `reseal_console=${planted}` })('GET', 'sessions')),
    UNAUTHENTICATED,
  );
  // Twice in one header: one of the two may be planted by another host of the domain.
  const both = `${first.cookie}; reseal_console=${planted}`;
  assert.deepEqual(outcome(await withSession(app, { cookie: both })('GET', 'sessions')), UNAUTHENTICATED);
  for (const wrong of [{ secret: 'x' }, { key_id: 'x' }, { secret: '' }]) {
    const answer = await post(app, 'session', { key_id: key.keyId, secret: key.authKey, ...wrong });
    assert.deepEqual(outcome(answer), UNAUTHENTICATED);
    assert.equal(answer.headers.get('set-cookie'), null);
  }
  assert.deepEqual(outcome(await post(app, 'session', { key_id: key.keyId })), [400, 'invalid_parameters']);
});

rule('console 2', '`Secure` and named `__Host-reseal`, elsewhere `reseal_console`', async () => {
  const { setCookie } = await signIn(app, await app.newKey());
  assert.match(setCookie, /^reseal_console=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/);
  const key = await secure.newKey();
  const own = signedIn(await post(secure, 'session', { key_id: key.keyId, secret: key.authKey }));
  assert.match(own.setCookie, /^__Host-reseal=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
  const there = withSession(secure, own);
  assert.equal((await there('GET', 'session')).body.data.key_id, key.keyId);
  // The other name does not count there.
  const other = withSession(secure, { cookie: `reseal_console=${own.token}` });
  assert.equal((await other('GET', 'session')).body.data.kind, 'none');
  const out = await there('DELETE', 'session');
  assert.match(out.headers.get('set-cookie') ?? '', /^__Host-reseal=; Max-Age=0; Path=\/; .*; Secure$/);
});

rule('console 3', 'only SHA-256 digests are stored, and they appear in no log line', async () => {
  const { token } = await signIn(app, await app.newKey());
  await app.app.operators.create('digests', 'view');
  const link = (await app.app.operators.makeLink('digests')).token.reveal();
  const files = () => globSync('reseal.db*', { cwd: app.folder }).map((one) => readFileSync(join(app.folder, one)));
  const isStored = (text: string) => files().some((bytes) => bytes.includes(text));
  for (const secret of [token, link]) {
    assert.equal(isStored(secret), false);
    assert.equal(isStored(createHash('sha256').update(secret).digest('hex')), true);
  }
  const own = signedIn(await post(app, 'operator-session', { token: link }));
  for (const secret of [token, link, own.token]) assert.equal(app.output.includes(secret), false);
});

rule('console 4', 'without a live session `kind` is `none`, and that is no error', async () => {
  for (const kind of CREDENTIAL_KINDS) {
    const key = await app.newKey({ name: 'Acme 有限公司' }, kind);
    const { session, cookie } = await signIn(app, key);
    assert.deepEqual(session, {
      kind: 'account',
      id: session.id,
      account: { id: key.accountId, name: 'Acme 有限公司' },
      key_id: key.keyId,
      permissions: permissionsOf(kind),
      operator: null,
      expires_at: new Date(app.now() + 12 * HOUR).toISOString(),
    });
    assert.deepEqual((await withSession(app, { cookie })('GET', 'session')).body.data, session);
  }
  const { session } = await signInOperator(app, 'shown', 'act');
  assert.deepEqual([session.kind, session.account, session.key_id], ['operator', null, null]);
  assert.deepEqual(session.operator, { name: 'shown', role: 'act' });
  const none = await app.call('GET', '/console/api/session');
  assert.deepEqual([none.status, none.body.data.kind, none.body.data.permissions], [200, 'none', []]);
});

rule('console 5', 'after twelve hours, after an hour without a request, or with its key', async () => {
  const own = await startApp();
  try {
    const key = await own.newKey();
    const [idle, busy] = [await signIn(own, key), await signIn(own, key)];
    const kindOf = async (one: { cookie: string }) => (await withSession(own, one)('GET', 'session')).body.data.kind;
    for (let half = 1; half < 24; half += 1) {
      own.advance(HOUR / 2);
      assert.equal(await kindOf(busy), 'account', `after ${half} half hours`);
      // The write of "last seen" is not awaited by the request.
      await own.app.store.probeWrite();
    }
    assert.equal(await kindOf(idle), 'none');
    own.advance(HOUR / 2);
    assert.equal(await kindOf(busy), 'none');
    const end = own.now() + HOUR / 4;
    const last = await signIn(own, await own.anotherKey(key.accountId, 'standard', end));
    assert.equal(last.session.expires_at, new Date(end).toISOString());
    assert.match(last.setCookie, new RegExp(`Max-Age=${(end - own.now()) / 1_000};`));
    own.advance(HOUR / 4);
    assert.equal(await kindOf(last), 'none');
  } finally {
    await own.stop();
  }
});

rule(
  'console 6',
  'it is refused once the key is disabled or has expired, and once the account is suspended',
  async () => {
    const { accountId, ...first } = await app.newKey();
    const keys = [{ accountId, ...first }, await app.anotherKey(accountId, 'standard')] as const;
    const [disabled, rotated] = [await signIn(app, keys[0]), await signIn(app, keys[1])];
    const read = (one: { cookie: string }) => withSession(app, one)('GET', 'account/account');
    assert.equal((await read(disabled)).status, 200);
    await app.app.access.disableKey(keys[0].keyId);
    assert.deepEqual(outcome(await read(disabled)), [403, 'api_key_disabled']);
    await app.app.access.rotateKey(keys[1].keyId, 0);
    assert.deepEqual(outcome(await read(rotated)), [403, 'api_key_disabled']);
    // One whose key is refused can still sign out.
    assert.equal((await withSession(app, disabled)('DELETE', 'session')).status, 200);
    assert.deepEqual(outcome(await read(disabled)), UNAUTHENTICATED);

    const third = await app.anotherKey(accountId, 'standard');
    const suspended = await signIn(app, third);
    await app.app.access.suspendAccount(accountId, null);
    assert.deepEqual(outcome(await read(suspended)), UNAUTHENTICATED);
    assert.deepEqual(outcome(await post(app, 'session', { key_id: third.keyId, secret: third.authKey })), [
      403,
      'account_suspended',
    ]);
    await app.app.access.resumeAccount(accountId);
    assert.deepEqual(outcome(await read(suspended)), UNAUTHENTICATED, 'what ended does not live again');

    const limited = withSession(app, await signIn(app, await app.newKey({}, 'integration_key')));
    assert.deepEqual(outcome(await limited('PUT', 'account/account', { json: { name: 'x' } })), [
      403,
      'permission_denied',
    ]);
  },
);

rule('console 7', 'signs out: afterwards the token is worth nothing', async () => {
  const own = await signIn(app, await app.newKey());
  const call = withSession(app, own);
  const out = await call('DELETE', 'session');
  assert.equal(out.body.data.kind, 'none');
  assert.match(out.headers.get('set-cookie') ?? '', /^reseal_console=; Max-Age=0;/);
  assert.deepEqual(outcome(await call('GET', 'account/orders')), UNAUTHENTICATED);
  assert.equal((await call('DELETE', 'session')).status, 200, 'signing out twice is no error');
});

rule('console 8', 'lists the live sessions of the same key or operator and of no other', async () => {
  const key = await app.newKey();
  const [first, second] = [await signIn(app, key), await signIn(app, key)];
  const other = await signIn(app, await app.anotherKey(key.accountId, 'standard'));
  const operator = await signInOperator(app, 'lister', 'view');
  const call = withSession(app, first);
  const ids = async () => (await call('GET', 'sessions')).body.data.sessions.map((one: { id: string }) => one.id);
  assert.deepEqual(await ids(), [second.session.id, first.session.id]);
  const [, own] = (await call('GET', 'sessions')).body.data.sessions;
  assert.deepEqual(Object.keys(own), ['id', 'is_current', 'created_at', 'last_seen_at', 'expires_at', 'network']);
  assert.deepEqual([own.is_current, own.network], [true, '127.0.0.1']);
  for (const foreign of [other, operator]) {
    const answer = await call('DELETE', `sessions/${foreign.session.id}`);
    assert.deepEqual(outcome(answer), [404, 'session_not_found']);
    assert.notEqual((await withSession(app, foreign)('GET', 'session')).body.data.kind, 'none');
  }
  assert.equal((await call('DELETE', `sessions/${second.session.id}`)).status, 200);
  assert.deepEqual(await ids(), [first.session.id]);
  assert.deepEqual(outcome(await withSession(app, second)('GET', 'sessions')), UNAUTHENTICATED);
});

rule('errors session_not_found', 'there is no live session of the console with that identifier', async () => {
  const call = withSession(app, await signIn(app, await app.newKey()));
  const answer = await call('DELETE', 'sessions/01m7fh87g0441480sp164n3jn9', {
    headers: { 'accept-language': 'zh-CN' },
  });
  assert.deepEqual(outcome(answer), [404, 'session_not_found']);
  assert.match(answer.body.message, /没有此会话/);
});

rule('console 9', 'at most twenty sessions: a further sign-in ends the oldest', async () => {
  const own = await startApp();
  try {
    await own.app.operators.create('many', 'view');
    const all: Awaited<ReturnType<typeof signInAgain>>[] = [];
    for (let count = 0; count < 21; count += 1) all.push(await signInAgain(own, 'many'));
    const kinds = await Promise.all(
      all.map(async (one) => (await withSession(own, one)('GET', 'session')).body.data.kind),
    );
    assert.deepEqual(kinds, ['none', ...Array(20).fill('operator')]);
  } finally {
    await own.stop();
  }
});

rule('console 10', '`/openapi/v3`, `/csc` and `/metrics` ignore it', async () => {
  const { cookie } = await signIn(app, await app.newKey());
  const headers = { cookie };
  assert.deepEqual(outcome(await app.call('GET', '/openapi/v3/account', { headers })), UNAUTHENTICATED);
  assert.equal((await app.call('POST', '/csc/v2/credentials/list', { headers, json: {} })).status, 401);
  const own = await startApp({ RESEAL_METRICS_TOKEN: 'a-long-random-text' });
  try {
    const operator = await signInOperator(own, 'metrics', 'act');
    const read = (headers: Record<string, string>) => own.call('GET', '/metrics', { headers });
    assert.deepEqual([(await read({ cookie: operator.cookie })).status, (await read({})).status], [403, 403]);
  } finally {
    await own.stop();
  }
});

rule('console 11', 'the two headers, HTTP Basic and access tokens are ignored: only a session counts', async () => {
  const key = await app.newKey();
  const basic = Buffer.from(`${key.keyId}:${key.authKey}`).toString('base64');
  for (const call of [{ key }, { headers: { authorization: `Basic ${basic}` } }]) {
    for (const path of ['account/account', 'account/nothing', 'operator/accounts', 'sessions']) {
      assert.deepEqual(outcome(await app.call('GET', `/console/api/${path}`, call)), UNAUTHENTICATED, path);
    }
  }
  const { cookie } = await signIn(app, await app.newKey());
  const both = await app.call('GET', '/console/api/account/account', { key, headers: { cookie } });
  assert.notEqual(both.body.data.account.id, key.accountId, 'the session decides');
});

rule('console 12', 'every operation of `/openapi/v3`, with a session in place of the two headers', async () => {
  const { body: document } = await app.call('GET', '/openapi.json');
  const order = await newOrder(app);
  const call = withSession(app, await signIn(app, order.key));
  let compared = 0;
  for (const [path, methods] of Object.entries<Record<string, unknown>>(document.paths)) {
    if (!path.startsWith('/openapi/v3/')) continue;
    for (const method of Object.keys(methods).map((one) => one.toUpperCase())) {
      // Ids that are not there: nothing is changed, and the operation itself answers.
      const rest = path.slice('/openapi/v3/'.length).replaceAll(/\{\w+\}/g, order.id.slice(0, -1));
      const json = method === 'GET' ? {} : { json: { nothing: true } };
      const [own, other] = [
        await call(method, `account/${rest}`, json),
        await app.call(method, `/openapi/v3/${rest}`, { key: order.key, ...json }),
      ];
      const { request_id: _own, ...answer } = own.body ?? {};
      const { request_id: _other, ...expected } = other.body ?? {};
      // The test of saved settings and the account itself have state of their own: rates and rows of the audit log.
      if (!/callback|audit/.test(path)) assert.deepEqual(answer, expected, `${method} ${path}`);
      assert.equal(own.status, other.status, `${method} ${path}`);
      compared += 1;
    }
  }
  assert.ok(compared >= 29, `${compared} operations`);
  // Line breaks in the log: the order is named as under /openapi/v3.
  const shown = await call('GET', `account/orders/${order.id}`);
  assert.equal(shown.body.data.order?.id ?? shown.body.data.id, order.id);
  const id = shown.headers.get('x-request-id');
  const line = app.lines.find((one) => one.event === 'request' && one.request_id === id);
  assert.ok(line?.event === 'request');
  assert.deepEqual([line.order_id, line.account_id, line.key_id], [order.id, order.key.accountId, order.key.keyId]);
});

rule('console 13', 'What is under `/console/api` is not in the OpenAPI document', async () => {
  const { body } = await app.call('GET', '/openapi.json');
  assert.deepEqual(
    Object.keys(body.paths).filter((path) => path.startsWith('/console')),
    [],
  );
  const ids = Object.values<Record<string, { operationId: string }>>(body.paths).flatMap((one) =>
    Object.values(one).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
});

rule('console 14', 'A session acts on the account of its key, and on no other', async () => {
  const order = await newOrder(app);
  const stranger = withSession(app, await signIn(app, await app.newKey()));
  for (const [method, path] of [
    ['GET', `orders/${order.id}`],
    ['PUT', `orders/${order.id}/cancel`],
    ['GET', `certs/${order.certificateId}`],
    ['POST', `certs/${order.certificateId}/revoke`],
  ] as const) {
    assert.equal((await stranger(method, `account/${path}`)).status, 404, path);
  }
  assert.deepEqual((await stranger('GET', 'account/orders')).body.data.orders, []);
});

rule(
  'console 15',
  '`via` is `console` in the rows of what was done with a session, and null in all others',
  async () => {
    const key = await app.newKey();
    const call = withSession(app, await signIn(app, key));
    await call('PUT', 'account/account', { json: { name: 'In the console' } });
    await app.call('PUT', '/openapi/v3/account', { key, json: { name: 'By the key' } });
    const { audit } = (await call('GET', 'account/account/audit')).body.data;
    const changes = audit.filter(({ action }: { action: string }) => action === 'account:changed');
    assert.deepEqual(
      changes.map(({ actor, via, details }: Record<string, unknown>) => [actor, via, details]),
      [
        [key.keyId, 'console', { name: 'In the console' }],
        [key.keyId, null, { name: 'By the key' }],
      ],
    );
    const { entries } = await app.app.store.audit.search({ actor: key.keyId }, { limit: 9 });
    assert.deepEqual(new Set(entries.map(({ actor }) => actor)), new Set([key.keyId, `console:${key.keyId}`]));
  },
);

rule('console 16', 'Signing in, signing out and ending a session are in the audit log', async () => {
  const key = await app.newKey();
  const [first, second] = [await signIn(app, key), await signIn(app, key)];
  await withSession(app, first)('DELETE', `sessions/${second.session.id}`);
  await withSession(app, first)('DELETE', 'session');
  const { entries } = await app.app.store.audit.search({ actor: key.keyId }, { limit: 9 });
  assert.deepEqual(
    entries.map(({ action, subject, actor, accountId }) => [action, subject, actor, accountId]),
    [
      ['console:signed_out', first.session.id],
      ['console:session_ended', second.session.id],
      ['console:signed_in', second.session.id],
      ['console:signed_in', first.session.id],
    ].map((row) => [...row, `console:${key.keyId}`, key.accountId]),
  );
  const operator = await signInOperator(app, 'audited', 'act');
  await withSession(app, operator)('DELETE', 'session');
  const own = await app.app.store.audit.search({ actor: 'audited' }, { limit: 9 });
  assert.deepEqual(
    own.entries.map(({ action, actor, accountId }) => [action, actor, accountId]),
    [
      ['console:signed_out', 'operator:audited', null],
      ['console:signed_in', 'operator:audited', null],
    ],
  );
  // What an operator of the console does to an account carries the name as well, and hides it from the account.
  const call = { actor: 'operator:audited', requestId: 'r' };
  await app.app.accessAs(call).changeQuotas(key.accountId, { openOrders: 7 });
  const [row] = (await app.app.store.audit.search({ actor: 'audited' }, { limit: 1 })).entries;
  assert.deepEqual([row?.action, row?.actor, row?.requestId], ['account:quota_changed', 'operator:audited', 'r']);
  const shown = await app.call('GET', '/openapi/v3/account/audit', { key });
  assert.deepEqual([shown.body.data.audit.at(-1).actor, shown.body.data.audit.at(-1).details], ['operator', {}]);
});
