// Stores of earlier schema versions, for upgrade tests: every table's rows as JSON, and the seal key that opens them. One
// file serves both engines, because all columns are text or integers. Recorded by test/fixtures/record.ts before a
// migration is added, and never changed afterwards.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { migrate, readMigrations } from '../../src/adapters/store/engine/migrations.ts';
import { type DatabaseLocation, engineAt } from '../../src/adapters/store/store.ts';
import type { SandboxFile } from '../../src/sandbox/folder.ts';
import type { Key } from './app.ts';

export type Row = Readonly<Record<string, string | number | null>>;

export interface RecordedStore {
  /** The number of its last migration. */
  readonly schema: number;
  /** The clock of the service that wrote it. */
  readonly now: number;
  readonly sealKey: string;
  readonly tables: Readonly<Record<string, readonly Row[]>>;
}

/** The store of a sandbox of an early version, whose tests could not yet record more. */
export interface SandboxFixture extends RecordedStore {
  readonly sandbox: Pick<SandboxFile, 'accounts' | 'orders'>;
}

export interface StoreFixture extends RecordedStore {
  /** What a test looks up, by what it is. */
  readonly contents: Readonly<
    Record<'issued' | 'pending' | 'reissuing' | 'canceled' | 'revoked' | 'dual', FixtureOrder>
  > & {
    readonly cloudKey: FixtureOrder & { readonly keyId: string; readonly code: string };
  };
}

/** The store of a service that an operator brought an authority to, with an order of before and one of after that. */
export interface ImportedFixture extends RecordedStore {
  readonly contents: Readonly<Record<'before' | 'after', FixtureOrder>>;
}

export interface FixtureOrder {
  readonly key: Key;
  readonly id: string;
  readonly certificateId: string;
}

const FOLDER = new URL('../fixtures/', import.meta.url);

const fixtures = <T extends RecordedStore>(name: RegExp): T[] =>
  readdirSync(FOLDER)
    .filter((file) => name.test(file))
    .map((file): T => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')))
    .sort((one, other) => one.schema - other.schema);

export const storeFixtures = (): StoreFixture[] => fixtures(/^store-\d+\.json$/);
export const importedFixtures = (): ImportedFixture[] => fixtures(/^imported-\d+\.json$/);
export const sandboxFixtures = (): SandboxFixture[] => fixtures(/^sandbox-\d+\.json$/);

/** What a stopped service left in a data folder. */
export function recordFolder(folder: string, now: number): RecordedStore {
  const database = new DatabaseSync(join(folder, 'reseal.db'), { readOnly: true });
  const names = database
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' and name <> 'migration'")
    .all()
    .map(({ name }) => String(name))
    .sort();
  const rows = (table: string) => database.prepare(`select * from "${table}"`).all() as Row[];
  return {
    schema: Number(database.prepare('select max(number) as schema from migration').get()?.schema),
    now,
    sealKey: readFileSync(join(folder, 'seal.key'), 'utf8').trim(),
    tables: Object.fromEntries(names.map((table) => [table, rows(table)])),
  };
}

/** Never replaces one. */
export function writeFixture(name: string, fixture: RecordedStore): string {
  const file = new URL(`${name}-${fixture.schema}.json`, FOLDER);
  writeFileSync(file, `${JSON.stringify(fixture, null, 1)}\n`, { flag: 'wx' });
  return `${file.pathname}: ${Object.keys(fixture.tables).length} tables\n`;
}

/** Creates the store as the fixture's version left it. */
export async function restoreFixture(
  location: DatabaseLocation,
  { schema, now, tables }: RecordedStore,
): Promise<void> {
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
