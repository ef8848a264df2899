// Receivers are isolated from each other. Independent of timing: callbacks of one account arrive while every attempt of
// the other still waits for a response that never comes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { TestApp } from '../../support/app.ts';
import { startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import {
  ACCESS_KEY,
  deliveriesOf,
  newSubscriber,
  reissueOnce,
  routeByPath,
  waitFor,
  waitForCallbacks,
} from '../../support/deliveries.ts';
import { newOrder, type PlacedOrder } from '../../support/orders.ts';
import type { Script } from '../../support/receiver.ts';

const BACKLOG = 10_000;
const PER_ACCOUNT = 32;

/** Events of an order, as that many issuances would have created them. */
function addBacklog({ folder }: TestApp, { key, id, certificateId }: PlacedOrder, count: number): void {
  const db = new DatabaseSync(join(folder, 'reseal.db'), { timeout: 5_000 });
  db.exec(`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})
    insert into outbox (id, account_id, order_id, order_status, certificate_id, action, created_at, body, state, is_new)
    select 'backlog' || i, '${key.accountId}', '${id}', 'issued', '${certificateId}', 'order:issued', 0, '{}',
    'pending', 1 from n`);
  db.close();
}

/** Reads the request and never responds. */
function hanging(): { readonly script: Script; count: number } {
  const state = {
    count: 0,
    script() {
      state.count += 1;
    },
  };
  return state;
}

rule('delivery 9', 'A slow or dead receiver of one account does not delay the first attempts of another', async () => {
  const world = await startCallbackApp({ RESEAL_SHUTDOWN_SECONDS: '0' });
  after(() => world[Symbol.asyncDispose]());
  const { app } = world;
  const on = routeByPath(world);
  const dead = hanging();
  on('/hangs', dead.script);
  const slow = await newOrder(app);
  await world.save(slow.key, { url: world.url('/hangs'), access_key: ACCESS_KEY });
  const quick = await newSubscriber(world, {}, '/quick');
  addBacklog(app, slow, BACKLOG);
  await app.callbacks.dispatcher.poll();
  await waitFor('every place of the slow account is taken', () => dead.count === PER_ACCOUNT);
  // Few, because everything must happen before the first hanging attempt times out.
  for (let count = 0; count < 5; count += 1) await waitForCallbacks(world, await reissueOnce(app, quick));
  await waitFor('all are noted', async () => (await deliveriesOf(app, quick.key, '?state=delivered')).length === 6);
  assert.equal(dead.count, PER_ACCOUNT, 'no more than its share');
  const waiting = await deliveriesOf(app, slow.key, '?state=pending');
  assert.ok(waiting.length > 0);
  assert.ok(
    waiting.every(({ attempts }) => attempts.length === 0),
    'none of its attempts has ended yet',
  );
});

test('accounts that share a host share its slots, and use none of other hosts', async () => {
  const world = await startCallbackApp({ RESEAL_CALLBACKS_PER_HOST: '4', RESEAL_SHUTDOWN_SECONDS: '0' });
  after(() => world[Symbol.asyncDispose]());
  const { app, outside } = world;
  const dead = hanging();
  routeByPath(world)('/hangs', dead.script);
  outside.dns.set('other.example.test', 'A', ['127.0.0.1']);
  const other = await outside.receiver({ identity: outside.ca.identity(['other.example.test']) });
  for (let count = 0; count < 8; count += 1) {
    const key = await app.newKey();
    await world.save(key, { url: world.url('/hangs'), access_key: ACCESS_KEY });
    await newOrder(app, {}, key);
  }
  await waitFor('the slots of the host are taken', () => dead.count === 4);
  const key = await app.newKey();
  await world.save(key, { url: `https://other.example.test:${other.port}/`, access_key: ACCESS_KEY });
  await newOrder(app, {}, key);
  await other.received(1);
  assert.equal(dead.count, 4);
  await app.callbacks.dispatcher.poll();
  assert.deepEqual(await app.app.store.callbackLanes.due(app.now(), 100), [], 'blocked lanes are not due');
});

test('retries never take the slots of first attempts', async () => {
  const world = await startCallbackApp({ RESEAL_CALLBACKS_AT_ONCE: '4', RESEAL_SHUTDOWN_SECONDS: '0' });
  after(() => world[Symbol.asyncDispose]());
  const { app } = world;
  const on = routeByPath(world);
  const dead = hanging();
  on('/fails', (socket) => socket.end('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n'));
  for (let count = 0; count < 6; count += 1) await newSubscriber(world, {}, '/fails');
  on('/fails', dead.script);
  app.advance(10_000);
  await app.callbacks.dispatcher.poll();
  await waitFor('half of the slots are taken', () => dead.count === 2);
  const quick = await newSubscriber(world, {}, '/quick');
  for (let count = 0; count < 5; count += 1) await waitForCallbacks(world, await reissueOnce(app, quick));
  assert.equal(dead.count, 2, 'six are due, and two slots are for retries');
});
