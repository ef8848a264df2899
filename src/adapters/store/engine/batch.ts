// A batch: statements that make one transaction, without a question in between. The first one decides: if it returns no
// row, nothing is written. SQLite runs them back to back; on PostgreSQL they are CTEs of one statement (member-sets.ts).
import type { CompiledQuery, QueryResult } from 'kysely';
import { connectionOf, directOf, type Engine, type PreparedQuery } from './engine.ts';
import type { Db } from './schema.ts';

interface Batch {
  readonly statements: readonly PreparedQuery[];
  /** A slot of the first statement whose value no other batch has at the same time. */
  readonly key: string;
}

/** Returns the first row of the last statement; undefined if the first returned none. */
export async function runBatch<Row>(
  db: Db,
  { batches }: Pick<Engine, 'batches'>,
  { statements, key }: Batch,
): Promise<Row | undefined> {
  const combined = batches.combine(statements, key);
  const direct = directOf(db);
  if (direct) return (await direct.runBatch(combined))[0] as Row | undefined;
  const run = (query: CompiledQuery) => (connectionOf(db) ?? db).executeQuery(query);
  let rows: readonly unknown[] = [];
  for (const [index, query] of combined.entries()) {
    rows = rowsOf(await run(query));
    if (index === 0 && rows.length === 0) return undefined;
  }
  return rows[0] as Row | undefined;
}

const CHANGED: readonly unknown[] = [{}];

/** A write that returns nothing counts as an empty row if it has changed something. */
export const rowsOf = ({ rows, numAffectedRows }: QueryResult<unknown>): readonly unknown[] =>
  rows.length > 0 || !numAffectedRows ? rows : CHANGED;
