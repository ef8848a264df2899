// The queue of waiting certificates, on every engine: each due one is claimed once, one that is being signed keeps its id,
// and the serial number of a lost signer is kept under another id.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import type { Db } from '../../src/adapters/store/engine/schema.ts';
import { engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { WaitingCertificate } from '../../src/domain/validation/ports.ts';
import { bothEngines } from '../support/engines.ts';
import {
  certificate,
  claimPair,
  EVERY_BYTE,
  NOW,
  ODD,
  order,
  preparation,
  prepared,
  voided,
} from '../support/records.ts';
import { finished, HOLDS, half, signed } from '../support/signings.ts';

const key = newSealKey();

const waiting = (certificateId: string, change: Partial<WaitingCertificate> = {}): WaitingCertificate => ({
  ...{ certificateId, accountId: 'a', orderId: 'o', dueAt: NOW, tries: 0, expiresAt: NOW + 1_000, findings: {} },
  ...change,
});
const FULL: Partial<WaitingCertificate> = {
  ...{ dueAt: 2 ** 52, tries: 2 ** 31, expiresAt: 2 ** 52 + 1 },
  findings: {
    [ODD]: { at: NOW, of: 'control', problem: 'wrong_value', reason: { en: ODD, zh: '原因' } },
    '*.example.com': { at: 0, of: 'caa', problem: 'caa_forbidden', reason: { en: '', zh: '' } },
  },
};
const idsOf = (rows: readonly Pick<WaitingCertificate, 'certificateId'>[]) =>
  rows.map(({ certificateId }) => certificateId);

for (const engine of await bothEngines()) {
  /** Accounts a and b, one pair of issuers, the orders o of a and p of b, and an escrowed key. */
  const testStore = (name: string, work: (store: OpenStore, other: OpenStore, db: Db) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const open = () => openStore(location, sealerWith([key]), () => NOW);
      await using opened = new AsyncDisposableStack();
      const [store, other] = [await open(), await open()];
      const db = openEngine(engineAt(location), () => {});
      for (const one of [store, other]) opened.defer(() => one.close());
      opened.defer(() => db.destroy());
      const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
      for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
      await claimPair(store);
      await store.orders.insert(order('o'));
      await store.orders.insert(order('p', { accountId: 'b' }));
      const { publicKey } = certificate('any');
      const escrowed = { id: 'e', accountId: 'a', orderId: 'o', publicKey, privateKey: EVERY_BYTE, createdAt: NOW };
      await store.escrowedKeys.insert(escrowed);
      await work(store, other, db);
    });
  /** Inserts waiting certificates, each due a millisecond after the previous. */
  async function fill({ certificates, waiting: rows }: OpenStore, from: number, to: number): Promise<void> {
    for (let index = from; index < to; index += 1) {
      const id = `c${String(index).padStart(3, '0')}`;
      await certificates.insert(certificate(id));
      await rows.insert(waiting(id, { dueAt: NOW + index }));
    }
  }

  describe(engine.name, () => {
    testStore('a waiting certificate round-trips, and is found only through its account', async (store) => {
      const { certificates, waiting: rows } = store;
      for (const id of ['c1', 'c2', 'c3']) await certificates.insert(certificate(id));
      const [plain, full] = [waiting('c1'), waiting('c2', FULL)];
      for (const one of [plain, full]) await rows.insert(one);
      assert.deepEqual(await rows.find('a', 'c1'), plain);
      assert.deepEqual(await rows.find('a', 'c2'), full);
      for (const id of ['c1', 'c2']) assert.equal(await rows.find('b', id), undefined);
      assert.equal(await rows.find('a', 'c3'), undefined);
      await assert.rejects(rows.insert(plain), 'once');
      await assert.rejects(rows.insert(waiting('nothing')));
      await assert.rejects(rows.insert(waiting('c3', { orderId: 'nothing' })));
      await assert.rejects(rows.insert(waiting('c3', { accountId: 'nobody' })));

      const change = { dueAt: NOW + 7, tries: 9, findings: FULL.findings! };
      await rows.update({ certificateId: 'c1', accountId: 'b', ...change });
      assert.deepEqual(await rows.find('a', 'c1'), plain);
      // Expiry and owner never change.
      await rows.update({ ...plain, ...change, ...{ expiresAt: 1, orderId: 'p' } });
      assert.deepEqual(await rows.find('a', 'c1'), { ...plain, ...change });
      assert.deepEqual(await rows.find('a', 'c2'), full);
      await rows.update(waiting('c3'));
      assert.equal(await rows.find('a', 'c3'), undefined, 'a certificate that is not waiting is not changed');

      await rows.delete('b', 'c1');
      assert.notEqual(await rows.find('a', 'c1'), undefined);
      await rows.delete('a', 'c1');
      await rows.delete('a', 'c1');
      assert.equal(await rows.find('a', 'c1'), undefined);
      assert.deepEqual(await rows.find('a', 'c2'), full);
    });

    testStore(
      'due certificates are claimed, longest due first, and not again before their lease expires',
      async (store) => {
        const { certificates, orders, waiting: rows } = store;
        await orders.insert(order('q', { accountId: 'b' }));
        const dueAt = { c1: NOW - 1, c2: NOW + 1, c3: NOW - 9, c4: NOW, c5: NOW - 5 };
        for (const [id, due] of Object.entries(dueAt)) {
          // Across accounts: the worker acts for the service.
          const whose = id === 'c5' ? { accountId: 'b', orderId: 'q' } : {};
          await certificates.insert(certificate(id, whose));
          await rows.insert(waiting(id, { dueAt: due, tries: 3, ...whose }));
        }
        const until = NOW + 100;
        const claimed = await rows.claim(NOW, until, 2);
        assert.deepEqual(idsOf(claimed).sort(), ['c3', 'c5']);
        assert.deepEqual(
          claimed.find(({ certificateId }) => certificateId === 'c3'),
          waiting('c3', { dueAt: until, tries: 3 }),
        );
        assert.deepEqual(
          await rows.find('b', 'c5'),
          waiting('c5', { dueAt: until, tries: 3, accountId: 'b', orderId: 'q' }),
        );
        assert.deepEqual(idsOf(await rows.claim(NOW, until, 10)).sort(), ['c1', 'c4']);
        assert.deepEqual(await rows.claim(NOW, until, 10), []);
        assert.equal((await rows.find('a', 'c2'))?.dueAt, NOW + 1);
        assert.deepEqual(idsOf(await rows.claim(NOW + 1, until, 10)), ['c2']);
        // The worker that leased them died.
        assert.equal((await rows.claim(until, until + 1, 10)).length, 5);
      },
    );

    testStore('no more are claimed than the limit, even with stale planner statistics', async (store, _, db) => {
      // The planner's statistics are stale, from a time with one row. The limit must hold with that plan too.
      await fill(store, 0, 1);
      await sql`analyze`.execute(db);
      await fill(store, 1, 30);
      for (const limit of [2, 1, 16, 5]) {
        const claimed = await store.waiting.claim(NOW + 100, NOW + 200, limit);
        assert.equal(claimed.length, limit);
      }
      assert.equal((await store.waiting.claim(NOW + 100, NOW + 200, 16)).length, 6);
    });

    testStore('concurrent workers claim disjoint sets that cover everything due', async (store, other) => {
      await fill(store, 0, 60);
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_, index) => (index % 2 ? store : other).waiting.claim(NOW + 60, NOW + 99, 5)),
      );
      const taken = claims.flatMap(idsOf);
      assert.equal(new Set(taken).size, taken.length, 'no certificate was claimed twice');
      // A row locked by another worker may have been skipped; it stays for the next claim.
      const rest = idsOf(await store.waiting.claim(NOW + 60, NOW + 99, 60));
      assert.equal(new Set([...taken, ...rest]).size, 60);
      assert.equal(taken.length + rest.length, 60);
    });

    testStore(
      'a waiting certificate stays pending while it is being signed, and is issued under its id',
      async (store) => {
        const { certificates, signings } = store;
        const request = { pendingSince: NOW - 5, names: [ODD], csr: ODD, validityDays: 7, keepsEncryptionKey: true };
        await certificates.insert(certificate('c1', request));
        const publicKey = { type: 'p384', bits: 384, spki: EVERY_BYTE, fingerprint: 'made' } as const;
        const ready = prepared('c1', { ...request, publicKey, encryption: half('half of c1') });
        assert.equal(await signings.begin(ready, HOLDS), true);
        assert.deepEqual(await certificates.find('a', 'c1'), certificate('c1', request));
        const another = prepared('c1', { ...request, preparation: preparation('another') });
        assert.equal(await signings.begin(another, HOLDS), false);
        // Without the lease of its account's order nothing is issued.
        for (const other of [{ accountId: 'b' }, { orderId: 'p' }, { id: 'nothing' }]) {
          assert.equal(await signings.finish(finished({ ...ready, ...other }), { evenIfReported: true }), false);
        }
        assert.deepEqual(await certificates.find('a', 'c1'), certificate('c1', request));
        assert.equal(await signings.finish(finished(ready), { evenIfReported: true }), true);
        assert.deepEqual(
          await certificates.find('a', 'c1'),
          signed(ready),
          'with the serial number that was stored first',
        );
      },
    );

    testStore('of two concurrent signers of a waiting certificate one begins', async (store, other) => {
      await store.certificates.insert(certificate('c1', { pendingSince: NOW }));
      const results = await Promise.all(
        [store, other].map((one, index) =>
          one.transaction(({ signings }) =>
            signings.begin(prepared('c1', { pendingSince: NOW, preparation: preparation(`serial ${index}`) }), HOLDS),
          ),
        ),
      );
      assert.deepEqual(results.sort(), [false, true]);
    });

    testStore(
      'a waiting certificate goes on waiting when its signer is lost, and its serial numbers are kept under another id',
      async (store) => {
        const { certificates, signings, waiting: rows } = store;
        const request = { pendingSince: NOW - 5, names: [ODD], willRevoke: [], customExpirationDate: '2027-01-01' };
        await certificates.insert(certificate('c1', request));
        await rows.insert(waiting('c1'));
        const ready = prepared('c1', { ...request, encryption: half('half of c1') });
        await signings.begin(ready, HOLDS);
        await signings.void('o', 'v1');
        assert.deepEqual(await certificates.find('a', 'c1'), certificate('c1', request));
        // Only what says which certificate may exist somewhere.
        const lost = voided('v1', { names: [ODD], preparation: ready.preparation, encryption: half('half of c1') });
        assert.deepEqual(await certificates.find('a', 'v1'), lost);
        assert.equal(await certificates.find('b', 'v1'), undefined);
        assert.deepEqual(await rows.find('a', 'c1'), waiting('c1'), 'and it still waits');
        // The serial numbers stay taken and are never signed again.
        assert.equal(await signings.begin(ready, HOLDS), false);
        const taken = prepared('c1', { preparation: preparation('another'), encryption: half('half of c1') });
        assert.equal(await signings.begin(taken, HOLDS), false);
        assert.equal(await signings.finish(finished(ready), { evenIfReported: true }), false);
        assert.deepEqual(idOf(await certificates.listLast('a', 'o', 9)), ['c1']);
        // Under new serial numbers it can be signed and issued.
        const again = prepared('c1', {
          ...request,
          preparation: preparation('second'),
          encryption: half('second half'),
        });
        assert.equal(await signings.begin(again, HOLDS), true);
        assert.equal(await signings.finish(finished(again), { evenIfReported: true }), true);
        assert.deepEqual(await certificates.find('a', 'v1'), lost);
        for (const id of ['o', 'p', 'nothing']) await signings.void(id, 'v2');
        assert.deepEqual(await certificates.find('a', 'c1'), signed(again), 'an issued certificate is not changed');
        assert.equal(await certificates.find('a', 'v2'), undefined);
      },
    );
  });
}

const idOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
