// What a store contains, independent of its engine: tables from the database's own catalog, rows streamed by primary key,
// counts and digests that are equal for equal contents on SQLite and PostgreSQL. For stores that are not written to: a
// backup, a restored database, a stopped service.
//
// The digest of a table is the sum, modulo 2^256, of the SHA-256 of its rows: engines sort text differently, and a sum has
// no order. It detects rows that are lost, altered or foreign. It is no signature: a forger could replace it too.
import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Engine } from './engine.ts';
import type { Db } from './schema.ts';

export type Value = string | number | null | Uint8Array;
export type Row = Readonly<Record<string, Value>>;

export interface Table {
  readonly name: string;
  /** Sorted by name. */
  readonly columns: readonly string[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
}

export interface TableContents {
  readonly table: string;
  readonly rows: number;
  readonly digest: string;
}

/** A table that exists in a store for as long as a copy into it is not finished. */
export const COPY_MARKER = 'store_copy';

/** About this copy of the store rather than in it: migrations, instances, an unfinished copy, a backup's manifest. */
const NOT_CONTENTS: ReadonlySet<string> = new Set(['migration', 'instance', COPY_MARKER, 'backup_manifest']);

const FIRST_ROWS = 32;
const MAX_ROWS = 512;
const BATCH_BYTES = 1024 * 1024;

/** Tables with contents, by name. Throws if one has no primary key, by which alone rows can be streamed. */
export async function tablesOf(db: Db, engine: Pick<Engine, 'columns'>): Promise<Table[]> {
  const columns = (await engine.columns(db)).filter(({ table }) => !NOT_CONTENTS.has(table));
  return [...Map.groupBy(columns, ({ table }) => table)].sort(byName).map(([name, all]) => {
    const key = all.filter(({ keyPosition }) => keyPosition > 0).sort((a, b) => a.keyPosition - b.keyPosition);
    if (key.length === 0) throw new Error(`the table ${name} has no primary key`);
    return { name, columns: all.map(({ column }) => column).sort(), key: key.map(({ column }) => column) };
  });
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

/** Yields a table's rows in batches of bounded size, in the order of the primary key, after the given key values. */
export async function* rowsOf(
  db: Db,
  { name, columns, key }: Table,
  after?: readonly Value[],
): AsyncGenerator<readonly Row[]> {
  const list = (names: readonly string[]) => sql.join(names.map((one) => sql.ref(one)));
  const rowsAfter = (values: readonly Value[] | undefined, limit: number) => {
    const page = db
      .selectFrom(sql<Row>`${sql.table(name)}`.as('contents'))
      .select(columns.map((column) => sql.ref<Value>(column).as(column)))
      .orderBy(list(key))
      .limit(limit);
    return values ? page.where(sql<boolean>`(${list(key)}) > (${sql.join(values)})`) : page;
  };
  for (let [limit, last] = [FIRST_ROWS, after]; ; ) {
    const rows = await rowsAfter(last, limit).execute();
    const end = rows.at(-1);
    if (!end) return;
    yield rows;
    last = key.map((column) => end[column] ?? null);
    const average = rows.reduce((total, row) => total + sizeOf(row), 0) / rows.length;
    // Powers of two: few different statements when batches are written elsewhere.
    limit = 2 ** Math.floor(Math.log2(Math.max(1, Math.min(MAX_ROWS, BATCH_BYTES / average))));
    // SQLite answers synchronously: without this the process would do nothing else until the last row.
    await setImmediate();
  }
}

const sizeOf = (row: Row): number =>
  Object.values(row).reduce<number>(
    (total, value) => total + (value === null || typeof value === 'number' ? 8 : value.length),
    0,
  );

/** Counts and digests the rows of a table. */
export async function contentsOf(db: Db, table: Table): Promise<TableContents> {
  let count = 0;
  let total = 0n;
  for await (const rows of rowsOf(db, table)) {
    count += rows.length;
    for (const row of rows) total += BigInt(`0x${hash('sha256', canonical(row, table))}`);
  }
  const parts = [table.name, table.columns, count, (total % 2n ** 256n).toString(16)];
  return { table: table.name, rows: count, digest: hash('sha256', JSON.stringify(parts)) };
}

/** Counts and digests every table, by name. */
export async function storeContents(db: Db, engine: Pick<Engine, 'columns'>): Promise<TableContents[]> {
  const contents: TableContents[] = [];
  for (const table of await tablesOf(db, engine)) contents.push(await contentsOf(db, table));
  return contents;
}

/** One digest for the whole store. */
export const storeDigest = (contents: readonly TableContents[]): string =>
  hash('sha256', JSON.stringify(contents.map(({ table, rows, digest }) => [table, rows, digest])));

/** Unambiguous, because texts carry their length. */
const canonical = (row: Row, { columns }: Table): string => columns.map((column) => encoded(row[column])).join('');

function encoded(value: Value | undefined): string {
  if (value === null || value === undefined) return 'n';
  if (typeof value === 'number') return `i${value};`;
  if (typeof value === 'string') return `s${value.length}:${value}`;
  return `b${value.length}:${Buffer.from(value).toString('base64')}`;
}
