// Faults that delivery must survive: clock jumps, endless responses, secrets that cannot be opened, a shutdown during an
// attempt, and an outage longer than the retry period.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { environmentFor, startCallbackApp } from '../../support/callback-app.ts';
import {
  ACCESS_KEY,
  advanceAndPoll,
  answerTogether,
  answerWith,
  deliveriesOf,
  deliveryOf,
  newSubscriber,
  receivedAbout,
  reissueOnce,
  routeByPath,
  type ShownDelivery,
  waitFor,
  waitForCallbacks,
} from '../../support/deliveries.ts';
import { newOrder } from '../../support/orders.ts';
import { drip, reset, respond, respondEndlessly } from '../../support/receiver.ts';

const world = await startCallbackApp({ RESEAL_SHUTDOWN_SECONDS: '0' });
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const on = routeByPath(world);
const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;
const chores = async () => {
  for (const { run } of app.callbacks.deliveryChores) await run();
};

test('a clock that was briefly a year ahead delays nothing once it is correct again', async () => {
  on('/year', answerWith(500));
  app.advance(YEAR);
  const order = await newSubscriber(world, {}, '/year');
  on('/year', answerTogether(9, 500));
  for (let count = 0; count < 9; count += 1) await reissueOnce(app, order);
  await waitFor('its lane is closed', async () =>
    (await deliveriesOf(app, order.key)).every(({ attempts }) => attempts.length === 1),
  );
  app.advance(-YEAR);
  on('/year', answerWith(200));
  await chores();
  await waitFor('all arrived', async () => {
    await app.callbacks.dispatcher.poll();
    return (await deliveriesOf(app, order.key, '?state=delivered')).length === 10;
  });
});

test('a clock that goes back does not delay first attempts', async () => {
  const order = await newSubscriber(world, {}, '/back');
  app.advance(-2 * HOUR);
  await waitForCallbacks(world, await reissueOnce(app, order));
  app.advance(2 * HOUR);
});

test('endless, truncated and malformed responses are recorded as such', async () => {
  const table = [
    ['/endless', respondEndlessly('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(10_000)), 'delivered', 200, null],
    ['/drips', drip('HTTP/1.1 503 No\r\nContent-Length: 9999\r\n\r\n', '.'), 'pending', 503, null],
    ['/reset', reset, 'pending', null, 'connection_closed'],
    ['/rubbish', respond('I am not HTTP\r\n\r\n'), 'pending', null, 'response_invalid'],
    ['/huge', respond(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), 'pending', null, 'response_invalid'],
  ] as const;
  for (const [path, script, state, status, reason] of table) {
    on(path, script);
    const order = await newSubscriber(world, {}, path);
    const delivery = await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 1);
    const [attempt] = delivery.attempts;
    assert.deepEqual([delivery.state, attempt?.http_status, attempt?.reason], [state, status, reason], path);
    assert.equal(attempt?.excerpt, null, 'nothing is shown of a private receiver’s response');
  }
});

test('a private or unreachable address is an ordinary failed attempt', async () => {
  const key = await app.newKey();
  world.outside.dns.set('inside.example.test', 'A', ['10.0.0.1']);
  await world.save(key, { url: 'https://inside.example.test/', access_key: ACCESS_KEY });
  const order = await newOrder(app, {}, key);
  const inside = await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 1);
  assert.deepEqual([inside.state, inside.attempts[0]?.reason], ['pending', 'private_address']);
  await world.save(key, { url: 'https://missing.example.test/', access_key: ACCESS_KEY });
  await advanceAndPoll(app, 7_000);
  const missing = await deliveryOf(world, order, order.certificateId, ({ attempts }) => attempts.length === 2);
  assert.equal(missing.attempts[1]?.reason, 'name_not_found');
});

test('settings that cannot be opened stop the callbacks of their account only', async () => {
  const broken = await newSubscriber(world, {}, '/broken');
  const db = new DatabaseSync(join(app.folder, 'reseal.db'), { timeout: 0 });
  const spoil = 'update callback_settings set sealed_access_key = sealed_signing_secret where account_id = ?';
  // A transaction of the service, which runs in this process, could never end while a statement waits for it here.
  const run = () => {
    try {
      return db.prepare(spoil).run(broken.key.accountId);
    } catch {
      return undefined;
    }
  };
  await waitFor('the database', run);
  db.close();
  await reissueOnce(app, broken);
  const well = await newSubscriber(world, {}, '/well');
  await waitForCallbacks(world, await reissueOnce(app, well));
  const faults = () => app.lines.filter(({ event }) => event === 'error').length;
  await waitFor('it is told', () => faults() > 0);
  const told = faults();
  for (let count = 0; count < 5; count += 1) await app.callbacks.dispatcher.poll();
  assert.equal(faults(), told, 'not repeatedly');
});

test('an event is given up after an outage longer than the retry period, and all of it is reported', async () => {
  on('/gone', answerWith(500));
  const order = await newSubscriber(world, {}, '/gone');
  for (let count = 0; count < 19; count += 1) await reissueOnce(app, order);
  const attemptsIn = (listed: readonly ShownDelivery[]) => listed.reduce((sum, one) => sum + one.attempts.length, 0);
  const isOver = (listed: readonly ShownDelivery[]) => listed.every(({ state }) => state === 'failed');
  let made = 7;
  for (let days = 0; days < 6; days += 1) {
    made = await waitFor('another attempt', async () => {
      await app.callbacks.dispatcher.poll();
      const listed = await deliveriesOf(app, order.key);
      return (attemptsIn(listed) > made || isOver(listed)) && attemptsIn(listed);
    });
    await advanceAndPoll(app, 24 * HOUR);
  }
  await waitFor('all are given up', async () => isOver(await deliveriesOf(app, order.key)));
  const reasons = new Set((await deliveriesOf(app, order.key)).map(({ reason }) => reason));
  assert.ok(reasons.has('receiver_down'), [...reasons].join());
  const lines = app.lines.filter((line) => line.event === 'callback_gave_up' && line.order_id === order.id);
  assert.equal(lines.length, 20);
});

test('a shutdown releases events in flight, and the next start sends them', async () => {
  let silent = 0;
  on('/stopping', () => {
    silent += 1;
  });
  const key = await app.newKey();
  await world.save(key, { url: world.url('/stopping'), access_key: ACCESS_KEY });
  const order = await newOrder(app, {}, key);
  await waitFor('the attempt is in flight', () => silent === 1);
  await app.stop();
  on('/stopping', answerWith(200));
  await app.start({ ...environmentFor(world.outside), RESEAL_SHUTDOWN_SECONDS: '0' });
  const done = await deliveryOf(world, order, order.certificateId, ({ state }) => state === 'delivered');
  assert.deepEqual(
    done.attempts.map(({ number }) => number),
    [1],
    'a released event has no attempt',
  );
  assert.equal(receivedAbout(world, order.certificateId).length, 2);
});
