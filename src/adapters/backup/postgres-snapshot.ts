// A snapshot of PostgreSQL: a read-only transaction that sees one moment. Exported, it lets pg_dump see the same moment, so
// that a manifest made here describes exactly what the dump holds.
import { sql } from 'kysely';
import { HOUR_MS, MINUTE_MS } from '../../kernel/durations.ts';
import { type Engine, openEngine } from '../store/engine/engine.ts';
import { postgresEngine } from '../store/engine/postgres.ts';
import type { Db } from '../store/engine/schema.ts';

/** The longest dump that a snapshot is held for. While it is held, the database cannot remove dead rows. */
const MAX_HOLD_MS = 6 * HOUR_MS;
const STATEMENT_MS = 10 * MINUTE_MS;

export interface Snapshot {
  readonly db: Db;
  readonly engine: Engine;
  /** For `pg_dump --snapshot`, valid until `work` ends. */
  export(): Promise<string>;
}

export async function inSnapshot<T>(url: string, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const engine = postgresEngine({ url, maxConnections: 1, maxHoldMs: MAX_HOLD_MS, statementMs: STATEMENT_MS });
  const db = openEngine(engine, () => {});
  try {
    return await db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute((tx) =>
        work({
          db: tx,
          engine,
          async export() {
            const { rows } = await sql<{ id: string }>`select pg_export_snapshot() as id`.execute(tx);
            return rows[0]?.id ?? '';
          },
        }),
      );
  } finally {
    await db.destroy();
  }
}
