// Two instances write about one signing at the same moment, on every engine: exactly one of them wins, whoever waits. Each
// race is decided by a lock that one transaction holds while the other instance is seen to wait for it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { Repositories } from '../../src/domain/store.ts';
import { bothEngines } from '../support/engines.ts';
import { claimPair, issuer, NOW, order, preparation, prepared } from '../support/records.ts';
import { finished, HOLDS } from '../support/signings.ts';

const KEY = newSealKey();
const RECORD = prepared('c1');
const ISSUED = finished(RECORD);
const NEXT = prepared('c2');
const ALWAYS = { evenIfReported: true };
const UNLESS_REPORTED = { evenIfReported: false };

interface Race {
  readonly store: OpenStore;
  readonly other: OpenStore;
  /**
   * Runs `first` in a transaction of one instance, then starts `second` on the other one, and ends the transaction, as
   * `outcome` says, once the other instance waits for it. Returns the result of the second.
   */
  against<T>(
    first: (tx: Repositories) => Promise<unknown>,
    second: (other: OpenStore) => Promise<T>,
    outcome?: 'commit' | 'roll back',
  ): Promise<T>;
}

for (const engine of await bothEngines()) {
  const testRace = (name: string, work: (race: Race) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      await using opened = new AsyncDisposableStack();
      const open = () => openStore(location, sealerWith([KEY]), () => NOW);
      const [store, other] = [await open(), await open()];
      const db = openEngine(engineAt(location), () => {});
      for (const one of [store, other]) opened.defer(() => one.close());
      opened.defer(() => db.destroy());
      await store.accounts.insert({ id: 'a', name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW });
      await claimPair(store);
      await store.orders.insert(order('o'));
      /** On SQLite there is one writer: whatever the other instance writes comes after the transaction. */
      async function otherWaits(isDone: () => boolean): Promise<void> {
        if (engine.name === 'sqlite') return;
        while (!isDone()) {
          const { rows } = await sql`select 1 from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
          if (rows.length > 0) return;
        }
      }
      const rollBack = new Error('rolled back');
      await work({
        store,
        other,
        async against(first, second, outcome = 'commit') {
          let result: ReturnType<typeof second> | undefined;
          const transaction = store.transaction(async (tx) => {
            await first(tx);
            let isDone = false;
            result = second(other);
            const done = () => {
              isDone = true;
            };
            // Awaited below; until then a rejection must not end this process as unhandled.
            result.then(done, done);
            await otherWaits(() => isDone);
            if (outcome === 'roll back') throw rollBack;
          });
          await transaction.catch((error) => assert.equal(error, rollBack));
          return await result!;
        },
      });
    });

  describe(engine.name, () => {
    const lock = (tx: Repositories) => tx.orders.findForUpdate('a', 'o');
    const save = (tx: Repositories) => tx.orders.save(order('o'));
    const begin = ({ signings }: Repositories) => signings.begin(RECORD, HOLDS);
    const beginNext = ({ signings }: Repositories) => signings.begin(NEXT, HOLDS);
    const finish = ({ signings }: Repositories) => signings.finish(ISSUED, UNLESS_REPORTED);
    const voidLost = async (tx: Repositories) => {
      assert.ok((await lock(tx))?.signing);
      await tx.signings.void('o', 'v1');
      await save(tx);
    };
    const stateOf = async ({ certificates }: Repositories, id: string) => (await certificates.find('a', id))?.state;
    const signerOf = async (tx: Repositories) => (await lock(tx))?.signing?.certificateId;

    testRace('of two that begin, the one that waits is refused, unless the first fails', async ({ against, store }) => {
      assert.equal(await against(begin, beginNext, 'roll back'), true);
      assert.equal(await signerOf(store), 'c2');
      await store.signings.void('o', 'v1');
      const again = prepared('c3');
      assert.equal(await against(({ signings }) => signings.begin(again, HOLDS), begin), false);
      assert.equal(await signerOf(store), 'c3');
    });

    testRace('of many that begin at once, one does', async ({ store, other }) => {
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, index) => {
          const record = prepared(`c${index}`, { preparation: preparation(`serial ${index}`) });
          return (index % 2 ? store : other).signings.begin(record, HOLDS);
        }),
      );
      assert.equal(results.filter((begun) => begun).length, 1);
    });

    testRace('one that begins while the order is locked is refused if it changes, and begins if not', async (race) => {
      const { against, store } = race;
      const change = async (tx: Repositories) => {
        await lock(tx);
        await save(tx);
      };
      assert.equal(await against(change, begin), false);
      assert.equal((await store.orders.findForUpdate('a', 'o'))?.signing, null);
      const current = { ...HOLDS, revision: 2 };
      assert.equal(await against(lock, ({ signings }) => signings.begin(RECORD, current)), true);
    });

    const HELD = { purpose: 'public-tls', keyType: 'p256' } as const;
    const rotate = async (tx: Repositories) => {
      await tx.signings.hold();
      const next = issuer('next', { role: 'issuing', parentId: 'x-root', purposes: ['public-tls'] });
      assert.equal(await tx.issuers.succeed(next, HELD, 'x-issuing'), true);
    };

    testRace('one that begins while its issuer is retired is refused, and begins if that fails', async (race) => {
      const { against, store } = race;
      assert.equal(await against(rotate, begin, 'roll back'), true);
      await store.signings.void('o', 'v1');
      assert.equal(await against(rotate, beginNext), false);
      const under = prepared('c3', { preparation: preparation('serial of c3', { issuerId: 'next' }) });
      assert.equal(await store.signings.begin(under, HOLDS), true);
      const foreign = { ...HOLDS, purpose: 'private-tls' } as const;
      await store.signings.void('o', 'v2');
      assert.equal(await store.signings.begin(under, foreign), false, 'it never signed for that');
    });

    testRace('an issuer that is retired while one begins under it: the retirement knows of it', async (race) => {
      const { against, store } = race;
      const left = await against(begin, async (other) => {
        await other.transaction(rotate);
        return await other.signings.countUnderRetired();
      });
      assert.equal(left, 1, 'a rotation that counts before the other has committed would answer too early');
      await store.signings.void('o', 'v1');
      assert.equal(await store.signings.countUnderRetired(), 0);
      const late = issuer('late', { role: 'issuing', parentId: 'x-root' });
      assert.equal(await store.transaction((tx) => tx.issuers.succeed(late, HELD, 'x-issuing')), false);
      assert.equal((await store.issuers.list()).length, 3, 'one that came too late leaves nothing');
    });

    testRace('finishing while another instance voids: the signature is discarded', async ({ against, store }) => {
      await begin(store);
      assert.equal(await against(voidLost, finish), false);
      assert.equal(await stateOf(store, 'c1'), 'voided');
      assert.deepEqual(await store.audit.listOf('a', { limit: 9 }), []);
    });

    testRace(
      'finishing while a reissue voids and begins anew: the revision is as it was, the lease is not',
      async (race) => {
        const { against, store } = race;
        await begin(store);
        const takeOver = async (tx: Repositories) => {
          await lock(tx);
          await tx.signings.void('o', 'v1');
          assert.ok(await beginNext(tx));
        };
        assert.equal(await against(takeOver, finish), false);
        assert.deepEqual([await stateOf(store, 'c1'), await signerOf(store)], ['voided', 'c2']);
        assert.equal(await store.signings.finish(finished(NEXT), UNLESS_REPORTED), true);
      },
    );

    testRace('finishing while another instance fails to void', async ({ against, store }) => {
      await begin(store);
      assert.equal(await against(voidLost, finish, 'roll back'), true);
      assert.deepEqual([await stateOf(store, 'c1'), await signerOf(store)], ['issued', undefined]);
    });

    testRace('voiding while the signer finishes: there is nothing to void any more', async ({ against, store }) => {
      await begin(store);
      // The lock is granted after the signer's commit; what is read with it must not be from before.
      const found = await against(finish, (other) => other.transaction(lock));
      assert.deepEqual([found?.signing, found?.order.revision], [null, 2]);
      assert.equal(await stateOf(store, 'c1'), 'issued');
    });

    testRace('voiding while the signer fails to finish', async ({ against, store }) => {
      await begin(store);
      await against(finish, (other) => other.transaction(voidLost), 'roll back');
      assert.equal(await stateOf(store, 'c1'), 'voided');
    });

    const reportKey = ({ signings }: Repositories) => signings.reportKey('f', null);
    const onKey = async ({ certificates }: Repositories) =>
      (await certificates.listOnKey('f', { limit: 9 })).map(({ certificateId }) => certificateId);

    testRace('finishing while its key is reported: it is not issued as if nothing had happened', async (race) => {
      const { against, store } = race;
      await begin(store);
      assert.equal(await against(reportKey, finish), false);
      assert.equal(await store.signings.finish(ISSUED, ALWAYS), true);
      await store.orders.insert(order('p'));
      const unreported = prepared('c3', { orderId: 'p' });
      await store.signings.begin(unreported, HOLDS);
      const finishOther = (other: OpenStore) => other.signings.finish(finished(unreported), UNLESS_REPORTED);
      assert.equal(await against(reportKey, finishOther, 'roll back'), true);
    });

    testRace('reporting a key while its certificate is issued: it is found afterwards', async ({ against, store }) => {
      await begin(store);
      const found = await against(finish, async (other) => {
        await reportKey(other);
        return await onKey(other);
      });
      assert.deepEqual(found, ['c1']);
    });

    testRace(
      'a key reported while one waits to begin on it: its certificate is not issued',
      async ({ against, other }) => {
        const report = async (tx: Repositories) => {
          await lock(tx);
          await tx.blockedKeys.add('f', '', NOW);
          await reportKey(tx);
        };
        const began = await against(report, ({ signings }) =>
          signings.begin(RECORD, { ...HOLDS, unblockedKey: RECORD.publicKey }),
        );
        // PostgreSQL looks at the blocklist as it was when the statement began to wait, and nothing was there to be marked.
        // The blocklist is looked at again to finish.
        assert.equal(began && (await finish(other)), false);
        assert.deepEqual(await onKey(other), []);
      },
    );
  });
}
