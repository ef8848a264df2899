// Keyset paging, once for all lists. A list is a range of an index, read in the order of its columns; a position in it is
// the values of these columns. Conditions that the index does not cover are checked on a bounded number of rows per page:
// whatever is asked for, a page costs no more, and may hold less than its limit and still have a next one.
import { type SelectQueryBuilder, sql } from 'kysely';
import { invalid } from '../../../domain/errors.ts';
import type { Listed, Page } from '../../../domain/page.ts';
import type { Db } from './schema.ts';

/** The columns by which a list is ordered, each under a name that the range selects it by, and read so from a cursor. */
type Key = readonly (readonly [name: string, column: string, read: StringConstructor | NumberConstructor])[];
type Value = string | number;

// A list chooses its tables and columns at run time, which Kysely's types do not follow.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnySelect<Row = any> = SelectQueryBuilder<any, any, Row>;

export interface Range {
  /** Selects the columns of the key, and what is needed to judge a row. */
  readonly rows: AnySelect;
  readonly key: Key;
  readonly isDescending?: boolean;
  /** Most rows that are read for one page. */
  readonly most?: number;
}

export const BY_ID: Key = [['id', 'id', String]];
export const MAX_EXAMINED = 2_000;

/** The rows after a position, in the order of the columns. */
function rowsAfter({ rows, key, isDescending = false }: Range, position: readonly Value[] | null): AnySelect {
  const columns = key.map(([, column]) => sql.ref(column));
  const ordered = columns.reduce((query, column) => query.orderBy(column, isDescending ? 'desc' : 'asc'), rows);
  if (!position) return ordered;
  const operator = sql.raw(isDescending ? '<' : '>');
  const after = sql<boolean>`(${sql.join(columns)}) ${operator} (${sql.join(position)})`;
  // Columns of two tables are no range of an index, but the first is.
  const [first, ...others] = columns;
  return ordered.where(others.length === 0 ? after : sql<boolean>`${first} ${operator}= ${position[0]} and ${after}`);
}

/** A page of a list by id, of which every row counts. */
export const pageById = <Row>(rows: AnySelect<Row>, { after, limit }: Page, column = 'id'): AnySelect<Row> =>
  rowsAfter({ rows, key: [[column, column, String]] }, after === undefined ? null : [after]).limit(limit);

/** Of the next rows of the range, called `examined`, those that `matching` selects. */
export async function pageWithin<Row>(
  db: Db,
  range: Range,
  { after, limit }: Page,
  matching: (examined: AnySelect) => AnySelect<Row>,
): Promise<Listed<Row>> {
  const { key, isDescending = false, most = MAX_EXAMINED } = range;
  const examined = rowsAfter(range, positionIn(after, key)).limit(most);
  const from = (db as unknown as { selectFrom(from: unknown): AnySelect }).selectFrom(examined.as('examined'));
  const inOrder: Key = key.map(([name, , read]) => [name, `examined.${name}`, read]);
  const matches = rowsAfter({ rows: matching(from), key: inOrder, isDescending }, null);
  const keyed = inOrder.map(([name, column]) => sql.ref(column).as(KEY + name));
  const found: Keyed[] = await matches.select(keyed).limit(limit).execute();
  const cursor = (row: Keyed, prefix: string) => key.map(([name]) => row[prefix + name]).join(SEPARATOR);
  const rows = found.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith(KEY))));
  const full = found[limit - 1];
  const last: Keyed | undefined = full ? undefined : await examined.offset(most - 1).executeTakeFirst();
  return { rows: rows as Row[], nextAfter: full ? cursor(full, KEY) : last ? cursor(last, '') : null };
}

/** Begins no column of ours: the key is selected beside what a list selects. */
const KEY = 'key of ';
type Keyed = Readonly<Record<string, Value>>;
/** No id has one. */
const SEPARATOR = '.';

function positionIn(after: string | undefined, key: Key): Value[] | null {
  // Clients that write out empty values begin so.
  if (after === undefined || after === '') return null;
  const parts = key.length === 1 ? [after] : after.split(SEPARATOR);
  const values = key.map(([, , read], index) => read(parts[index]));
  // As it was written: no other spelling of a number, and no empty part.
  const isPosition = values.every((value, index) => value !== '' && String(value) === parts[index]);
  if (parts.length === key.length && isPosition) return values;
  throw invalid(
    'after',
    'after is the next_after of a page with the same filters. Leave it out for the first page.',
    'after 须为相同筛选条件下上一页的 next_after；第一页请不发送。',
  );
}
