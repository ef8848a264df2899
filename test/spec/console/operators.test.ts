// What operators see and do in the console, over HTTP.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { startApp } from '../../support/app.ts';
import { operatorCalls, signIn, signInOperator, withSession } from '../../support/console.ts';
import { rule } from '../../support/contract.ts';
import { waitFor } from '../../support/deliveries.ts';
import { reseal } from '../../support/in-process.ts';
import { newOrder } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const alice = await signInOperator(app, 'alice', 'act');
const { call: operator, ask, data, act } = operatorCalls(app, alice);
const lastEntries = async (query: string) => (await data(`audit?${query}&limit=9`)).audit;

const ROUTES: readonly (readonly [string, string])[] = [
  ...[
    'attention',
    'history',
    'doctor',
    'authority',
    'accounts',
    'accounts/x',
    'waiting',
    'lanes',
    'lanes/x',
    'audit',
  ].map((path) => ['GET', path] as const),
  ...['find?text=x', 'orders/x/story', 'operators'].map((path) => ['GET', path] as const),
  ...['accounts', 'accounts/x/suspend', 'accounts/x/resume', 'accounts/x/keys', 'keys/x/rotate', 'keys/x/disable'].map(
    (path) => ['POST', path] as const,
  ),
  ...['lanes/x/resume', 'lanes/x/resend-failed', 'sessions/x/end'].map((path) => ['POST', path] as const),
  ['PUT', 'accounts/x/quotas'],
];

rule('console 61', 'answers to sessions of operators only', async () => {
  const key = await app.newKey();
  const account = withSession(app, await signIn(app, key));
  const looking = withSession(app, await signInOperator(app, 'looking', 'view'));
  for (const [method, path] of ROUTES) {
    const json = method === 'GET' ? {} : { json: { name: 'x', overlap_hours: 1 } };
    const asAccount = await account(method, `operator/${path}`, json);
    assert.deepEqual([asAccount.status, asAccount.body.code], [401, 'unauthenticated_request'], path);
    const headers = { 'sec-fetch-site': 'same-origin' };
    const withKey = await app.call(method, `/console/api/operator/${path}`, { key, headers, ...json });
    assert.equal(withKey.status, 401, path);
    if (method === 'GET') continue;
    const asViewer = await looking(method, `operator/${path}`, json);
    assert.deepEqual([asViewer.status, asViewer.body.code], [403, 'permission_denied'], path);
  }
  const document = await app.call('GET', '/openapi.json');
  assert.ok(!document.text.includes('/console/api'));
});

rule('console 62', 'The secret is in the answer that creates or rotates a key, and in no other', async () => {
  const account = await act('accounts', { name: ' Acme <b> ', kind: 'managed_pki', locale: 'zh-CN' });
  assert.deepEqual([account.name, account.kind, account.locale], ['Acme <b>', 'managed_pki', 'zh-CN']);
  const created = await act(`accounts/${account.id}/keys`, { kind: 'integration_key', expires_in_days: 30 });
  const key = { accountId: account.id, keyId: created.key.key_id, authKey: created.auth_key };
  assert.equal((await app.call('GET', '/openapi/v3/orders', { key })).status, 200);
  assert.equal(Date.parse(created.key.expires_at), app.now() + 30 * 86_400_000);
  const rotated = await act(`keys/${key.keyId}/rotate`, { overlap_hours: 2 });
  const successor = { accountId: account.id, keyId: rotated.key.key_id, authKey: rotated.auth_key };
  assert.equal((await app.call('GET', '/openapi/v3/orders', { key: successor })).status, 200);
  assert.equal(Date.parse(rotated.old.expires_at), app.now() + 2 * 3_600_000);
  for (const path of [`accounts/${account.id}`, 'audit', `find?text=${key.keyId}`]) {
    const { text } = await ask(path);
    for (const secret of [key.authKey, successor.authKey]) assert.ok(!text.includes(secret), path);
  }
  for (const secret of [key.authKey, successor.authKey]) assert.ok(!app.output.includes(secret));
  const refused: readonly (readonly [string, object, string])[] = [
    ['accounts', { name: ' ' }, 'name'],
    ['accounts', { name: 'x', kind: 'other' }, 'kind'],
    [`accounts/${account.id}/keys`, { expires_in_days: 0 }, 'expires_in_days'],
    [`keys/${successor.keyId}/rotate`, { overlap_hours: -1 }, 'overlap_hours'],
  ];
  for (const [path, json, field] of refused) {
    const { status, body } = await operator('POST', `operator/${path}`, { json });
    assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', field]);
  }
  assert.equal((await operator('POST', 'operator/accounts/none/keys', { json: {} })).body.code, 'account_not_found');
});

rule('console 63', 'in the audit log with `operator:` and the name, and with the id of the request', async () => {
  const { id } = await act('accounts', { name: 'Audited' });
  await act(`accounts/${id}/suspend`, { reason: 'invoice 4711' });
  const entries = await lastEntries(`account=${id}`);
  assert.deepEqual(
    entries.map(({ action, actor }: { action: string; actor: string }) => [action, actor]),
    [
      ['account:suspended', 'operator:alice'],
      ['account:created', 'operator:alice'],
    ],
  );
  const [{ request_id: request, details }] = entries;
  assert.equal(details.reason, 'invoice 4711');
  assert.equal((await lastEntries(`request=${request}`))[0].id, entries[0].id);
});

rule('console 64', 'found by a part of their name or by the id', async () => {
  const key = await app.newKey({ name: 'Needle & Co' });
  const ids = async (query: string) =>
    (await data(`accounts?query=${encodeURIComponent(query)}`)).accounts.map(({ id }: { id: string }) => id);
  for (const text of ['needle', 'EEDLE &', key.accountId, ` ${key.keyId} `]) {
    assert.deepEqual(await ids(text), [key.accountId], text);
  }
  assert.deepEqual(await ids('no such name'), []);
  const first = await data('accounts?limit=1');
  assert.equal(first.accounts[0].id, key.accountId);
  const second = await data(`accounts?limit=1&after=${first.next_after}`);
  assert.ok(second.accounts[0].id < key.accountId);
  assert.equal((await ask(`accounts?query=${'x'.repeat(201)}`)).body.field, 'query');
});

rule('console 65', 'suspends and resumes accounts, disables keys, and sets quotas', async () => {
  const key = await app.newKey();
  const outcome = async () => (await app.call('GET', '/openapi/v3/orders', { key })).body.code;
  await act(`accounts/${key.accountId}/suspend`);
  assert.equal(await outcome(), 'account_suspended');
  await act(`accounts/${key.accountId}/resume`);
  assert.equal(await outcome(), 'success');
  const { quotas } = await act(`accounts/${key.accountId}/quotas`, { open_orders: 7 }, 'PUT');
  assert.deepEqual(
    [quotas.open_orders.limit, quotas.open_orders.is_default, quotas.stored_mib.is_default],
    [7, false, true],
  );
  const reset = await act(`accounts/${key.accountId}/quotas`, { open_orders: null, stored_mib: 5 }, 'PUT');
  assert.deepEqual([reset.quotas.open_orders.is_default, reset.quotas.stored_mib.limit], [true, 5]);
  assert.deepEqual((await app.app.access.showQuotas(key.accountId)).storedBytes.limit, 5 * 1024 * 1024);
  const disabled = await act(`keys/${key.keyId}/disable`);
  assert.equal(disabled.state, 'disabled');
  assert.equal(await outcome(), 'api_key_disabled');
});

rule('console 66', 'lists what waits for validation in all accounts, the longest first', async () => {
  const [one, other] = [await app.newKey({ name: 'One' }), await app.newKey({ name: 'Other' })];
  const first = await newOrder(app, { commonName: 'first.example.com', vouches: false }, one);
  const second = await newOrder(app, { commonName: 'second.example.com', vouches: false }, other);
  await app.issuance.proveDomains.prove(one.accountId, first.id).catch(() => {});
  const list = async (language: string) => (await data('waiting', { 'accept-language': language })).waiting;
  const waiting = await list('en');
  assert.deepEqual(
    waiting.map(({ order_id: id, account }: { order_id: string; account: { name: string } }) => [id, account.name]),
    [
      [first.id, 'One'],
      [second.id, 'Other'],
    ],
  );
  const [{ problems, names, since }] = waiting;
  assert.deepEqual([names, problems[0].name], [['first.example.com'], 'first.example.com']);
  assert.ok(Math.abs(Date.parse(since) - app.now()) < 60_000);
  const [chinese] = await list('zh-CN');
  assert.match(chinese.problems[0].reason, /\p{Script=Han}/u);
  const page = await data('waiting?limit=1');
  assert.equal((await data(`waiting?limit=1&after=${page.next_after}`)).waiting[0].order_id, second.id);
});

/** An account whose receiver cannot be found, with a failed attempt, and its lane as after many of them. */
async function failingReceiver() {
  const key = await app.newKey({ name: 'Failing' });
  const settings = { url: 'https://receiver.invalid/hook', access_key: 'the-access-key' };
  assert.equal((await app.call('PUT', '/openapi/v3/account/callback', { key, json: settings })).status, 200);
  const order = await newOrder(app, { commonName: 'called.example.com' }, key);
  await waitFor(
    'a callback is attempted',
    async () => (await data(`lanes/${key.accountId}`)).deliveries[0]?.attempts.length,
  );
  using db = new DatabaseSync(join(app.folder, 'reseal.db'));
  db.exec('pragma busy_timeout = 5000');
  const lane =
    'update callback_lane set failures = 9, trips = 2, ailing_since = ?, closed_until = ?, due_at = ? where account_id = ?';
  const later = app.now() + 600_000;
  db.prepare(lane).run(app.now() - 600_000, later, later, key.accountId);
  return { key, order, db: () => new DatabaseSync(join(app.folder, 'reseal.db')) };
}
const failing = await failingReceiver();

rule('console 67', 'lists callback lanes that are `degraded` or `closed`', async () => {
  const { accountId } = failing.key;
  const stateOf = async (query = '') =>
    (await data(`lanes${query}`)).lanes.find(({ account }: { account: { id: string } }) => account.id === accountId)
      ?.state;
  assert.equal(await stateOf(), 'closed');
  app.advance(700_000);
  assert.equal(await stateOf(), 'degraded');
  await act(`accounts/${accountId}/suspend`);
  assert.equal(await stateOf(), 'held');
  await act(`accounts/${accountId}/resume`);
  assert.equal(await stateOf(), undefined);
  assert.equal(await stateOf('?all=true'), 'healthy');
});

rule('console 68', 'closes the circuit breaker of a lane', async () => {
  const { accountId } = failing.key;
  const stateOf = async () => {
    const { lanes } = await data('lanes?all=true');
    return lanes.find(({ account }: { account: { id: string } }) => account.id === accountId).state;
  };
  const atCommandLine = async () => {
    const { code, err } = await reseal(['callback', 'resume', accountId], { RESEAL_DATA_DIR: app.folder }, app.now);
    assert.equal(code, 0, err);
  };
  for (const resume of [atCommandLine, () => act(`lanes/${accountId}/resume`)]) {
    using db = failing.db();
    db.exec('pragma busy_timeout = 5000');
    const later = app.now() + 600_000;
    db.prepare('update callback_lane set trips = 1, failures = 8, closed_until = ?, due_at = ?').run(later, later);
    const event = "update outbox set state = 'failed', reason = 'receiver_down', settled_at = ? where account_id = ?";
    db.prepare(event).run(app.now(), accountId);
    assert.equal(await stateOf(), 'closed');
    await resume();
    assert.equal(await stateOf(), 'healthy');
  }
  assert.deepEqual(await act(`lanes/${accountId}/resend-failed`), { resent: 1, is_complete: true });
  assert.notEqual((await data(`lanes/${accountId}`)).deliveries[0].state, 'failed');
  const actions = (await lastEntries(`account=${accountId}`)).map(({ action }: { action: string }) => action);
  assert.deepEqual(actions.slice(0, 2), ['callback:resent', 'callback:resumed']);
  const { accountId: without } = await app.newKey();
  const refused = await operator('POST', `operator/lanes/${without}/resume`, { json: {} });
  assert.equal(refused.body.code, 'callback_not_configured');
});

rule('console 69', 'searches the audit log of all accounts', async () => {
  const { key, order } = failing;
  const count = async (query: string) => (await data(`audit?${query}`)).audit.length;
  assert.ok((await count(`order=${order.id}`)) > 0);
  assert.equal(await count(`certificate=${order.certificateId}&actor=none`), 0);
  assert.ok((await count(`actor=alice&account=${key.accountId}`)) > 0);
  const soon = new Date(app.now() + 1_000).toISOString();
  assert.equal(await count(`since=${soon}`), 0);
  assert.ok((await count(`until=${soon}&account=`)) > 0);
  assert.equal((await ask('audit?since=yesterday')).body.field, 'since');
  assert.equal((await ask('audit?order=none')).body.code, 'order_not_found');
});

rule('console 70', 'finds what a text stands for in any account', async () => {
  const { order, key } = failing;
  const { found, stories } = await data('find?text=called.example.com');
  assert.deepEqual(found[0], {
    ...{
      kind: 'name',
      text: 'called.example.com',
      account_id: key.accountId,
      order_id: order.id,
      certificate_id: null,
    },
  });
  const story = await data(`orders/${order.id}/story`);
  assert.deepEqual(stories, [story]);
  const events = story.events.map(({ event }: { event: string }) => event);
  for (const event of ['order:placed', 'signed', 'callback attempt']) assert.ok(events.includes(event), event);
  assert.equal((await ask('find?text=')).body.field, 'text');
  assert.equal((await ask('orders/none/story')).status, 404);
});

rule('console 75', 'an operator may end any session', async () => {
  const mine = withSession(app, await signInOperator(app, 'ending', 'act'));
  const theirs = withSession(app, await signIn(app, await app.newKey()));
  const { session } = { session: (await theirs('GET', 'session')).body.data };
  const { operators, sessions } = (await mine('GET', 'operator/operators')).body.data;
  assert.ok(operators.some(({ name, role }: { name: string; role: string }) => name === 'ending' && role === 'act'));
  assert.ok(
    sessions.some(({ id, owner }: { id: string; owner: string }) => id === session.id && owner === session.key_id),
  );
  const ended = await mine('POST', `operator/sessions/${session.id}/end`, { json: {} });
  assert.ok(!ended.body.data.sessions.some(({ id }: { id: string }) => id === session.id));
  assert.equal((await theirs('GET', 'account/orders')).status, 401);
  assert.equal((await mine('POST', 'operator/sessions/none/end', { json: {} })).body.code, 'session_not_found');
});
