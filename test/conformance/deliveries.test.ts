// The delivery queue, on every engine: contents of an event, leases and fencing, when a lane is due, and retention.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { randomBytes } from '../../src/adapters/seal/random.ts';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { CallbackSettings } from '../../src/domain/callbacks/callback.ts';
import type { PendingEvent } from '../../src/domain/callbacks/ports.ts';
import { idMaker } from '../../src/domain/ids.ts';
import { Secret } from '../../src/domain/secret.ts';
import { claimDeliveries } from '../../src/usecases/callbacks/claim-deliveries.ts';
import { deliverySlots } from '../../src/usecases/callbacks/concurrency-limits.ts';
import { bothEngines } from '../support/engines.ts';
import { claimPair, issued, NOW, order } from '../support/records.ts';

const sealer = sealerWith([newSealKey()]);
const HOUR = 3_600_000;
const MANY = 300;

const settings = (accountId: string, change: Partial<CallbackSettings> = {}): CallbackSettings => ({
  ...{ accountId, url: 'https://hooks.example.com/', accessKey: new Secret('k'), signingSecret: new Secret('s') },
  ...{ former: null, isDisabled: false, enabledActions: null, updatedAt: NOW },
  ...change,
});
const event = (id: string, accountId = 'a', createdAt = NOW) =>
  ({
    id,
    accountId,
    orderId: 'o',
    orderStatus: 'issued',
    certificateId: 'c',
    action: 'order:issued',
    createdAt,
  }) as const;
const attempt = (number: number) => ({ number, at: NOW, ms: 5, httpStatus: 500, reason: null, excerpt: 'no' });

for (const engine of await bothEngines()) {
  /** Accounts a, b and c; a and b have settings. */
  const testStore = (name: string, work: (store: OpenStore, another: () => Promise<OpenStore>) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const opened = [await openStore(location, sealer, () => NOW)];
      const [store] = opened as [OpenStore];
      const another = async () => {
        const one = await openStore(location, sealer, () => NOW);
        opened.push(one);
        return one;
      };
      try {
        const account = { name: 'Name', kind: 'standard', createdAt: NOW } as const;
        for (const id of ['a', 'b', 'c']) {
          await store.accounts.insert({ id, locale: id === 'b' ? 'zh-CN' : 'en', ...account });
        }
        await claimPair(store);
        await store.orders.insert(order('o'));
        await store.certificates.insert(issued('c'));
        for (const id of ['a', 'b']) await store.callbacks.save(settings(id));
        await work(store, another);
      } finally {
        for (const one of opened) await one.close();
      }
    });

  const sort = (store: OpenStore, now = NOW) => store.transaction((tx) => tx.deliveryQueue.enqueueNew(1_000, now));
  const due = (store: OpenStore, accountId = 'a', now = NOW, inOrder = false) =>
    store.transaction((tx) => tx.deliveryQueue.dueEvents(accountId, now, inOrder, 1_000));
  const lease = (store: OpenStore, events: readonly PendingEvent[], token: string, until = NOW + 60_000) =>
    store.transaction((tx) =>
      tx.deliveryQueue.lease(
        events.map(({ id }) => id),
        { token, until },
      ),
    );
  const listed = async (store: OpenStore, accountId = 'a') =>
    (await store.deliveries.list(accountId, {}, { limit: 1_000 })).deliveries;
  const idsOf = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id);

  describe(`deliveries in ${engine.name}`, () => {
    testStore(
      'an event is written in its account’s language, and suppressed if the account has no settings',
      async (store) => {
        for (const id of ['a', 'b', 'c']) await store.outbox.add(event(`e${id}`, id));
        assert.equal(await sort(store), 2);
        const [[english], [chinese]] = [await due(store, 'a'), await due(store, 'b')];
        assert.deepEqual(JSON.parse(english!.body), {
          ...{ action_type: 'order', action_id: 'order:issued', order_id: 'o', order_status: 'issued', cert_id: 'c' },
          message: 'The certificate of the order has been issued.',
        });
        assert.equal(JSON.parse(chinese!.body).message, '订单的证书已签发。');
        const [silent] = await listed(store, 'c');
        assert.deepEqual([silent?.state, silent?.reason, silent?.settledAt], ['suppressed', 'not_configured', NOW]);
        assert.deepEqual(await store.callbackLanes.due(NOW, 10), ['a', 'b']);
        await assert.rejects(store.outbox.add(event('ea')), 'twice');
        await assert.rejects(store.outbox.add(event('ex', 'nobody')));
      },
    );

    testStore('a lease hides an event until it expires, and a lost lease cannot write', async (store) => {
      await store.outbox.add(event('e1'));
      await sort(store);
      const events = await due(store);
      await lease(store, events, 'first');
      assert.deepEqual(await due(store), []);
      assert.deepEqual(idsOf(await due(store, 'a', NOW + 60_000)), ['e1']);
      await lease(store, events, 'second', NOW + 120_000);
      const [one] = events as [PendingEvent];
      const lost = { event: one, token: 'first', attempt: attempt(1) };
      assert.deepEqual(await store.transaction((tx) => tx.deliveryQueue.markDelivered([lost], NOW)), []);
      for (const note of ['scheduleRetry', 'markFailed'] as const) {
        const noted = store.transaction((tx) => tx.deliveryQueue[note](lost, NOW, 'attempts_used_up'));
        assert.equal(await noted, false, note);
      }
      assert.equal(await store.transaction((tx) => tx.deliveryQueue.release(one, 'first', NOW)), false);
      assert.deepEqual((await store.deliveries.attemptsOf(['e1'])).get('e1'), undefined);
      const kept = { ...lost, token: 'second' };
      const both = await store.transaction((tx) => tx.deliveryQueue.markDelivered([lost, kept], NOW + 7));
      assert.deepEqual(both, [kept]);
      assert.deepEqual(await store.transaction((tx) => tx.deliveryQueue.markDelivered([kept], NOW + 8)), [], 'once');
      const [done] = await listed(store);
      assert.deepEqual([done?.state, done?.settledAt, done?.attempts], ['delivered', NOW + 7, 1]);
      assert.deepEqual((await store.deliveries.attemptsOf(['e1'])).get('e1'), [attempt(1)]);
    });

    testStore('many attempts of several claims are recorded together, those with a lease only', async (store) => {
      const ids = Array.from({ length: 40 }, (_, index) => `e${String(index).padStart(2, '0')}`);
      for (const id of ids) await store.outbox.add(event(id));
      await sort(store);
      const events = await due(store);
      await lease(store, events.slice(0, 33), 'first');
      await lease(store, events.slice(33), 'second');
      await lease(store, events.slice(5, 6), 'another');
      const leased = events.map((one, index) => ({
        ...{ event: one, token: index < 33 ? 'first' : 'second', attempt: attempt(1) },
      }));
      const held = await store.transaction((tx) => tx.deliveryQueue.markDelivered(leased, NOW + 7));
      assert.deepEqual(idsOf(held.map((one) => one.event)).sort(), ids.toSpliced(5, 1));
      const states = (await listed(store)).filter(({ state }) => state !== 'delivered');
      assert.deepEqual(idsOf(states), [ids[5]]);
      assert.equal((await store.deliveries.attemptsOf(ids)).size, 39);
    });

    testStore('each event is leased by one of several concurrent instances', async (store, another) => {
      const stores = [store, await another(), await another()];
      const newId = idMaker(() => NOW, randomBytes);
      for (let count = 0; count < MANY; count += 1) await store.outbox.add(event(newId(), count % 2 ? 'a' : 'b'));
      const limits = { total: 1_000, perAccount: 7, perHost: 1_000 };
      const taken: string[] = [];
      const instance = async (one: OpenStore) => {
        for (let rounds = 0; rounds < 100 && taken.length < MANY; rounds += 1) {
          const claim = claimDeliveries({ store: one, now: () => NOW, newId, slots: deliverySlots(limits) });
          const { hasOthers, ...direct } = await claim.fromNew(10, () => true);
          if (hasOthers) await sort(one);
          const claims = [direct, ...(await claim.fromLanes(['a', 'b'])).values()];
          for (const { claimed } of claims) taken.push(...claimed.map(({ event }) => event.id));
        }
      };
      await Promise.all(stores.map(instance));
      assert.equal(taken.length, MANY);
      assert.equal(new Set(taken).size, MANY);
    });

    testStore('a lane is due when its first event is, and not while its circuit is open', async (store) => {
      for (const id of ['e1', 'e2']) await store.outbox.add(event(id));
      await sort(store);
      const lane = {
        accountId: 'a',
        failures: 0,
        openCount: 0,
        openUntil: 0,
        degradedSince: 0,
        inOrderUntil: 0,
        notBefore: 0,
      };
      const dueAt = async (change: Partial<typeof lane> = {}) => {
        await store.transaction((tx) => tx.callbackLanes.save({ ...lane, ...change }));
        for (const at of [NOW, NOW + 10, NOW + 60_000, NOW + HOUR]) {
          if ((await store.callbackLanes.due(at, 10)).includes('a')) return at - NOW;
        }
        return null;
      };
      assert.equal(await dueAt(), 0);
      assert.equal(await dueAt({ notBefore: NOW + 10 }), 10);
      const events = await due(store);
      await lease(store, events, 't');
      assert.equal(await dueAt(), 60_000);
      const [first, second] = events as [PendingEvent, PendingEvent];
      await store.transaction(async (tx) => {
        await tx.deliveryQueue.scheduleRetry({ event: first, token: 't', attempt: attempt(1) }, NOW + 10);
        await tx.deliveryQueue.markDelivered([{ event: second, token: 't', attempt: attempt(1) }], NOW);
      });
      assert.equal(await dueAt({ failures: 9, openCount: 1 }), 10);
      await store.callbackLanes.reset(['a'], NOW);
      assert.deepEqual(await store.callbackLanes.due(NOW, 10), ['a'], 'due at once after a reset');
      const healed = await store.transaction((tx) => tx.callbackLanes.tryLock('a'));
      assert.deepEqual([healed?.failures, healed?.openCount], [0, 0]);
      const again = await due(store, 'a', NOW + 10);
      await store.transaction((tx) => tx.deliveryQueue.suppress(idsOf(again), 'disabled', NOW));
      assert.equal(await dueAt(), null);
    });

    testStore('events past the retry period are given up, and newer ones are not', async (store) => {
      await store.outbox.add(event('old', 'a', NOW - 100));
      await store.outbox.add(event('young', 'a', NOW));
      await sort(store);
      const old = await store.transaction((tx) =>
        tx.deliveryQueue.failBegunBefore('a', NOW - 50, { now: NOW, includeInOrder: true, limit: 100 }),
      );
      assert.deepEqual(idsOf(old), ['old']);
      const states = new Map((await listed(store)).map(({ id, state, reason }) => [id, `${state} ${reason}`]));
      assert.deepEqual([states.get('old'), states.get('young')], ['failed receiver_down', 'pending null']);
      assert.equal(await store.deliveries.failedSince(NOW, 10), 1);
      assert.equal(await store.deliveries.failedSince(NOW + 1, 10), 0);
    });

    testStore('sending again restarts the schedule, and leaves leased events alone', async (store) => {
      await store.outbox.add(event('e1'));
      await sort(store);
      const [first] = (await due(store)) as [PendingEvent];
      await lease(store, [first], 't');
      await store.transaction((tx) => tx.deliveries.resend('a', 'e1', NOW + 1));
      const failed = { event: first, token: 't', attempt: attempt(1) };
      assert.equal(
        await store.transaction((tx) => tx.deliveryQueue.markFailed(failed, NOW, 'receiver_down')),
        true,
        'it kept its lease',
      );
      await store.transaction((tx) => tx.deliveries.resend('b', 'e1', NOW + 2));
      assert.equal((await listed(store))[0]?.state, 'failed', 'another account changes nothing');
      await store.transaction((tx) => tx.deliveries.resend('a', 'e1', NOW + 2));
      const [again] = await due(store, 'a', NOW + 2);
      assert.deepEqual([again?.tries, again?.attempts, again?.begunAt, again?.body], [0, 1, NOW + 2, first.body]);
    });

    testStore('the last twenty attempts of an event are kept', async (store) => {
      await store.outbox.add(event('e1'));
      await sort(store);
      for (let number = 1; number <= 23; number += 1) {
        const [one] = (await due(store)) as [PendingEvent];
        await lease(store, [one], `t${number}`);
        const noted = { event: one, token: `t${number}`, attempt: attempt(number) };
        assert.equal(await store.transaction((tx) => tx.deliveryQueue.scheduleRetry(noted, NOW)), true);
      }
      const kept = (await store.deliveries.attemptsOf(['e1'])).get('e1')?.map(({ number }) => number);
      assert.deepEqual(
        kept,
        Array.from({ length: 20 }, (_, index) => index + 4),
      );
    });

    testStore('a rotated secret is kept next to its successor', async (store) => {
      const times = { now: NOW, formerUntil: NOW + HOUR };
      const rotate = (to: OpenStore, accountId: string, secret: string) =>
        to.transaction((inside) => inside.callbacks.rotateSecret(accountId, new Secret(secret), times));
      assert.equal(await rotate(store, 'c', 'x'), undefined, 'nothing was saved');
      const clear = (saved: CallbackSettings | undefined) => [
        saved?.signingSecret.reveal(),
        saved?.former?.secrets.map((one) => one.reveal()).join(' '),
        saved?.former?.until,
      ];
      assert.deepEqual(clear(await rotate(store, 'a', 's2')), ['s2', 's', NOW + HOUR]);
      assert.deepEqual(
        clear(await rotate(store, 'a', 's3')),
        ['s3', 's2 s', NOW + HOUR],
        'every secret still within its overlap',
      );
      assert.deepEqual(clear(await store.callbacks.save(settings('a', { url: 'https://other.example/' }))), [
        ...['s3', 's2 s', NOW + HOUR],
      ]);
      assert.deepEqual(clear(await store.callbacks.find('b')), ['s', undefined, undefined]);
      await store.callbacks.delete('a');
      assert.equal(await store.callbacks.find('a'), undefined);
    });

    testStore('paging ends for every filter, and purging events purges their attempts', async (store) => {
      const newId = idMaker(() => NOW, randomBytes);
      await store.transaction(async (tx) => {
        for (let count = 0; count < 2_100; count += 1) await tx.outbox.add(event(newId(), 'c'));
        await tx.outbox.add({ ...event(newId(), 'c'), action: 'order:revoked' });
      });
      const filter = { action: 'order:rejected' } as const;
      const first = await store.deliveries.list('c', filter, { limit: 10 });
      assert.deepEqual([first.deliveries.length, typeof first.nextAfter], [0, 'string'], 'the scan is bounded');
      const last = await store.deliveries.list('c', filter, { after: first.nextAfter ?? '', limit: 10 });
      assert.deepEqual(last, { deliveries: [], nextAfter: null });
      const revoked = await store.deliveries.list('c', { action: 'order:revoked' }, { limit: 1 });
      assert.equal(revoked.deliveries.length, 1);
      assert.equal(
        await store.transaction((tx) => tx.deliveries.deleteSettled(NOW, 500)),
        0,
        'not before the retention period ends',
      );
      assert.equal(await store.transaction((tx) => tx.deliveries.deleteSettled(NOW + 1, 500)), 500, 'in batches');
      const facts = await store.deliveries.queueFacts();
      assert.deepEqual(facts, { pending: 0, oldestPendingAt: null, degradedLanes: 0 });
    });
  });
}
