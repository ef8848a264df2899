// Quotas on every engine: open orders are counted exactly however many begin to wait at once, and stored bytes once each.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import { BYTES_PER_CERTIFICATE } from '../../src/domain/access/quota.ts';
import { Refusal } from '../../src/domain/errors.ts';
import { beginWaiting } from '../../src/usecases/validation/pending-certificates.ts';
import { bothEngines } from '../support/engines.ts';
import { certificate, claimPair, NOW, order } from '../support/records.ts';

const key = newSealKey();
const LIMITS = { pendingMs: 1_000, quotas: { openOrders: 5, storedBytes: 1 } };

for (const engine of await bothEngines()) {
  const testStore = (name: string, work: (store: OpenStore, other: OpenStore) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const open = () => openStore(location, sealerWith([key]), () => NOW);
      await using opened = new AsyncDisposableStack();
      const [store, other] = [await open(), await open()];
      for (const one of [store, other]) opened.defer(() => one.close());
      const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
      for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
      await claimPair(store);
      await work(store, other);
    });
  const storedOf = async ({ accounts }: OpenStore) =>
    Promise.all(['a', 'b'].map(async (id) => (await accounts.find(id))?.storedBytes));

  describe(engine.name, () => {
    testStore(
      'as many certificates begin to wait as the quota allows, through two instances at once',
      async (store, other) => {
        const begin = (index: number, accountId: string) =>
          (index % 2 ? store : other)
            .transaction(async (tx) => {
              const [orderId, id] = [`o${accountId}${index}`, `c${accountId}${index}`];
              await tx.orders.insert(order(orderId, { accountId }));
              await beginWaiting(tx, certificate(id, { accountId, orderId }), LIMITS);
              return 'waits';
            })
            .catch((error: unknown) => (error instanceof Refusal ? error.code : Promise.reject(error)));
        const outcomes = await Promise.all(Array.from({ length: 16 }, (_, index) => begin(index, 'a')));
        assert.equal(outcomes.filter((one) => one === 'waits').length, LIMITS.quotas.openOrders);
        assert.equal(outcomes.filter((one) => one === 'quota_exceeded').length, 11);
        assert.equal(await store.waiting.count('a', 100), LIMITS.quotas.openOrders);
        assert.equal(await store.waiting.count('a', 3), 3, 'no further than asked');
        assert.equal(await begin(99, 'b'), 'waits', 'of another account');
        // A limit of its own goes before the default.
        await store.accounts.setQuotas('a', { openOrders: 6 });
        assert.deepEqual([await begin(20, 'a'), await begin(21, 'a')], ['waits', 'quota_exceeded']);
      },
    );

    testStore(
      'stored bytes are counted once each, in the order of ids, by any number of instances',
      async (store, other) => {
        const csrs = ['', 'x'.repeat(100), 'é'];
        for (const accountId of ['a', 'b']) await store.orders.insert(order(`o${accountId}`, { accountId }));
        let bytes = 0;
        for (let index = 0; index < 30; index += 1) {
          const record = certificate(`c${String(index).padStart(2, '0')}`, {
            orderId: 'oa',
            csr: csrs[index % 3] ?? null,
          });
          await store.certificates.insert(record);
          bytes += BYTES_PER_CERTIFICATE + Buffer.byteLength(record.csr ?? '') + JSON.stringify(record.names).length;
        }
        await store.certificates.insert(certificate('d', { accountId: 'b', orderId: 'ob', csr: null }));
        const count = (by: OpenStore, before: string, limit: number) =>
          by.transaction((tx) => tx.accounts.countStored(before, limit));
        assert.equal(await count(store, 'c00', 10), 0, 'nothing is before the first');
        const counted = await Promise.all(
          Array.from({ length: 8 }, (_, index) => count(index % 2 ? store : other, 'd', 7)),
        );
        assert.deepEqual(
          counted.toSorted((one, two) => two - one),
          [7, 7, 7, 7, 2, 0, 0, 0],
        );
        assert.deepEqual(await storedOf(store), [bytes, 0]);
        assert.equal(await count(store, 'e', 7), 1);
        const [, ofB] = await storedOf(store);
        assert.ok(ofB && ofB > BYTES_PER_CERTIFICATE);
        // What was rolled back is counted again.
        await store.certificates.insert(certificate('f', { orderId: 'oa' }));
        const failed = store.transaction(async (tx) => {
          await tx.accounts.countStored('g', 7);
          throw new Error('the process ends here');
        });
        await assert.rejects(failed, /ends here/);
        assert.deepEqual(await storedOf(store), [bytes, ofB]);
        assert.equal(await count(other, 'g', 7), 1);
      },
    );
  });
}
