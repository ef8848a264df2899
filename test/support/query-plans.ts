// What a database does with a statement: where it scans a table, and whether SQLite compiles it anew for each execution.
import { constants, DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { CompiledQuery } from 'kysely';
import type { Engine } from '../../src/adapters/store/engine/engine.ts';
import type { Db } from '../../src/adapters/store/engine/schema.ts';
import type { DatabaseLocation } from '../../src/adapters/store/store.ts';

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Index Name'?: string;
  readonly Plans?: readonly Node[];
}

/**
 * The nodes of the query plan that scan instead of searching an index. The table `signing` may be scanned: it holds only
 * what is being signed at this moment.
 */
export const SCANS: Readonly<Record<Engine['name'], (db: Db, query: CompiledQuery) => Promise<string[]>>> = {
  async sqlite(db, { sql: text, parameters }) {
    const plan = CompiledQuery.raw(`explain query plan ${text}`, [...parameters]);
    const { rows } = await db.executeQuery<{ detail: string }>(plan);
    const steps = rows.map(({ detail }) => detail);
    // Scans of a bounded subquery, or of a list in the statement, are no table scans.
    const isBounded = (step: string) =>
      /^SCAN ((examined|counted|in_order|first|signing|CONSTANT ROW)$|json_each VIRTUAL TABLE)/.test(step);
    const scans = steps.filter((step) => step.startsWith('SCAN ') && !isBounded(step));
    // What is scanned because it is small may be sorted too; and the certificates of one order at a time.
    const sorts = steps.filter((step) => step.includes('TEMP B-TREE') && !step.includes('LAST TERM'));
    return steps.some((step) => /^SCAN (signing$|json_each)/.test(step)) ? scans : [...scans, ...sorts];
  },
  async postgresql(db, { sql: text, parameters }) {
    const plan = CompiledQuery.raw(`explain (format json) ${text}`, [...parameters]);
    const { rows } = await db.executeQuery<{ 'QUERY PLAN': { Plan: Node }[] }>(plan);
    const scansIn = (node: Node): string[] => {
      const isScan = node['Node Type'] === 'Seq Scan' || /^(Index|Bitmap Index)/.test(node['Node Type']);
      // Counting pending rows scans the index of pending rows, up to a bound.
      const isCount =
        text.includes('count(*)') && /^(outbox_(new|due)|waiting_certificate_due)$/.test(node['Index Name'] ?? '');
      const isLookUp = node['Index Cond'] !== undefined || isCount || node['Relation Name'] === 'signing';
      return [...(isScan && !isLookUp ? [JSON.stringify(node)] : []), ...(node.Plans ?? []).flatMap(scansIn)];
    };
    return rows[0]!['QUERY PLAN'].flatMap(({ Plan }) => scansIn(Plan));
  },
};

/**
 * SQLite does so if it plans by the value of a parameter: one that is the limit, or that is compared with a column on which
 * the use of a partial index depends. One that is a pattern counts not: its prefix decides whether an index serves.
 */
export function isCompiledAnew(location: DatabaseLocation, { sql, parameters }: CompiledQuery): boolean {
  if (location.kind !== 'sqlite' || sql.includes(' like ')) return false;
  using database = new DatabaseSync(location.file, { readOnly: true });
  let compilations = 0;
  // Asked while a statement is compiled, and at no other time.
  database.setAuthorizer(() => {
    compilations += 1;
    return constants.SQLITE_OK;
  });
  // An explained statement is compiled like the statement itself, and changes nothing.
  const statement = database.prepare(`explain ${sql}`);
  const before = compilations;
  statement.all(...(parameters as SQLInputValue[]));
  return compilations > before;
}
