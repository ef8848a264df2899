// A store for conformance tests of orders and certificates: accounts a and b, one pair of issuers, and the order o of a.
import { test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { TestEngine } from './engines.ts';
import { NOW, order, pairOf } from './records.ts';

type Rows = (statement: string) => Promise<object[]>;
/** Drops the row prototype of the driver, and converts numbers. */
const plain = (row: object): object =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, name.endsWith('_at') ? Number(value) : value]));

export const storeTests =
  (engine: TestEngine) => (name: string, work: (store: OpenStore, rows: Rows) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const store = await openStore(location, sealerWith([newSealKey()]), () => NOW);
      const db = openEngine(engineAt(location), () => {});
      try {
        const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
        for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
        await store.issuers.claim(pairOf('x'));
        await store.orders.insert(order('o'));
        await work(store, async (statement) => (await sql.raw<object>(statement).execute(db)).rows.map(plain));
      } finally {
        await db.destroy();
        await store.close();
      }
    });
