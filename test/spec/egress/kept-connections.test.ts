// Kept connections over HTTP: one account each, reused only for an address checked for the attempt, never by a callback
// test.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, test } from 'node:test';
import { callbackIn, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { deliveryOf, newSubscriber, reissueOnce, waitFor, waitForCallbacks } from '../../support/deliveries.ts';
import type { PlacedOrder } from '../../support/orders.ts';
import { HOST } from '../../support/outside.ts';
import { OK } from '../../support/receiver.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside } = world;

/** The access keys that were received on each connection. */
const keysOn = new Map<Socket, string[]>();
receiver.script = (socket) => {
  keysOn.set(socket, [...(keysOn.get(socket) ?? []), callbackIn(receiver).headers['x-cc-callback-auth'] ?? '']);
  socket.write(OK);
};

async function deliver(order: PlacedOrder): Promise<void> {
  const id = await reissueOnce(app, order);
  await waitForCallbacks(world, id);
  await deliveryOf(world, order, id, ({ state }) => state === 'delivered');
}

/** Repeats, because an idle connection is kept for seconds only, and a loaded machine may be slower. */
const untilReused = (key: string, order: PlacedOrder) =>
  waitFor('a connection is used again', async () => {
    await deliver(order);
    return [...keysOn.values()].some((keys) => keys.filter((one) => one === key).length > 1);
  });

rule(
  'egress 8',
  'A delivery may use a connection kept from an earlier delivery of the same account to the same host and port, never one of another account',
  async () => {
    const [one, other] = [
      await newSubscriber(world, { access_key: 'one' }),
      await newSubscriber(world, { access_key: 'other' }),
    ];
    for (let count = 0; count < 3; count += 1) {
      await deliver(one);
      await deliver(other);
    }
    await untilReused('one', one);
    await untilReused('other', other);
    assert.equal(callbackIn(receiver).headers.connection, 'keep-alive');
    for (const keys of keysOn.values()) assert.equal(new Set(keys).size, 1, keys.join());
  },
);

rule('egress 7', 'A callback test has a connection of its own and says `Connection: close`.', async () => {
  const order = await newSubscriber(world, { access_key: 'tested' });
  await untilReused('tested', order);
  const opened = receiver.connections.length;
  assert.equal((await world.test(order.key)).status, 200);
  assert.equal(callbackIn(receiver).headers.connection, 'close');
  assert.equal(receiver.connections.length, opened + 1);
});

rule(
  'egress 8',
  'only if it leads to an address that was resolved and checked for this attempt; any other is closed, and no byte is sent over it',
  async (t) => {
    const order = await newSubscriber(world, { access_key: 'moved' });
    await untilReused('moved', order);
    const bytes = receiver.bytesRead;
    outside.dns.set(HOST, 'A', ['10.0.0.1']);
    t.after(() => outside.dns.set(HOST, 'A', ['127.0.0.1']));
    const { attempts } = await deliveryOf(
      world,
      order,
      await reissueOnce(app, order),
      (one) => one.attempts.length > 0,
    );
    assert.equal(attempts[0]?.reason, 'private_address');
    await receiver.deserted();
    assert.equal(receiver.bytesRead, bytes);
  },
);

test('the shutdown closes kept connections', async () => {
  const order = await newSubscriber(world, { access_key: 'last' });
  await deliver(order);
  await app.callbacks.dispatcher.stop(0);
  await receiver.deserted();
});
