// ACME orders and their authorizations, on every engine: each answered challenge is claimed once, one that was changed
// meanwhile is not changed again, and what has ended frees what it held.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { AcmeOrder } from '../../src/domain/acme/acme-order.ts';
import { type Authorization, type PendingAuthorization, seenOf } from '../../src/domain/acme/authorization.ts';
import type { StoredProblem } from '../../src/domain/acme/stored-problem.ts';
import { bothEngines } from '../support/engines.ts';
import { NOW, ODD, order } from '../support/records.ts';

const key = newSealKey();

const acmeOrder = (orderId: string, change: Partial<AcmeOrder> = {}): AcmeOrder => ({
  ...{
    orderId,
    accountId: 'a',
    acmeAccountId: 'acme',
    acmeAccountUrl: `https://ca/${ODD}`,
    certificateId: `c-${orderId}`,
  },
  ...{ replaces: null, revokesReplaced: false, notAfter: null, expiresAt: NOW + 1_000, problem: null },
  ...{ keepUntil: NOW + 2_000, ...change },
});
const facts = (id: string, orderId: string) => ({
  ...{ id, orderId, accountId: 'a', acmeAccountId: 'acme', name: '*.example.com', token: 't', expiresAt: NOW + 1_000 },
});
const pending = (id: string, orderId: string, answered: PendingAuthorization['answered'] = null) =>
  ({ ...facts(id, orderId), state: 'pending', answered }) as const;
const problem: StoredProblem = {
  ...{ type: 'caa', detail: { en: ODD, zh: '原因' }, identifier: { type: 'dns', value: 'example.com' } },
  subproblems: [{ type: 'dns', detail: { en: '', zh: '' } }],
};

const EVERY_STATE: readonly Authorization[] = [
  pending('1', 'o1'),
  pending('2', 'o1', { method: 'http-01', dueAt: NOW }),
  { ...facts('3', 'o1'), state: 'valid', method: 'tls-alpn-01', validatedAt: NOW },
  { ...facts('4', 'o1'), state: 'invalid', method: 'dns-01', problem },
  { ...facts('5', 'o1'), state: 'deactivated' },
];

for (const engine of await bothEngines()) {
  const testStore = (name: string, work: (store: OpenStore) => Promise<void>) =>
    test(name, async () => {
      const store = await openStore(await engine.newLocation(), sealerWith([key]), () => NOW);
      try {
        for (const id of ['a', 'b'])
          await store.accounts.insert({ id, name: id, kind: 'standard', locale: 'en', createdAt: NOW });
        for (const id of ['o1', 'o2', 'o3'])
          await store.orders.insert(order(id, { status: 'domain_verifing', currentCertificateId: null }));
        await work(store);
      } finally {
        await store.close();
      }
    });

  describe(`ACME orders in ${engine.name}`, () => {
    testStore('orders and authorizations are read as they were written', async ({ acmeOrders, authorizations }) => {
      const full = acmeOrder('o1', {
        ...{ replaces: { certId: 'x.y', certificateId: 'c' }, revokesReplaced: true, notAfter: '2027-01-01T00:00:00Z' },
      });
      await acmeOrders.insert(full, EVERY_STATE);
      assert.deepEqual(await acmeOrders.find('a', 'o1'), full);
      assert.deepEqual(await acmeOrders.findByCertificate('a', 'c-o1'), full);
      assert.deepEqual(
        [await acmeOrders.find('b', 'o1'), await acmeOrders.findByCertificate('b', 'c-o1')],
        [undefined, undefined],
      );
      assert.deepEqual(await authorizations.ofOrder('o1'), EVERY_STATE);
      for (const one of EVERY_STATE) assert.deepEqual(await authorizations.find('acme', one.id), one);
      assert.equal(await authorizations.find('other', '1'), undefined);
      assert.equal(await authorizations.countPending('acme', 10), 2);
      assert.equal(await authorizations.countPending('acme', 1), 1);
      await acmeOrders.end('o1', problem);
      assert.deepEqual(await acmeOrders.find('a', 'o1'), { ...full, problem });
    });

    testStore('an order that ended frees its room, its authorizations, and what it replaced', async (store) => {
      const { acmeOrders, authorizations, orders, waiting } = store;
      const replaces = { certId: 'x.y', certificateId: 'c' };
      for (const id of ['o1', 'o2']) await acmeOrders.insert(acmeOrder(id, { replaces }), [pending(id, id)]);
      assert.deepEqual(
        [await waiting.count('a', 10), await waiting.count('a', 1), await waiting.count('b', 10)],
        [2, 1, 0],
      );
      assert.deepEqual(await acmeOrders.list('acme', { limit: 10 }), ['o1', 'o2']);
      assert.deepEqual(await acmeOrders.list('acme', { after: 'o1', limit: 10 }), ['o2']);
      assert.equal(await acmeOrders.findReplacing('a', 'c'), 'o1');
      await orders.save(order('o1', { status: 'canceled', currentCertificateId: null }));
      await acmeOrders.end('o1');
      assert.equal(await acmeOrders.findReplacing('a', 'c'), 'o2');
      assert.equal(await acmeOrders.findReplacing('b', 'c'), undefined);
      assert.deepEqual(await acmeOrders.list('acme', { limit: 10 }), ['o2']);
      assert.equal(await waiting.count('a', 10), 1);
      assert.equal((await authorizations.find('acme', 'o1'))?.state, 'expired');
      assert.equal((await authorizations.find('acme', 'o2'))?.state, 'pending');
      await acmeOrders.finalize('o2', NOW + 9_000);
      assert.equal(await waiting.count('a', 10), 0);
    });

    testStore('each due challenge is claimed once, and saved by the holder of its lease only', async (store) => {
      const { acmeOrders, authorizations } = store;
      const due = { method: 'dns-01', dueAt: NOW } as const;
      await acmeOrders.insert(acmeOrder('o1'), [pending('1', 'o1', due), pending('2', 'o1', due), pending('3', 'o1')]);
      assert.deepEqual(await authorizations.claim(NOW, NOW + 50, 10, ['a']), []);
      const claims = await Promise.all([1, 2, 3].map(() => authorizations.claim(NOW, NOW + 50, 1)));
      assert.deepEqual(
        claims
          .flat()
          .map(({ id }) => id)
          .sort(),
        ['1', '2'],
      );
      const [lease] = claims.flat();
      assert.ok(lease?.state === 'pending');
      const valid: Authorization = { ...facts(lease.id, 'o1'), state: 'valid', method: 'dns-01', validatedAt: NOW };
      assert.equal(await authorizations.save(valid, { state: 'pending', dueAt: NOW }), false);
      assert.equal(await authorizations.save(valid, seenOf(lease)), true);
      assert.equal(await authorizations.save(valid, seenOf(lease)), false);
      assert.equal(await authorizations.repair(NOW - 10 * 3_600_000), 1);
    });

    testStore('what has ended is deleted in time, and nothing else', async ({ acmeOrders, authorizations }) => {
      for (const id of ['o1', 'o2', 'o3']) await acmeOrders.insert(acmeOrder(id), [pending(id, id)]);
      await acmeOrders.end('o1');
      await acmeOrders.finalize('o2', NOW + 9_000);
      assert.deepEqual(await acmeOrders.expired(NOW + 999, 10), []);
      assert.deepEqual(await acmeOrders.expired(NOW + 1_000, 10), [{ accountId: 'a', orderId: 'o3' }]);
      await acmeOrders.expireAll('acme', NOW);
      assert.deepEqual(await acmeOrders.expired(NOW, 10), [{ accountId: 'a', orderId: 'o3' }]);
      assert.equal(await acmeOrders.deleteKeptUntil(NOW + 3_000, 10), 1);
      assert.deepEqual(await authorizations.ofOrder('o1'), []);
      assert.ok((await acmeOrders.find('a', 'o2')) && (await acmeOrders.find('a', 'o3')));
      assert.equal(await authorizations.deleteExpired(NOW + 1_001, 1), 1);
      assert.equal(await authorizations.deleteExpired(NOW + 1_001, 9), 1);
    });
  });
}
