// A store for conformance tests of orders and certificates: accounts a and b, one pair of issuers, and the order o of a.
import { test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { TestEngine } from './engines.ts';
import { claimPair, NOW, order } from './records.ts';

export type Rows = (statement: string) => Promise<object[]>;
/** Drops the row prototype of the driver, and converts numbers. */
const plain = (row: object): object =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, name.endsWith('_at') ? Number(value) : value]));

const TABLES = {
  sqlite: "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'",
  postgresql: "select table_name as name from information_schema.tables where table_schema = 'public'",
} as const;

/** Every row of every table, to compare with an earlier dump. */
export async function dump({ name: engine }: Pick<TestEngine, 'name'>, rows: Rows): Promise<Map<string, string[]>> {
  const tables = (await rows(TABLES[engine])).map((row) => String(Object.values(row)[0])).sort();
  const dumped = new Map<string, string[]>();
  for (const table of tables) {
    dumped.set(table, (await rows(`select * from ${table}`)).map((row) => JSON.stringify(row)).sort());
  }
  return dumped;
}

export const storeTests =
  (engine: TestEngine) => (name: string, work: (store: OpenStore, rows: Rows) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const store = await openStore(location, sealerWith([newSealKey()]), () => NOW);
      const db = openEngine(engineAt(location), () => {});
      try {
        const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
        for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
        await claimPair(store);
        await store.orders.insert(order('o'));
        await work(store, async (statement) => (await sql.raw<object>(statement).execute(db)).rows.map(plain));
      } finally {
        await db.destroy();
        await store.close();
      }
    });
