// Events that do not arrive at once: retried, suppressed, given up, sent again; and how deliveries are listed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { callbackIn, resultOf, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import {
  advanceAndPoll,
  answerTogether,
  answerWith,
  DELIVERIES,
  deliveriesOf,
  deliveryOf,
  newSubscriber,
  reissueOnce,
  routeByPath,
  type ShownDelivery,
  waitFor,
  waitForCallbacks,
  withHeaders,
} from '../../support/deliveries.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';
import { issuedIn } from '../../support/records.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const on = routeByPath(world);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SCHEDULE = [5_000, 30_000, 5 * MINUTE, 30 * MINUTE, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR)];
const resend = (id: string, order: { key: Parameters<typeof deliveriesOf>[1] }) =>
  app.call('POST', `${DELIVERIES}/${id}/resend`, { key: order.key });
const replay = (order: { key: Parameters<typeof deliveriesOf>[1] }, json: unknown) =>
  app.call('POST', `${DELIVERIES}/resend`, { key: order.key, json });
const waitOf = ({ next_attempt_at }: ShownDelivery) => Date.parse(next_attempt_at ?? '') - app.now();

rule('delivery 1', 'An event is committed in the same transaction as the fact it announces', async () => {
  const order = await newSubscriber(world);
  const { store, newId } = app.app;
  const event = {
    accountId: order.key.accountId,
    orderId: order.id,
    orderStatus: 'issued',
    createdAt: app.now(),
  } as const;
  const failing = store.transaction(async (tx) => {
    const { certificateId } = order;
    await tx.outbox.add({ id: newId(), ...event, certificateId, action: 'order:revoked' });
    throw new Error('the fact did not come about');
  });
  await assert.rejects(failing);
  await app.callbacks.dispatcher.poll();
  assert.deepEqual(
    (await deliveriesOf(app, order.key)).map(({ action }) => action),
    ['order:issued'],
  );
  // Conversely, no event means no change: issuance and revocation fail together with their event.
  using database = new DatabaseSync(join(app.folder, 'reseal.db'), { timeout: 5_000 });
  database.exec("create trigger no_events before insert on outbox begin select raise(abort, 'no event'); end");
  const revoke = `/openapi/v3/certs/${order.certificateId}/revoke`;
  assert.equal((await app.call('POST', revoke, { key: order.key })).status, 500);
  assert.equal((await reissue(app, order, body())).status, 500);
  database.exec('drop trigger no_events');
  // A certificate signed in vain is voided, as after any lost signer.
  app.advance(10_000);
  assert.equal(await app.issuance.sweep(), 1);
  const made = await store.certificates.listLast(order.key.accountId, order.id, 9);
  assert.deepEqual(
    made.filter(({ status }) => status === 'issued').map(({ id }) => id),
    [order.certificateId],
  );
  assert.equal((await issuedIn(store, order.key.accountId, order.certificateId)).revocation, null);
});

rule(
  'delivery 4',
  '5 s, 30 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, each give or take a fifth',
  async () => {
    on('/down', answerWith(500));
    const order = await newSubscriber(world, {}, '/down');
    for (const [index, wait] of SCHEDULE.entries()) {
      const delivery = await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length > index);
      assert.equal(delivery.attempts.length, index + 1);
      const ms = waitOf(delivery);
      assert.ok(ms >= wait * 0.8 && ms <= wait * 1.2, `${ms} ms after failure ${index + 1}`);
      await advanceAndPoll(app, ms - 1);
      // A delivery in flight has no next attempt.
      const [still] = await deliveriesOf(app, order.key);
      const expected = [index + 1, delivery.next_attempt_at];
      assert.deepEqual([still?.attempts.length, still?.next_attempt_at], expected, 'not a millisecond early');
      await advanceAndPoll(app, 1);
    }
    const last = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'failed');
    assert.deepEqual([last.attempts.length, last.reason, last.next_attempt_at], [11, 'attempts_used_up', null]);

    const asks: [header: string, least: number, most: number][] = [
      ['Retry-After: 60', 60_000, 60_000],
      [`Retry-After: ${new Date(app.now() + 120_000).toUTCString()}`, 119_000, 120_000],
      ['Retry-After: 1', 4_000, 6_000],
      ['Retry-After: 999999999', DAY, DAY],
      ['Retry-After: -5', 4_000, 6_000],
      ['Retry-After: soon', 4_000, 6_000],
      ['Retry-After: 99999999999999999999', 4_000, 6_000],
      [`Retry-After: ${new Date(app.now() - DAY).toUTCString()}`, 4_000, 6_000],
    ];
    for (const [index, [header, least, most]] of asks.entries()) {
      on(`/asks${index}`, withHeaders(503, header));
      const asking = await newSubscriber(world, {}, `/asks${index}`);
      const ms = waitOf(await deliveryOf(world, asking, asking.certificateId, ({ attempts }) => attempts.length === 1));
      assert.ok(ms >= least && ms <= most, `${header}: ${ms} ms`);
    }
  },
);

rule('delivery 6', 'whose action is not in `enabled_actions`, is kept as `suppressed`', async () => {
  for (const [change, reason] of [
    [{ disabled: true }, 'disabled'],
    [{ enabled_actions: ['order:revoked'] }, 'action_not_enabled'],
    [{ enabled_actions: [] }, 'action_not_enabled'],
  ] as const) {
    const order = await newSubscriber(world, change, `/${reason}`);
    const [delivery] = await deliveriesOf(app, order.key);
    assert.deepEqual([delivery?.state, delivery?.reason, delivery?.attempts], ['suppressed', reason, []]);
  }
  const unconfigured = await newOrder(app);
  const [delivery] = await deliveriesOf(app, unconfigured.key);
  assert.deepEqual([delivery?.state, delivery?.reason], ['suppressed', 'not_configured']);
  // A delivery that waits for its retry is suppressed when it becomes due.
  on('/pausing', answerWith(500));
  const order = await newSubscriber(world, {}, '/pausing');
  await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 1);
  await world.save(order.key, { disabled: true });
  await advanceAndPoll(app, 10_000);
  const held = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'suppressed');
  assert.deepEqual([held.reason, held.attempts.length], ['disabled', 1]);
  assert.equal(resultOf(await resend(held.id, order)), '409 callback_paused');
  assert.equal(resultOf(await replay(order, { state: 'suppressed' })), '409 callback_paused');
});

rule('delivery 7', 'it can be sent again on request, and so can a suppressed one', async () => {
  const order = await newSubscriber(world, { disabled: true }, '/paused');
  const ids = [order.certificateId];
  for (let count = 0; count < 6; count += 1) {
    app.advance(1);
    ids.push(await reissueOnce(app, order));
  }
  await waitFor(
    'all are suppressed',
    async () => (await deliveriesOf(app, order.key, '?state=suppressed')).length === 7,
  );
  await world.save(order.key, { disabled: false });
  const before = world.receiver.requests.length;
  assert.deepEqual((await replay(order, { state: 'suppressed' })).body.data, { resent: 7, next_after: null });
  await waitFor('all arrived', async () => (await deliveriesOf(app, order.key, '?state=delivered')).length === 7);
  const order_ = world.receiver.requests
    .map((_, index) => callbackIn(world.receiver, index))
    .slice(before)
    .filter(({ body }) => body.order_id === order.id);
  assert.deepEqual(
    order_.map(({ body }) => body.cert_id),
    ids,
    'in order of creation',
  );

  on('/once', answerWith(500, 200));
  const other = await newSubscriber(world, {}, '/once');
  const failing = await deliveryOf(world, other, other.certificateId, ({ attempts }) => attempts.length === 1);
  assert.equal((await resend(failing.id, other)).body.data.delivery.state, 'pending', 'before it was due');
  const done = await deliveryOf(world, other, other.certificateId, ({ state }) => state === 'delivered');
  assert.equal(done.attempts.length, 2);
  // Also a delivered one, any number of times.
  assert.equal((await resend(failing.id, other)).status, 200);
  const callbacks = await waitForCallbacks(world, other.certificateId, 3);
  assert.equal(new Set(callbacks.map(({ headers, text }) => headers['webhook-id'] + text)).size, 1);
});

rule('delivery 8', 'filtered by order, action, state and time, page by page with a cursor', async () => {
  const order = await newSubscriber(world, {}, '/listed');
  const { key } = order;
  const second = await newOrder(app, {}, key);
  const between = new Date(app.now() + 500).toISOString();
  app.advance(1_000);
  const third = await reissueOnce(app, order);
  await waitFor('all arrived', async () => (await deliveriesOf(app, key, '?state=delivered')).length === 3);
  const certificatesIn = async (query: string) => (await deliveriesOf(app, key, query)).map(({ cert_id }) => cert_id);
  const all = [third, second.certificateId, order.certificateId];
  const table: [query: string, expected: string[]][] = [
    ['', all],
    [`?order_id=${order.id}`, [third, order.certificateId]],
    ['?order_id=nothing', []],
    ['?action=order:issued', all],
    ['?action=order:revoked', []],
    ['?state=delivered', all],
    ['?state=failed', []],
    ['?state=pending', []],
    [`?since=${between}`, [third]],
    [`?until=${between}`, [second.certificateId, order.certificateId]],
    [`?since=${between}&until=${between}`, []],
    [`?order_id=${order.id}&action=order:issued&state=delivered&since=${between}`, [third]],
  ];
  for (const [query, expected] of table) assert.deepEqual(await certificatesIn(query), expected, query);
  const pages: string[] = [];
  let next: string | null = '';
  for (let count = 0; next !== null; count += 1) {
    assert.ok(count < 5, 'the cursor does not end');
    const { body } = await app.call('GET', `${DELIVERIES}?limit=1${next && `&after=${next}`}`, { key });
    pages.push(...body.data.deliveries.map((one: ShownDelivery) => one.cert_id));
    next = body.data.next_after;
  }
  assert.deepEqual(pages, all);
  const [delivery] = await deliveriesOf(app, key, '?limit=1');
  const [attempt] = delivery?.attempts ?? [];
  assert.deepEqual([attempt?.number, attempt?.http_status, attempt?.reason], [1, 200, null]);
  assert.equal(attempt?.at, new Date(app.now()).toISOString());
  assert.ok(Number.isInteger(attempt?.ms));
  for (const [query, field] of [
    ...[
      ['state=lost', 'state'],
      ['action=order:lost', 'action'],
      ['since=yesterday', 'since'],
      ['until=12', 'until'],
    ],
    ...[
      ['limit=0', 'limit'],
      ['limit=x', 'limit'],
    ],
  ]) {
    assert.equal(resultOf(await app.call('GET', `${DELIVERIES}?${query}`, { key })), `400 invalid_parameters ${field}`);
  }
  // Deliveries of another account are not found.
  const stranger = await app.newKey();
  assert.deepEqual(await deliveriesOf(app, stranger, `?order_id=${order.id}`), []);
  assert.equal(resultOf(await resend(delivery!.id, { key: stranger })), '404 delivery_not_found');
});

rule('delivery 10', 'is called less often, and a successful callback test ends that', async () => {
  on('/ailing', answerWith(500));
  const order = await newSubscriber(world, {}, '/ailing');
  on('/ailing', answerTogether(9, 500));
  for (let count = 0; count < 9; count += 1) await reissueOnce(app, order);
  await waitFor('ten attempts', async () =>
    (await deliveriesOf(app, order.key)).every(({ attempts }) => attempts.length === 1),
  );
  const count = async () =>
    (await deliveriesOf(app, order.key)).reduce((sum, { attempts }) => sum + attempts.length, 0);
  on('/ailing', answerWith(500));
  // All ten are due again now; a healthy receiver would get all of them.
  await advanceAndPoll(app, 6_000);
  await waitFor('one attempt to find out', async () => (await count()) === 11);
  await app.callbacks.dispatcher.poll();
  assert.equal(await count(), 11);
  const fresh = await reissueOnce(app, order);
  await app.callbacks.dispatcher.poll();
  assert.deepEqual((await deliveriesOf(app, order.key)).find(({ cert_id }) => cert_id === fresh)?.attempts, []);
  on('/ailing', answerWith(200));
  assert.equal(resultOf(await world.test(order.key)), '200 success');
  await app.callbacks.dispatcher.poll();
  await waitFor(
    'all but the one that just failed',
    async () => (await deliveriesOf(app, order.key, '?state=delivered')).length === 10,
  );
});

rule('event 8', 'The rejection of an order emits `order:rejected`', async () => {
  const { key } = await newSubscriber(world, {}, '/rejected');
  const json = body({ common_name: 'never-proven.example.com' });
  const { data } = (await app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json })).body;
  app.advance(31 * DAY);
  await app.issuance.proveDomains.proveDue();
  const [callback] = await waitForCallbacks(world, data.certificate.id);
  assert.deepEqual(callback?.body, {
    ...{ action_type: 'order', action_id: 'order:rejected', order_id: data.id, order_status: 'rejected' },
    ...{ cert_id: data.certificate.id, message: 'The order has been rejected.' },
  });
});
