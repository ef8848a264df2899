// Regression tests of attacks on callback delivery that once succeeded, on every engine: outages, slow receivers,
// crashes within a range, floods, and receivers that send Retry-After.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { FAILURES_TO_OPEN } from '../../src/domain/callbacks/delivery.ts';
import type { CallOut } from '../../src/domain/egress/outbound.ts';
import { Secret } from '../../src/domain/secret.ts';
import { signatureOf } from '../../src/usecases/callbacks/sign-callback.ts';
import { waitFor } from '../support/deliveries.ts';
import {
  actorFor,
  answers,
  type DeliveryWorld,
  eventIn,
  hangs,
  openDeliveryWorld,
  watchTransactions,
} from '../support/dispatcher.ts';
import { bothEngines } from '../support/engines.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Longer than a lease. */
const LEASE_IS_OVER = MINUTE + 1;
const { callbacks: CONFIG } = readConfig({}).config;

const hostsIn = (calls: DeliveryWorld['calls']) => calls.map(({ url }) => url.host);
const statesOf = async (world: DeliveryWorld, accountId: string) =>
  new Set((await world.listed(accountId)).map(({ state, reason }) => `${state} ${reason}`));
const replay = (world: DeliveryWorld, state: 'delivered' | 'suppressed') =>
  world.deliveries.resendRange(actorFor('a'), { state }, { limit: 1_000 });
/** Exactly as many failures as open the circuit. */
async function close(world: DeliveryWorld, receiver: CallOut): Promise<void> {
  await world.emit('a', FAILURES_TO_OPEN);
  assert.equal((await world.run(receiver)).length, FAILURES_TO_OPEN);
}

for (const engine of await bothEngines()) {
  const attack = (name: string, work: (world: DeliveryWorld) => Promise<void>) =>
    test(name, async () => {
      await using world = await openDeliveryWorld(await engine.newLocation());
      await work(world);
    });

  describe(`attacks on delivery in ${engine.name}`, () => {
    attack('events queued during an outage of the service are not given up after one failure', async (world) => {
      await world.account('a');
      const ids = await world.emit('a', 20);
      world.advance(5 * DAY);
      assert.equal((await world.run(answers(500))).length, 20);
      assert.deepEqual(await statesOf(world, 'a'), new Set(['pending null']));
      // Neither is the event that is retried first, and the others are unchanged.
      world.advance(10 * SECOND);
      assert.equal((await world.run(answers(500))).length, 1);
      assert.deepEqual(await statesOf(world, 'a'), new Set(['pending null']));
      world.advance(MINUTE);
      const calls = await world.drain('a', answers(200));
      assert.deepEqual(calls.map(eventIn).sort(), ids.sort());
    });

    attack('eight accounts with slow receivers leave a slot for the ninth', async (world) => {
      const slow = Array.from({ length: 8 }, (_, index) => `slow${index}`);
      assert.ok(slow.length * CONFIG.perAccount >= CONFIG.atOnce, 'enough to occupy every slot');
      for (const id of slow) {
        await world.account(id);
        await world.emit(id, CONFIG.perAccount + 1);
      }
      const dispatcher = world.dispatcher(hangs);
      await dispatcher.poll();
      assert.deepEqual(new Set(hostsIn(world.calls)), new Set(slow.map((id) => `${id}.example.com`)));
      await world.account('ninth');
      await world.emit('ninth');
      await dispatcher.poll();
      assert.ok(hostsIn(world.calls).includes('ninth.example.com'));
    });

    attack('accounts with a slow host leave a slot for another account on the same host', async (world) => {
      const slow = ['slow0', 'slow1'];
      assert.ok(slow.length * CONFIG.perAccount >= CONFIG.perHost, 'enough to occupy every slot of the host');
      for (const id of slow) {
        await world.account(id, 'hooks.example.com');
        await world.emit(id, CONFIG.perAccount + 1);
      }
      const dispatcher = world.dispatcher(hangs);
      await dispatcher.poll();
      await world.account('third', 'hooks.example.com');
      const [id] = await world.emit('third');
      await dispatcher.poll();
      assert.ok(world.calls.map(eventIn).includes(id!));
    });

    attack('a range keeps its order when its sender dies', async (world) => {
      await world.account('a');
      const ids = await world.emit('a', 5);
      await world.drain('a', answers(200));
      await replay(world, 'delivered');
      const before = world.calls.length;
      await world.dies();
      world.advance(SECOND);
      assert.deepEqual(await world.run(answers(200)), [], 'it may still be in flight');
      world.advance(LEASE_IS_OVER);
      await world.drain('a', answers(200));
      assert.deepEqual(world.calls.slice(before).map(eventIn), [ids[0], ...ids]);
    });

    attack('a range keeps its order when its sender stops', async (world) => {
      await world.account('a');
      const ids = await world.emit('a', 5);
      await world.drain('a', answers(200));
      await replay(world, 'delivered');
      const before = world.calls.length;
      const stopping = world.dispatcher(hangs);
      await stopping.poll();
      world.advance(SECOND);
      await stopping.stop(0);
      await world.drain('a', answers(200));
      assert.deepEqual(world.calls.slice(before).map(eventIn), [ids[0], ...ids]);
      const attempts = (await world.listed('a')).map((one) => one.attempts);
      assert.deepEqual(attempts, [2, 2, 2, 2, 2], 'a released lease does not count as an attempt');
    });

    attack('a second rotation does not shorten the first overlap, and each overlap ends', async (world) => {
      await world.account('a');
      const secretIn = async () => (await world.settings.show('a'))!.signingSecret.reveal();
      const secrets = [await secretIn()];
      for (let count = 0; count < 2; count += 1) {
        await world.settings.rotateSecret(actorFor('a'));
        secrets.unshift(await secretIn());
        world.advance(HOUR);
      }
      const signers = async () => {
        await world.emit('a');
        const [call] = await world.drain('a', answers(200));
        const { 'webhook-id': id = '', 'webhook-timestamp': at = '', 'webhook-signature': sent = '' } = call!.headers;
        const expected = secrets.map((secret) => signatureOf(new Secret(secret), id, at, call!.body));
        return sent.split(' ').map((one) => expected.indexOf(one));
      };
      assert.deepEqual(await signers(), [0, 1, 2]);
      world.advance(CONFIG.rotationMs);
      assert.deepEqual(await signers(), [0]);
      await world.settings.rotateSecret(actorFor('a'));
      secrets.unshift(await secretIn());
      assert.deepEqual(await signers(), [0, 1], 'an ended overlap is not revived');
    });

    attack('nothing is claimed while all slots are taken', async (world) => {
      const accounts = Array.from({ length: 12 }, (_, index) => `a${index}`);
      for (const id of accounts) {
        await world.account(id);
        await world.emit(id);
      }
      let transactions = 0;
      const store = watchTransactions(world.store, () => {
        transactions += 1;
      });
      const answer: ((outcome: Awaited<ReturnType<CallOut>>) => void)[] = [];
      const slow: CallOut = (call) =>
        new Promise((resolve) => {
          answer.push(resolve);
          void hangs(call).then(resolve);
        });
      const dispatcher = world.dispatcher(slow, { store, limits: { total: 4, perAccount: 2, perHost: 4 } });
      await dispatcher.poll();
      assert.equal(world.calls.length, 4);
      transactions = 0;
      for (let count = 0; count < 5; count += 1) {
        world.advance(3 * SECOND);
        await dispatcher.poll();
      }
      assert.equal(transactions, 0);
      for (const [index, done] of answer.slice(0, 4).entries()) {
        done(await answers(200)(world.calls[index]!));
        await waitFor('the place is taken', () => world.calls.length === 5 + index);
      }
      assert.equal(new Set(hostsIn(world.calls)).size, 8);
    });

    attack('saving unchanged settings does not reset the lane, changing URL or key does', async (world) => {
      await world.account('a');
      await close(world, answers(500));
      const same = { url: 'https://a.example.com/', access_key: 'key-of-a' };
      const table: [change: Readonly<Record<string, unknown>>, calls: number][] = [
        [same, 0],
        [{ ...same, enabled_actions: ['order:issued'] }, 0],
        [{ disabled: false }, 0],
        [{ ...same, access_key: 'another' }, FAILURES_TO_OPEN],
        [{ ...same, access_key: 'another' }, 0],
        [{ url: 'https://other.example.com/', access_key: 'another' }, FAILURES_TO_OPEN],
        [{ url: 'https://other.example.com/', access_key: 'another' }, 0],
      ];
      for (const [change, calls] of table) {
        // Never attempted, so that only the lane delays them.
        const waiting = (await world.listed('a')).filter(({ attempts }) => attempts === 0).length;
        await world.emit('a', FAILURES_TO_OPEN - waiting);
        await world.settings.save(actorFor('a'), change);
        assert.equal((await world.run(answers(500))).length, calls, JSON.stringify(change));
      }
    });

    attack('an account behind a flood of events is sorted in the first round', async (world) => {
      for (const id of ['flood', 'late']) await world.account(id);
      await world.emit('flood', 2_000);
      world.advance(1);
      await world.emit('late');
      let rounds = 0;
      const store = watchTransactions(world.store, ({ deliveryQueue }) => {
        const { enqueueNew } = deliveryQueue;
        Object.assign(deliveryQueue, {
          enqueueNew(...of: Parameters<typeof enqueueNew>) {
            rounds += 1;
            return enqueueNew(...of);
          },
        });
      });
      const servedIn = new Map<string, number>();
      const receiver: CallOut = (call) => {
        if (!servedIn.has(call.url.host)) servedIn.set(call.url.host, rounds);
        return hangs(call);
      };
      await world.dispatcher(receiver, { store }).poll();
      assert.deepEqual(Object.fromEntries(servedIn), { 'flood.example.com': 1, 'late.example.com': 1 });
      assert.ok(rounds > 1, 'a flood of more than one round');
    });

    attack('a receiver that sends Retry-After still gets every attempt of the schedule', async (world) => {
      await world.account('a');
      await world.emit('a');
      for (let attempt = 1; attempt <= CONFIG.schedule.length + 1; attempt += 1) {
        assert.deepEqual(await statesOf(world, 'a'), new Set(['pending null']), `before attempt ${attempt}`);
        const calls = await world.run(answers(503, { 'retry-after': String(DAY / SECOND) }));
        assert.equal(calls.length, 1, `attempt ${attempt}`);
        world.advance(DAY);
      }
      assert.deepEqual(await statesOf(world, 'a'), new Set(['failed attempts_used_up']));
    });

    for (const [asked, granted] of [
      [30 * MINUTE, 30 * MINUTE],
      [DAY, HOUR],
    ] as const) {
      const name = `a lane that closes when its receiver asks for ${asked / MINUTE} min opens after ${granted / MINUTE}`;
      attack(name, async (world) => {
        await world.account('a');
        const receiver = answers(429, { 'retry-after': String(asked / SECOND) });
        await close(world, receiver);
        await world.emit('a', 20);
        // When the schedule alone would have closed the circuit, and until the last moment.
        for (const wait of [10 * SECOND, granted - 10 * SECOND - 1]) {
          world.advance(wait);
          assert.deepEqual(await world.run(receiver), []);
        }
        world.advance(1);
        assert.equal((await world.run(receiver)).length, 1, 'one probe');
      });
    }

    attack('age and latency of a resent event count from the resend request', async (world) => {
      await world.account('a', null);
      await world.emit('a', 3);
      world.advance(60 * DAY);
      await world.settings.save(actorFor('a'), { url: 'https://a.example.com/', access_key: 'key-of-a' });
      assert.equal((await replay(world, 'suppressed')).resent, 3);
      const asked = world.now();
      world.advance(7 * SECOND);
      assert.equal((await world.store.deliveries.queueFacts()).oldestPendingAt, asked);
      const latencies: number[] = [];
      const observer = { attempted() {}, gaveUp() {}, firstAttempt: (ms: number) => void latencies.push(ms) };
      for (let count = 0; count < 3; count += 1) await world.run(answers(200), { observer });
      assert.deepEqual(latencies, [7 * SECOND, 7 * SECOND, 7 * SECOND]);
      assert.equal((await world.store.deliveries.queueFacts()).oldestPendingAt, null);
    });

    attack('events of a crashed sender are due when resent, and not while they may be in flight', async (world) => {
      await world.account('a');
      const [id] = await world.emit('a');
      await world.dies();
      world.advance(SECOND);
      const resend = () => world.deliveries.resend(actorFor('a'), id!);
      assert.deepEqual([(await resend()).state, (await resend()).nextAttemptAt], ['pending', null]);
      assert.deepEqual(await world.run(answers(200)), [], 'it may still be in flight');
      world.advance(LEASE_IS_OVER);
      assert.equal((await resend()).nextAttemptAt, world.now());
      assert.deepEqual((await world.run(answers(200))).map(eventIn), [id]);
      assert.deepEqual(await statesOf(world, 'a'), new Set(['delivered null']));
    });
  });
}
