// Callback tests under load: two hundred concurrent ones to a receiver that never answers, and callers that disconnect
// early. All of them end, other requests are served meanwhile, and no resource leaks.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Environment } from '../../src/config/config.ts';
import type { Key, TestApp } from '../support/app.ts';
import { resultOf, startCallbackApp, TEST } from '../support/callback-app.ts';
import { holdTimers } from '../support/held-timers.ts';
import { body, newOrder, reissue } from '../support/orders.ts';
import { HOST } from '../support/outside.ts';
import { type RawAnswer, RawConnection, sendRaw } from '../support/raw-http.ts';
import { OK, type Receiver, respond } from '../support/receiver.ts';

const STORM = 200;
/** The total time limit of a test. */
const TEST_MS = 10_000;
/** Concurrent handshakes. */
const AT_A_TIME = 25;
const LEAVING = 10;
const RAISED: Environment = {
  RESEAL_CALLBACK_TEST_RATE: '1000/s',
  RESEAL_CALLBACK_TESTS_AT_ONCE: '300',
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '250',
  RESEAL_CALLBACK_TESTS_PER_HOST: '250',
};

/** Every request closes its connection: pooled connections would count as leaks. */
const CLOSE = { Connection: 'close' };

function requestFor(key: Key, url: string): string {
  const json = JSON.stringify({ url, access_key: 'k' });
  return (
    `PUT ${TEST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  );
}

/** Starts `count` tests, a few at a time; resolves when all of them have reached the receiver. */
async function begin<T>(count: number, receiver: Receiver, start: () => T): Promise<T[]> {
  const from = receiver.requests.length;
  const begun: T[] = [];
  while (begun.length < count) {
    begun.push(start());
    if (begun.length % AT_A_TIME === 0) await receiver.received(from + begun.length);
  }
  return begun;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const MIB = 1024 * 1024;
/** Memory in use, JavaScript heap and external, in MiB. */
async function memory(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await setImmediate();
    collectGarbage();
  }
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / MIB;
}

/** Active sockets, timers and queries of this process. */
const resources = () =>
  process.getActiveResourcesInfo().filter((one) => /^(TCPSocketWrap|TLSWrap|UDPWrap|Timeout|.*ReqWrap)$/.test(one));

/** The most that an idle service has: between its runs each chore waits with a timer, and while it runs it has none. */
async function idleResources(): Promise<number> {
  let most = 0;
  for (let turns = 0; turns < 500; turns += 1) {
    most = Math.max(most, resources().length);
    await sleep(2);
  }
  return most;
}

async function settlesTo(expected: number): Promise<void> {
  // Handles close in the next turn of the event loop, and a name server's socket some turns later.
  for (let turns = 0; turns < 5_000 && resources().length > expected; turns += 1) await sleep(2);
  assert.ok(
    resources().length <= expected,
    `${resources().length} instead of ${expected}: ${resources().sort().join()}`,
  );
}

function requireNoFault({ lines }: TestApp): void {
  const faults = lines.filter(({ event }) => event === 'error');
  assert.deepEqual(faults, []);
}

test(`${STORM} tests at once of a receiver that never answers all end, do not delay other requests, and leak nothing`, async (t) => {
  await using world = await startCallbackApp(RAISED);
  const { app, outside, receiver: healthy } = world;
  const silent = await outside.receiver({ script: () => {} });
  const [storm, other] = [await app.newKey(), await app.newKey()];
  const orders = [await newOrder(app), await newOrder(app)];
  const stormy = requestFor(storm, `https://${HOST}:${silent.port}/`);
  const others = requestFor(other, world.url());
  const testOther = async () => assert.equal((await sendRaw(app.url, others)).status, 200);
  const reissueBoth = async () => {
    for (const order of orders) {
      assert.equal(resultOf(await reissue(app, order, body(), '', CLOSE)), '200 success');
    }
  };

  // A warm-up without load, so that one-time allocations are not counted.
  await Promise.all(await begin(STORM / 2, healthy, testOther));
  await reissueBoth();
  await healthy.deserted();
  const baseline = { memory: await memory(), resources: await idleResources(), asked: healthy.requests.length };

  // The result must not depend on how fast the machine starts them: their timers expire when the test says so.
  using timers = holdTimers();
  app.server.prependListener(
    'request',
    ({ headers }) => headers['x-cc-key-id'] === storm.keyId && timers.holdFromHere(),
  );
  const begunAt = performance.now();
  const tests = await begin(STORM, silent, () => sendRaw(app.url, stormy));
  assert.equal(silent.openSockets, STORM, 'all of them are in flight');
  const early = await memory();
  const busy = resources().length;

  for (let round = 0; round < 10; round += 1) await testOther();
  await reissueBoth();
  await Promise.all(Array.from({ length: 20 }, testOther));
  assert.equal(silent.openSockets, STORM, 'still in flight: other requests did not wait for them');
  assert.equal(healthy.requests.length, baseline.asked + 30);

  await sleep(Math.max(0, 6_000 - (performance.now() - begunAt)));
  assert.equal(silent.openSockets, STORM);
  const late = await memory();

  assert.equal(timers.delays.length, STORM, 'each has one timer left, the response timeout');
  assert.ok(
    timers.delays.every((ms) => ms <= TEST_MS),
    timers.delays.join(),
  );
  timers.expire();
  for (const answer of tests) {
    const { status, body: text } = await answer;
    const { code, details } = JSON.parse(text);
    assert.deepEqual([status, code, details.stage], [422, 'callback_send_error', 'response'], text);
    assert.equal(details.reason, 'response_timeout');
  }
  assert.equal(silent.requests.length, STORM, 'each was sent once');
  await Promise.all([silent.deserted(), healthy.deserted()]);
  await settlesTo(baseline.resources);
  const after = await memory();

  const megabytes = [baseline.memory, early, late, after].map((one) => one.toFixed(1)).join(' / ');
  t.diagnostic(`MiB before / at first / later / after: ${megabytes}`);
  t.diagnostic(`resources before / during / after: ${baseline.resources} / ${busy} / ${resources().length}`);
  // All sides run in this process: the callers, the service and the receiver.
  assert.ok(early - baseline.memory < STORM * 0.25, `${megabytes}: more than a quarter of a MiB each`);
  assert.ok(late - early < 8, `${megabytes}: memory grew while waiting`);
  assert.ok(after - baseline.memory < 8, `${megabytes}: memory was not released`);
  requireNoFault(app);
  await testOther();
  await reissueBoth();
});

test('the caps are told apart, admit exactly their number, and free their slots', async () => {
  const caps = { RESEAL_CALLBACK_TESTS_AT_ONCE: '40', RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '20' };
  await using world = await startCallbackApp({ ...RAISED, ...caps, RESEAL_CALLBACK_TESTS_PER_HOST: '30' });
  const { app, outside } = world;
  outside.dns.set('elsewhere.example.test', 'A', ['127.0.0.1']);
  const waiting: Socket[] = [];
  const identity = outside.ca.identity([HOST, 'elsewhere.example.test']);
  const slow = await outside.receiver({ identity, script: (socket) => waiting.push(socket) });
  const underWay: Promise<RawAnswer>[] = [];

  /** Of thirty concurrent tests, exactly the cap is admitted and the others are refused. */
  async function push(host: string, expected: number, refusal: readonly [number, string]): Promise<void> {
    const request = requestFor(await app.newKey(), `https://${host}:${slow.port}/`);
    const from = slow.requests.length;
    const refused: RawAnswer[] = [];
    const { promise: areRefused, resolve } = Promise.withResolvers<void>();
    for (let one = 0; one < 30; one += 1) {
      const answer = sendRaw(app.url, request);
      underWay.push(answer);
      answer.then((early) => refused.push(early) === 30 - expected && resolve());
    }
    await Promise.all([slow.received(from + expected), areRefused]);
    for (const { status, headers, body: text } of refused) {
      assert.deepEqual([status, JSON.parse(text).code], refusal);
      assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/);
    }
    assert.equal(slow.openSockets, from + expected);
  }
  const busy = [503, 'service_busy'] as const;
  await push(HOST, 20, [429, 'request_too_fast']);
  await push(HOST, 10, busy);
  await push('elsewhere.example.test', 10, busy);
  await push('elsewhere.example.test', 0, busy);

  slow.script = respond(OK);
  for (const socket of waiting) socket.end(OK);
  const statuses = (await Promise.all(underWay)).map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 200).length, 40);
  assert.equal(slow.requests.length, 40);
  for (let one = 0; one < 2; one += 1) {
    const again = requestFor(await app.newKey(), `https://${HOST}:${slow.port}/`);
    for (const { status } of await Promise.all(Array.from({ length: 15 }, () => sendRaw(app.url, again)))) {
      assert.equal(status, 200, 'a slot is free again');
    }
  }
});

test('callers that disconnect cause at most one POST each, free their slots, and leak nothing', async (t) => {
  // Exactly as many slots as callers: later ones are admitted only if the slots were freed.
  const most = String(LEAVING);
  const caps = { RESEAL_CALLBACK_TESTS_AT_ONCE: most, RESEAL_CALLBACK_TESTS_PER_ACCOUNT: most };
  await using world = await startCallbackApp({ ...RAISED, ...caps });
  const { app, outside, receiver: healthy } = world;
  const { dns } = outside;
  dns.set('unheard.example.test', 'A', 'silence');
  const silent = await outside.receiver({ script: () => {} });
  const mute = await outside.receiver({ onAccept: () => {} });
  const key = await app.newKey();
  const passing = requestFor(key, world.url());

  /** All slots can be taken at once, long before an abandoned test would have timed out. */
  async function requireRoom(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const answers = await Promise.all(Array.from({ length: LEAVING }, () => sendRaw(app.url, passing)));
      const busy = answers.filter(({ status }) => status === 503).length;
      if (busy === 0) return assert.ok(answers.every(({ status }) => status === 200));
      assert.ok(tries < 20, `${busy} slots are not free`);
      await sleep(50);
    }
  }
  await requireRoom();
  await healthy.deserted();
  const before = await memory();
  const quiet = await idleResources();

  /** Fills every slot, and disconnects on demand. */
  async function leaving(url: string, isTime: (count: number) => Promise<void>): Promise<void> {
    for (let round = 1; round <= 2; round += 1) {
      const posts = silent.requests.length;
      const callers = await Promise.all(Array.from({ length: LEAVING }, () => RawConnection.to(app.url)));
      for (const caller of callers) caller.write(requestFor(key, url));
      await isTime(round * LEAVING);
      for (const caller of callers) caller.end();
      await Promise.all(callers.map((caller) => caller.closed()));
      await requireRoom();
      await Promise.all([silent, mute, healthy].map((receiver) => receiver.deserted()));
      await settlesTo(quiet);
      assert.ok(silent.requests.length - posts <= LEAVING, 'one POST for each caller at most');
    }
  }
  const until = async (isReached: () => boolean) => {
    while (!isReached()) await setImmediate();
  };
  const asked = () => dns.queries.filter(({ name, type }) => name === 'unheard.example.test' && type === 'A').length;
  const silentUrl = `https://${HOST}:${silent.port}/`;
  await leaving(silentUrl, (count) => silent.received(count));
  assert.equal(silent.requests.length, 2 * LEAVING, 'they had been sent when the callers disconnected');
  await leaving(`https://${HOST}:${mute.port}/`, (count) => until(() => mute.connections.length >= count));
  await leaving('https://unheard.example.test/', (count) => until(() => asked() >= count));
  await leaving(silentUrl, async () => {});
  await leaving(silentUrl, () => sleep(5));

  requireNoFault(app);
  const grown = (await memory()) - before;
  t.diagnostic(`${10 * LEAVING} callers have left; ${grown.toFixed(1)} MiB more than before them`);
  assert.ok(grown < 8, `${grown} MiB leaked`);
  const left = app.lines.filter((line) => line.event === 'request' && line.status === 499);
  assert.ok(left.length >= 6 * LEAVING, 'the log reports the disconnects');
});
