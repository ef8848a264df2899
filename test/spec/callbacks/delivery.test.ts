// Real events, from issuance to the receiver.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { CALLBACK_ACTIONS } from '../../../src/domain/callbacks/callback.ts';
import { Secret } from '../../../src/domain/secret.ts';
import { signatureOf } from '../../../src/usecases/callbacks/sign-callback.ts';
import { startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import {
  ACCESS_KEY,
  advanceAndPoll,
  answerWith,
  deliveriesOf,
  deliveryOf,
  newSubscriber,
  receivedAbout,
  reissueOnce,
  routeByPath,
  waitForCallbacks,
} from '../../support/deliveries.ts';
import { newOrder } from '../../support/orders.ts';
import { respond } from '../../support/receiver.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const on = routeByPath(world);
const MINUTE = 60_000;

rule('event 1', 'Events reach the account as HTTP POST requests to its callback `url`', async () => {
  const order = await newSubscriber(world, {}, '/here?and=there');
  const [callback] = await waitForCallbacks(world, order.certificateId);
  assert.equal(callback?.line, 'POST /here?and=there HTTP/1.1');
});

rule('event 2', 'Every callback carries the header `X-CC-Callback-Auth`', async () => {
  on('/event2', answerWith(500, 500, 200));
  const order = await newSubscriber(world, {}, '/event2');
  await advanceAndPoll(app, 10_000);
  await waitForCallbacks(world, order.certificateId, 2);
  await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 2);
  await advanceAndPoll(app, 40_000);
  const callbacks = await waitForCallbacks(world, order.certificateId, 3);
  assert.deepEqual(
    callbacks.map(({ headers }) => headers['x-cc-callback-auth']),
    [ACCESS_KEY, ACCESS_KEY, ACCESS_KEY],
  );
});

rule('event 3', 'The body of a callback is an object of six strings', async () => {
  const order = await newSubscriber(world);
  const [callback] = await waitForCallbacks(world, order.certificateId);
  assert.deepEqual(callback?.body, {
    ...{ action_type: 'order', action_id: 'order:issued', order_id: order.id, order_status: 'issued' },
    ...{ cert_id: order.certificateId, message: CALLBACK_ACTIONS['order:issued'].message.en },
  });
  const key = await app.newKey({ locale: 'zh-CN' });
  await world.save(key, { url: world.url(), access_key: ACCESS_KEY });
  const chinese = await newOrder(app, {}, key);
  const [other] = await waitForCallbacks(world, chinese.certificateId);
  assert.equal(other?.body.message, CALLBACK_ACTIONS['order:issued'].message.zh);
});

rule('event 4', 'has the `action_type` `order` and the `order_status` `issued`', async () => {
  const order = await newSubscriber(world);
  const [callback] = await waitForCallbacks(world, await reissueOnce(app, order));
  assert.deepEqual([callback?.body.action_type, callback?.body.order_status], ['order', 'issued']);
});

rule('event 5', 'A receiver accepts a callback by answering HTTP 200, and by nothing else', async () => {
  for (const status of [201, 202, 204, 301, 307, 400, 404, 410, 429, 500, 503]) {
    on('/event5', answerWith(status));
    const order = await newSubscriber(world, {}, '/event5');
    const delivery = await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 1);
    assert.deepEqual([delivery.state, delivery.attempts[0]?.http_status], ['pending', status]);
  }
  on('/cut', respond('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off'));
  const order = await newSubscriber(world, {}, '/cut');
  const cut = await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 1);
  assert.equal(cut.state, 'delivered', 'the status decides, not what follows it');
});

rule(
  'event 6',
  'emits a real `order:issued` with the identifiers of the order and of the new certificate',
  async () => {
    const order = await newSubscriber(world);
    const ids = [order.certificateId, await reissueOnce(app, order), await reissueOnce(app, order)];
    for (const id of ids) {
      const [callback] = await waitForCallbacks(world, id);
      const { action_id, order_id, cert_id } = callback!.body;
      assert.deepEqual([action_id, order_id, cert_id], ['order:issued', order.id, id]);
    }
    const listed = await deliveriesOf(app, order.key);
    assert.deepEqual(listed.map(({ cert_id }) => cert_id).sort(), ids.sort());
  },
);

rule('delivery 3', 'All attempts of an event carry the same `webhook-id` and the same body', async () => {
  on('/same', answerWith(500, 500, 500, 200));
  const order = await newSubscriber(world, {}, '/same');
  for (const ms of [10_000, 40_000, 7 * MINUTE]) {
    const before = receivedAbout(world, order.certificateId).length;
    await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === before);
    // Neither the account's language nor anything else may change the contents of an event.
    await app.call('PUT', '/openapi/v3/account', { key: order.key, json: { locale: 'zh-CN' } });
    await advanceAndPoll(app, ms);
    await waitForCallbacks(world, order.certificateId, before + 1);
  }
  const callbacks = await waitForCallbacks(world, order.certificateId, 4);
  assert.equal(new Set(callbacks.map(({ text }) => text)).size, 1);
  const ids = new Set(callbacks.map(({ headers }) => headers['webhook-id']));
  assert.equal(ids.size, 1);
  const done = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'delivered');
  assert.deepEqual([...ids], [done.id]);
  const times = callbacks.map(({ headers }) => headers['webhook-timestamp']);
  assert.equal(new Set(times).size, 4, 'each attempt has a time of its own');
});

rule('delivery 5', 'An attempt uses the `url` and `access_key` saved at that moment', async () => {
  on('/before', answerWith(500));
  const order = await newSubscriber(world, {}, '/before');
  await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 1);
  await world.save(order.key, { url: world.url('/after'), access_key: 'another-key' });
  await advanceAndPoll(app, 10_000);
  const callbacks = await waitForCallbacks(world, order.certificateId, 2);
  assert.deepEqual(
    callbacks.map(({ line, headers }) => `${line.split(' ')[1]} ${headers['x-cc-callback-auth']}`),
    [`/before ${ACCESS_KEY}`, '/after another-key'],
  );
});

rule('delivery 11', 'callbacks carry the signatures of both the old and the new one', async () => {
  const key = await app.newKey();
  const saved = await world.save(key, { url: world.url(), access_key: ACCESS_KEY });
  const rotate = () => app.call('POST', '/openapi/v3/account/callback/rotate-secret', { key });
  const secrets = [saved, await rotate()].map(({ body }) => new Secret(body.data.callback.signing_secret));
  const signaturesOf = async (certificateId: string) => {
    const [callback] = await waitForCallbacks(world, certificateId);
    const { 'webhook-id': id = '', 'webhook-timestamp': at = '', 'webhook-signature': sent } = callback!.headers;
    const expected = secrets.map((secret) => signatureOf(secret, id, at, callback!.text));
    return sent?.split(' ').map((one) => expected.indexOf(one));
  };
  const order = await newOrder(app, {}, key);
  assert.deepEqual(await signaturesOf(order.certificateId), [1, 0]);
  await advanceAndPoll(app, 24 * 60 * MINUTE);
  assert.deepEqual(await signaturesOf(await reissueOnce(app, order)), [1], 'the old secret’s overlap has ended');
  secrets.push(new Secret((await rotate()).body.data.callback.signing_secret));
  assert.deepEqual(await signaturesOf(await reissueOnce(app, order)), [2, 1]);
});
