// Stores of earlier schema versions, for upgrade tests: every table's rows as JSON, and the seal key that opens them. One
// file serves both engines, because all columns are text or integers. Recorded by test/fixtures/record.ts before a
// migration is added, and never changed afterwards.
import { readdirSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { migrate, readMigrations } from '../../src/adapters/store/engine/migrations.ts';
import { type DatabaseLocation, engineAt } from '../../src/adapters/store/store.ts';
import type { Key } from './app.ts';

export type Row = Readonly<Record<string, string | number | null>>;

export interface StoreFixture {
  /** The number of its last migration. */
  readonly schema: number;
  /** The clock of the service that wrote it. */
  readonly now: number;
  readonly sealKey: string;
  readonly tables: Readonly<Record<string, readonly Row[]>>;
  /** What a test looks up, by what it is. */
  readonly contents: Readonly<
    Record<'issued' | 'pending' | 'reissuing' | 'canceled' | 'revoked' | 'dual', FixtureOrder>
  > & {
    readonly cloudKey: FixtureOrder & { readonly keyId: string; readonly code: string };
  };
}

export interface FixtureOrder {
  readonly key: Key;
  readonly id: string;
  readonly certificateId: string;
}

const FOLDER = new URL('../fixtures/', import.meta.url);

/** Of the earliest schema first. */
export const storeFixtures = (): StoreFixture[] =>
  readdirSync(FOLDER)
    .filter((file) => /^store-\d+\.json$/.test(file))
    .map((file): StoreFixture => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')))
    .sort((one, other) => one.schema - other.schema);

/** Creates the store as the fixture's version left it. */
export async function restoreFixture(location: DatabaseLocation, { schema, now, tables }: StoreFixture): Promise<void> {
  const engine = engineAt(location, {}, true);
  const db = openEngine(engine, () => {});
  try {
    await migrate(db, engine, () => now, readMigrations(engine.name).slice(0, schema));
    await db.transaction().execute(async (tx) => {
      // Rows are in no order that foreign keys would accept.
      if (engine.name === 'postgresql') await sql`set local session_replication_role = replica`.execute(tx);
      for (const [table, rows] of Object.entries(tables)) {
        for (const row of rows) {
          const columns = sql.join(Object.keys(row).map((column) => sql.ref(column)));
          await sql`insert into ${sql.table(table)} (${columns}) values (${sql.join(Object.values(row))})`.execute(tx);
        }
      }
    });
  } finally {
    await db.destroy();
  }
}
