// Notices that a certificate ends, and events that a pause of callbacks held back, over HTTP and with a real receiver.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { SETTINGS, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import {
  DELIVERIES,
  deliveriesOf,
  newSubscriber,
  receivedAbout,
  reissueOnce,
  waitFor,
  waitForCallbacks,
} from '../../support/deliveries.ts';
import { body, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const DAY = 86_400_000;

const notify = async () => {
  const chore = app.callbacks.deliveryChores.find(({ name }) => name === 'notify_expiry');
  return await (chore ?? assert.fail('there is no such chore')).run();
};
/** Replaces the certificate of the order by one that ends then; returns its id. */
async function endingIn(order: PlacedOrder, days: number): Promise<string> {
  const answer = await reissue(app, order, body({ validity_days: days }));
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.certificate.id;
}
const noticesOf = async ({ key }: PlacedOrder) =>
  (await deliveriesOf(app, key, '?action=order:expiring')).map(({ cert_id }) => cert_id).reverse();

rule('event 13', '30, 14, 7 and 1 days (`RESEAL_EXPIRY_NOTICE_DAYS`) before the current certificate', async () => {
  const order = await newSubscriber(world, { enabled_actions: ['order:issued', 'order:expiring'] });
  await notify();
  const id = await endingIn(order, 40);
  await waitForCallbacks(world, id, 1);
  const left: number[] = [];
  for (let day = 1; day <= 41; day += 1) {
    app.advance(DAY);
    if (await notify()) left.push(40 - day);
    assert.equal(await notify(), 0, 'once for each');
  }
  assert.deepEqual(left, [30, 14, 7, 1], 'it ends an instant earlier than its days');
  const [, notice] = await waitForCallbacks(world, id, 5);
  assert.deepEqual(notice?.body, {
    ...{ action_type: 'order', action_id: 'order:expiring', order_id: order.id, order_status: 'issued', cert_id: id },
    message: 'The certificate of the order will expire soon. Reissue it, or place a new order.',
  });
  assert.deepEqual(await noticesOf(order), [id, id, id, id]);
});

rule('event 13', 'of those that became due while the service was down, only the nearest', async () => {
  const order = await newSubscriber(world, { enabled_actions: ['order:expiring'] });
  await notify();
  await endingIn(order, 40);
  app.advance(35 * DAY);
  assert.equal(await notify(), 1);
  app.advance(10 * DAY);
  assert.equal(await notify(), 0, 'it has ended');
});

rule('event 14', 'and not for a certificate that was replaced or revoked', async () => {
  const settings = { enabled_actions: ['order:expiring'] };
  const [order, replaced, revoked] = [
    await newSubscriber(world, settings),
    await newSubscriber(world, settings),
    await newSubscriber(world, settings),
  ];
  await notify();
  const id = await endingIn(order, 31);
  await endingIn(replaced, 31);
  const gone = await endingIn(revoked, 31);
  await reissueOnce(app, replaced);
  assert.equal((await app.call('POST', `/openapi/v3/certs/${gone}/revoke`, { key: revoked.key })).status, 200);
  app.advance(2 * DAY);
  assert.equal(await notify(), 1);
  assert.deepEqual([await noticesOf(order), await noticesOf(replaced), await noticesOf(revoked)], [[id], [], []]);
  const metrics = (await app.call('GET', '/metrics')).text;
  assert.match(metrics, /^reseal_expiry_notices_total\{days="30"\} [1-9]/m);
  assert.ok(app.lines.some((line) => line.event === 'expiry_notice' && line.certificate_id === id && line.days === 30));
});

rule('event 14', '`order:expiring` is emitted only for accounts that list it in `enabled_actions`', async () => {
  const [silent, other] = [
    await newSubscriber(world),
    await newSubscriber(world, { enabled_actions: ['order:issued'] }),
  ];
  await notify();
  for (const order of [silent, other]) await endingIn(order, 31);
  app.advance(2 * DAY);
  assert.equal(await notify(), 0);
  assert.deepEqual([await noticesOf(silent), await noticesOf(other)], [[], []]);
});

rule('callback-settings 7', 'when it is absent, all are but `order:expiring`', async () => {
  // One that was written while it was listed is held back once it is not.
  const order = await newSubscriber(world, { enabled_actions: ['order:expiring'] });
  await notify();
  const id = await endingIn(order, 31);
  await app.callbacks.dispatcher.poll();
  app.advance(2 * DAY);
  await world.save(order.key, {});
  const { store, newId } = app.app;
  const { accountId } = order.key;
  const about = { accountId, orderId: order.id, orderStatus: 'issued', certificateId: id } as const;
  await store.transaction((tx) =>
    tx.outbox.add({ id: newId(), ...about, action: 'order:expiring', createdAt: app.now() }),
  );
  await app.callbacks.dispatcher.poll();
  const [held] = await waitFor('it is settled', async () => {
    const found = await deliveriesOf(app, order.key, '?action=order:expiring');
    return found[0]?.state === 'suppressed' && found;
  });
  assert.equal(held?.reason, 'action_not_enabled');
  const again = await app.call('POST', `${DELIVERIES}/resend`, { key: order.key, json: { state: 'suppressed' } });
  assert.equal(again.body.data.resent, 2, 'both issuances, and not the notice');
});

rule('callback-settings 8', 'and says how to send them again', async () => {
  const order = await newSubscriber(world);
  const NONE = { count: 0, has_more: false, since: null, how_to_resend: null };
  assert.deepEqual((await world.show(order.key)).body.data.callback.suppressed, NONE);
  assert.deepEqual((await world.save(order.key, { disabled: true })).body.data.callback.suppressed, NONE);
  const first = new Date(app.now()).toISOString();
  const ids = [await reissueOnce(app, order), await reissueOnce(app, order)];
  const shown = async (headers = {}) =>
    (await app.call('GET', SETTINGS, { key: order.key, headers })).body.data.callback.suppressed;
  await waitFor('both are held back', async () => (await shown()).count === 2);
  const json = { state: 'suppressed', since: first };
  const call = `POST ${DELIVERIES}/resend ${JSON.stringify(json)}`;
  assert.deepEqual(await shown(), {
    ...{ count: 2, has_more: false, since: first },
    how_to_resend: `Save the settings with disabled false, then send them again: ${call}`,
  });
  assert.match((await shown({ 'Accept-Language': 'zh-CN' })).how_to_resend, /^请先将 disabled 设为 false/);
  // As it says.
  const enabled = await world.save(order.key, { disabled: false });
  assert.equal(enabled.body.data.callback.suppressed.how_to_resend, `Send them again: ${call}`);
  const resent = await app.call('POST', `${DELIVERIES}/resend`, { key: order.key, json });
  assert.deepEqual(resent.body.data, { resent: 2, next_after: null });
  for (const id of ids) await waitForCallbacks(world, id);
  assert.deepEqual(await shown(), NONE);
  for (const id of ids) assert.equal(receivedAbout(world, id).length, 1);
  // What would not be sent again is not counted: neither what is not enabled anyway,
  await world.save(order.key, { disabled: true, enabled_actions: ['order:revoked'] });
  await reissueOnce(app, order);
  await waitFor('it is suppressed', async () => {
    const { body: found } = await app.call('GET', `${DELIVERIES}?state=suppressed`, { key: order.key });
    return found.data.deliveries.length === 1;
  });
  assert.deepEqual(await shown(), NONE);
  // nor what is suppressed for another reason.
  const bare = await newOrder(app);
  await world.save(bare.key, { url: world.url(), access_key: 'k' });
  assert.deepEqual((await world.show(bare.key)).body.data.callback.suppressed, NONE);
});
