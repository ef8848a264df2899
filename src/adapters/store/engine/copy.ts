// Copies a store into an empty one, of either engine. Rows go over in batches; the position is committed with each batch, so
// a killed copy continues where it was. Until everything is there and verified, a marker table keeps services from
// opening the target.
import { sql } from 'kysely';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import {
  COPY_MARKER,
  contentsOf,
  type Row,
  rowsOf,
  type Table,
  type TableContents,
  tablesOf,
  type Value,
} from './contents.ts';
import type { Engine } from './engine.ts';
import { migrate, previewMigrations, readMigrations } from './migrations.ts';
import type { Db, Transaction } from './schema.ts';

export interface EngineAndDb {
  readonly engine: Engine;
  readonly db: Db;
}

export interface CopyProgress {
  readonly step: 'copying' | 'verifying';
  readonly table: string;
  readonly rows: number;
}

export interface CopyOptions {
  readonly now: () => number;
  /** Throws if the source is in use. Called first and last. */
  requireStopped(): Promise<void>;
  onProgress(progress: CopyProgress): void;
}

interface Marker {
  /** Which store is copied. */
  readonly source: string;
  /** The foreign keys, as statements, to be added at the end. */
  readonly references: readonly string[];
}

interface Position {
  readonly table: string;
  readonly after: readonly Value[];
}

/** Throws a Problem if a copy into this store was begun and not finished. */
export async function requireFinishedCopy({ engine, db }: EngineAndDb): Promise<void> {
  if (!(await hasTable({ engine, db }, COPY_MARKER))) return;
  throw new Problem(
    EXIT.store,
    'a copy into this store is not finished',
    'Run the same "reseal store copy" again: it continues where it was. Or empty the target and begin anew.',
  );
}

/** `target.engine` must be a migrating one. Returns the verified contents. */
export async function copyStore(
  source: EngineAndDb,
  target: EngineAndDb,
  { now, requireStopped, onProgress }: CopyOptions,
): Promise<TableContents[]> {
  await requireStopped();
  const pending = await previewMigrations(source.db, readMigrations(source.engine.name));
  if (pending === undefined || pending.length > 0) {
    const text = pending ? `${pending.length} migrations are pending in the source` : 'the source has no store';
    throw new Problem(EXIT.store, text, 'Start this version of Reseal on it once, stop it, and copy again.');
  }
  const marker = await beginCopy(target, await identityOf(source.db), now);
  const tables = await tablesOf(source.db, source.engine);
  const position = await positionIn(target.db);
  for (const table of tables.filter(({ name }) => !position || name >= position.table)) {
    let rows = 0;
    const after = position?.table === table.name ? position.after : undefined;
    for await (const batch of rowsOf(source.db, table, after)) {
      await target.db.transaction().execute((tx) => writeBatch(tx, table, batch));
      rows += batch.length;
      onProgress({ step: 'copying', table: table.name, rows });
    }
  }
  const contents = await verify(source, target, tables, onProgress);
  await requireStopped();
  await target.db.transaction().execute(async (tx) => {
    for (const statement of marker.references) await sql.raw(statement).execute(tx);
    await target.engine.checkReferences(tx);
    await sql`drop table ${sql.table(COPY_MARKER)}`.execute(tx);
  });
  return contents;
}

/** Prepares the target, or finds it prepared by an earlier run. */
async function beginCopy(target: EngineAndDb, source: string, now: () => number): Promise<Marker> {
  if (await hasTable(target, COPY_MARKER)) {
    const marker = await readMarker<Marker>(target.db, 'copy');
    if (marker?.source === source) return marker;
    throw new Problem(
      EXIT.refused,
      'a copy of another store into this target is not finished',
      'Finish that one, or empty the target and begin anew.',
    );
  }
  await requireEmpty(target);
  await migrate(target.db, target.engine, now);
  return await target.db.transaction().execute(async (tx) => {
    const references = await target.engine.dropReferences(tx);
    const marker = { source, references };
    await sql`create table ${sql.table(COPY_MARKER)} (name text primary key, value text not null)`.execute(tx);
    await writeMarker(tx, 'copy', marker);
    return marker;
  });
}

/** A database with other tables is not empty either; one with our tables and no rows is. */
async function requireEmpty({ engine, db }: EngineAndDb): Promise<void> {
  const tables = await engine.columns(db);
  if (tables.length === 0) return;
  const isOurs = (await previewMigrations(db, readMigrations(engine.name))) !== undefined;
  const filled: string[] = [];
  for (const table of isOurs ? await tablesOf(db, engine) : []) {
    for await (const _ of rowsOf(db, table)) {
      filled.push(table.name);
      break;
    }
  }
  if (isOurs && filled.length === 0) return;
  throw new Problem(
    EXIT.refused,
    `the target is not empty: it has ${isOurs ? `rows in ${filled.join(', ')}` : 'other tables'}`,
    'Name an empty database or a new folder. Nothing was changed.',
  );
}

async function writeBatch(tx: Transaction, { name, columns, key }: Table, batch: readonly Row[]): Promise<void> {
  const rows = batch.map((row) => sql`(${sql.join(columns.map((column) => row[column] ?? null))})`);
  const names = sql.join(columns.map((column) => sql.ref(column)));
  await sql`insert into ${sql.table(name)} (${names}) values ${sql.join(rows)}`.execute(tx);
  const last = batch.at(-1);
  if (last) await writeMarker(tx, 'position', { table: name, after: key.map((column) => last[column] ?? null) });
}

/** Compares every table. The source is read again: what changed in it meanwhile differs, too. */
async function verify(
  source: EngineAndDb,
  target: EngineAndDb,
  tables: readonly Table[],
  onProgress: (progress: CopyProgress) => void,
): Promise<TableContents[]> {
  const contents: TableContents[] = [];
  const different: string[] = [];
  for (const table of tables) {
    const [original, copy] = [await contentsOf(source.db, table), await contentsOf(target.db, table)];
    if (original.digest !== copy.digest) different.push(`${table.name} (${original.rows} and ${copy.rows} rows)`);
    contents.push(copy);
    onProgress({ step: 'verifying', table: table.name, rows: copy.rows });
  }
  if (different.length === 0) return contents;
  throw new Problem(
    EXIT.refused,
    `source and copy differ in ${different.join(', ')}`,
    'Was the source written to meanwhile? Stop everything that uses it, empty the target, and copy again.',
  );
}

const hasTable = async ({ engine, db }: EngineAndDb, name: string): Promise<boolean> =>
  (await engine.columns(db)).some(({ table }) => table === name);

/** The canary: sealed once per store under a random nonce. */
async function identityOf(db: Db): Promise<string> {
  const row = await db.selectFrom('sealed_secret').select('sealed').where('name', '=', 'seal-check').executeTakeFirst();
  return String(row?.sealed ?? '');
}

const positionIn = (db: Db): Promise<Position | undefined> => readMarker<Position>(db, 'position');

async function readMarker<T>(db: Db, name: string): Promise<T | undefined> {
  const row = await db
    .selectFrom(sql<{ name: string; value: string }>`${sql.table(COPY_MARKER)}`.as('marker'))
    .select('value')
    .where('name', '=', name)
    .executeTakeFirst();
  return row && JSON.parse(row.value);
}

async function writeMarker(tx: Transaction, name: string, value: unknown): Promise<void> {
  await sql`insert into ${sql.table(COPY_MARKER)} (name, value) values (${name}, ${JSON.stringify(value)})
    on conflict (name) do update set value = excluded.value`.execute(tx);
}
