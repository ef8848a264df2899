// What accounts and operators can do with deliveries: permissions, refusals, retention, and the notification when one is
// given up.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { checkCallbacks } from '../../../src/adapters/doctor/callbacks.ts';
import { readConfig } from '../../../src/config/config.ts';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import { Secret } from '../../../src/domain/secret.ts';
import { retentionChores } from '../../../src/wiring/retention.ts';
import type { Key } from '../../support/app.ts';
import { callbackIn, resultOf, SETTINGS, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import {
  ACCESS_KEY,
  advanceAndPoll,
  answerWith,
  DELIVERIES,
  deliveriesOf,
  deliveryOf,
  newSubscriber,
  reissueOnce,
  routeByPath,
  waitFor,
  waitForCallbacks,
} from '../../support/deliveries.ts';
import { newOrder } from '../../support/orders.ts';
import { HAN } from '../../support/watched-app.ts';

const KEPT = { RESEAL_CALLBACK_RETENTION_DAYS: '2' };
const world = await startCallbackApp({ RESEAL_CALLBACK_SCHEDULE: '1s,2s', ...KEPT });
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const on = routeByPath(world);
const DAY = 86_400_000;
const post = (key: Key, path: string, json?: unknown) => app.call('POST', `${SETTINGS}${path}`, { key, json });

rule('permission 10', 'Only `standard` credentials may list deliveries or send them again', async () => {
  const order = await newSubscriber(world);
  const id = (await deliveriesOf(app, order.key))[0]!.id;
  const calls = (key: Key) => [
    () => app.call('GET', DELIVERIES, { key }),
    () => post(key, `/deliveries/${id}/resend`),
    () => post(key, '/deliveries/resend', { state: 'failed' }),
  ];
  for (const kind of CREDENTIAL_KINDS.filter((one) => one !== 'standard')) {
    const key = await app.anotherKey(order.key.accountId, kind);
    for (const call of calls(key)) assert.equal(resultOf(await call()), '403 permission_denied');
  }
  const managed = await app.newKey({ kind: 'managed_pki' });
  await world.saveAsOperator(managed.accountId, { url: world.url(), access_key: ACCESS_KEY });
  const theirs = await newOrder(app, {}, managed);
  await waitForCallbacks(world, theirs.certificateId);
  const [own] = await deliveriesOf(app, managed);
  assert.equal(resultOf(await post(managed, `/deliveries/${own!.id}/resend`)), '200 success');
  assert.equal(resultOf(await post(managed, '/rotate-secret')), '403 permission_denied', 'which is a setting');
});

rule('errors delivery_not_found', 'is 404: the account has no delivery with that identifier', async () => {
  const order = await newSubscriber(world);
  const id = (await deliveriesOf(app, order.key))[0]!.id;
  const stranger = await newSubscriber(world);
  for (const one of ['nothing', id, '%00', 'x'.repeat(2_000)]) {
    assert.equal(resultOf(await post(stranger.key, `/deliveries/${one}/resend`)), '404 delivery_not_found');
  }
});

rule(
  'errors callback_paused',
  'is 409: what is asked to be sent again is held back by the callback settings',
  async () => {
    const order = await newSubscriber(world, { disabled: true });
    const id = (await deliveriesOf(app, order.key))[0]!.id;
    const again = () => post(order.key, `/deliveries/${id}/resend`);
    const range = () => post(order.key, '/deliveries/resend', { state: 'suppressed' });
    for (const call of [again, range]) assert.equal(resultOf(await call()), '409 callback_paused');
    await world.save(order.key, { enabled_actions: ['order:rejected'] });
    assert.equal(resultOf(await again()), '409 callback_paused');
    assert.deepEqual((await range()).body.data, { resent: 0, next_after: null }, 'a disabled action stays suppressed');
    await app.call('DELETE', SETTINGS, { key: order.key });
    for (const call of [again, range]) assert.equal(resultOf(await call()), '400 callback_not_configured');
    assert.equal((await deliveriesOf(app, order.key))[0]?.state, 'suppressed');
    const chinese = { key: order.key, headers: { 'accept-language': 'zh-CN' } };
    assert.match((await app.call('POST', `${DELIVERIES}/nothing/resend`, chinese)).body.message, HAN);
  },
);

rule('callback-settings 6', 'makes another signing secret and shows it once', async () => {
  const key = await app.newKey();
  assert.equal(resultOf(await post(key, '/rotate-secret')), '400 callback_not_configured');
  const first = (await world.save(key, { url: world.url(), access_key: ACCESS_KEY })).body.data.callback;
  const second = (await post(key, '/rotate-secret')).body.data.callback;
  assert.match(second.signing_secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.notEqual(second.signing_secret, first.signing_secret);
  assert.equal((await world.show(key)).body.data.callback.signing_secret, undefined);
  const saved = await app.app.store.callbacks.find(key.accountId);
  assert.deepEqual(
    [saved?.signingSecret, ...(saved?.former?.secrets ?? [])].map((secret) => (secret ?? new Secret('')).reveal()),
    [second.signing_secret, first.signing_secret],
  );
  assert.equal(saved?.former?.until, app.now() + DAY);
  // Saving settings affects neither; deleting them deletes both.
  await world.save(key, { disabled: true });
  assert.equal((await app.app.store.callbacks.find(key.accountId))?.former?.until, app.now() + DAY);
  assert.ok(!app.output.includes(second.signing_secret));
});

rule('delivery 12', 'at most 1 000 in one request, the oldest first and one after the other', async () => {
  let [open, most] = [0, 0];
  on('/slowly', (socket) => {
    open += 1;
    most = Math.max(most, open);
    setTimeout(() => {
      open -= 1;
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    }, 20);
  });
  const order = await newSubscriber(world, { disabled: true }, '/slowly');
  const ids = [order.certificateId];
  for (let count = 0; count < 4; count += 1) {
    app.advance(1);
    ids.push(await reissueOnce(app, order));
  }
  const inState = async (state: string) => (await deliveriesOf(app, order.key, `?state=${state}`)).length;
  await waitFor('all are suppressed', async () => (await inState('suppressed')) === 5);
  await world.save(order.key, { disabled: false });
  const some = await post(order.key, '/deliveries/resend', { state: 'suppressed', limit: 3 });
  assert.deepEqual([some.body.data.resent, typeof some.body.data.next_after], [3, 'string']);
  const { next_after } = some.body.data;
  const rest = await post(order.key, '/deliveries/resend', { state: 'suppressed', after: next_after });
  assert.deepEqual(rest.body.data, { resent: 2, next_after: null });
  await waitFor('all arrived', async () => (await inState('delivered')) === 5);
  assert.equal(most, 1);
  const came = world.receiver.requests.map((_, index) => callbackIn(world.receiver, index).body);
  assert.deepEqual(
    came.filter(({ order_id }) => order_id === order.id).map(({ cert_id }) => cert_id),
    ids,
    'the oldest first',
  );
  const table: [json: unknown, expected: string][] = [
    [{}, '400 invalid_parameters state'],
    [{ state: 'pending' }, '400 invalid_parameters state'],
    [{ state: 5 }, '400 invalid_parameters state'],
    [{ state: 'failed', limit: 0 }, '400 invalid_parameters limit'],
    [{ state: 'failed', limit: 1_001 }, '400 invalid_parameters limit'],
    [{ state: 'failed', limit: 1.5 }, '400 invalid_parameters limit'],
    [{ state: 'failed', action: 'order:lost' }, '400 invalid_parameters action'],
    [{ state: 'failed', since: '2026-02-31' }, '400 invalid_parameters since'],
    [{ state: 'failed', since: '2026-02-31T00:00:00Z' }, '400 invalid_parameters since'],
    [{ state: 'failed', order_id: null }, '400 invalid_parameters order_id'],
    [{ state: 'failed', limit: 1_000 }, '200 success'],
  ];
  for (const [json, expected] of table) {
    assert.equal(resultOf(await post(order.key, '/deliveries/resend', json)), expected, JSON.stringify(json));
  }
  const audit = await app.app.store.audit.listOf(order.key.accountId, { limit: 100 });
  const resent = audit.filter(({ action }) => action === 'callback:resent').map(({ details }) => details.resent);
  assert.deepEqual(resent, [3, 2, 0]);
});

rule('delivery 7', 'After the last attempt an event is kept as `failed`; it can be sent again', async () => {
  on('/last', answerWith(500, 500, 500, 200));
  const order = await newSubscriber(world, {}, '/last');
  for (const tries of [1, 2]) {
    await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === tries);
    await advanceAndPoll(app, 3_000);
  }
  const { id } = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'failed');
  assert.equal((await post(order.key, `/deliveries/${id}/resend`)).body.data.delivery.state, 'pending');
  const done = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'delivered');
  assert.equal(done.attempts.length, 4);
});

rule('delivery 13', 'is deleted 90 days later (`RESEAL_CALLBACK_RETENTION_DAYS`), and not before', async () => {
  on('/kept', answerWith(500));
  const delivered = await newSubscriber(world);
  const waiting = await newSubscriber(world, {}, '/kept');
  const count = async (key: Key) => (await deliveriesOf(app, key)).length;
  const chores = async () => {
    for (const { run } of retentionChores(app.app, readConfig(KEPT).config)) await run();
  };
  assert.equal(readConfig({}).config.callbacks.retentionMs, 90 * DAY, 'unless configured, as here to two');
  app.advance(2 * DAY);
  await chores();
  assert.equal(await count(delivered.key), 1, 'exact to the millisecond');
  app.advance(1);
  await chores();
  assert.deepEqual([await count(delivered.key), await count(waiting.key)], [0, 1], 'pending ones are kept');
});

rule('delivery 14', 'leaves a log line, a metric and a finding of `reseal doctor`', async () => {
  on('/hopeless', answerWith(500));
  const { deliveries } = app.app.store;
  const before = await checkCallbacks(deliveries, app.now());
  const order = await newSubscriber(world, {}, '/hopeless');
  for (const tries of [1, 2]) {
    await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === tries);
    await advanceAndPoll(app, 3_000);
  }
  const { id } = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'failed');
  const line = await waitFor('a log line', () =>
    app.lines.find((one) => one.event === 'callback_gave_up' && one.delivery_id === id),
  );
  assert.deepEqual(line, {
    ...{ event: 'callback_gave_up', delivery_id: id, account_id: order.key.accountId, order_id: order.id },
    ...{ action: 'order:issued', attempts: 3 },
  });
  for (const { run } of app.callbacks.deliveryChores) await run();
  const { text } = await app.call('GET', '/metrics');
  const metric = (name: string) => Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1]);
  assert.ok(metric('reseal_callback_gave_up_total') >= 1);
  assert.ok(metric('reseal_callback_attempts_total{outcome="status_5xx"}') >= 3);
  assert.ok(metric('reseal_callback_attempts_total{outcome="delivered"}') >= 1);
  assert.ok(metric('reseal_callback_first_attempt_seconds_count') >= 3);
  assert.ok(metric('reseal_callback_pending') >= 0 && metric('reseal_callback_oldest_pending_seconds') >= 0);
  const finding = await checkCallbacks(deliveries, app.now());
  assert.equal(finding.state, 'warning', before.text);
  assert.match(finding.text, /\d were given up in the last seven days/);
  assert.equal((await checkCallbacks(deliveries, app.now() + 8 * DAY)).text.includes('given up'), false);
});
