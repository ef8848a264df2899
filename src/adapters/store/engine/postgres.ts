// PostgreSQL as an engine, through pg. Every wait is bounded: for a connection, for a statement, and for a
// transaction that sits idle with its locks held.
import { PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from 'kysely';
import pg from 'pg';
import type { Engine } from './engine.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly maxConnections: number;
  readonly maxHoldMs?: number;
  readonly statementMs?: number;
}

const INT8 = 20;
const CONNECT_MS = 5_000;
const STATEMENT_MS = 10_000;
const GRACE_MS = 2_000;
// Any constant would do: it only has to be the same in every version of Reseal.
const MIGRATION_LOCK = 0x7265736c;

/** SQLSTATE classes and codes that speak of the server and our access to it, not of the statement. */
const UNAVAILABLE = /^(08|28|53|58|57P|3D000|40001|40P01|42501|55P03|57014|25006|25P03|XX001)/;

export function postgresEngine(options: PostgresOptions): Engine {
  const { url, maxConnections, maxHoldMs = 10_000, statementMs = STATEMENT_MS } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: maxHoldMs,
    keepAlive: true,
    application_name: 'reseal',
    // Our bigints are milliseconds and counters, far below 2^53.
    types: { getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) },
  });
  // Without these listeners the loss of a connection, idle in the pool or between two statements of a transaction,
  // would end the process. The pool replaces it by itself, and whoever used it learns it from the next statement.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return {
    name: 'postgresql',
    dialect: new PostgresDialect({ pool: impatient(pool, statementMs + GRACE_MS) }),
    locksRows: true,
    isUnavailable(error) {
      if (error instanceof pg.DatabaseError) return UNAVAILABLE.test(error.code ?? '');
      // What the server did not send is a lost connection or a time-out; what is not even that is a mistake of ours.
      return error instanceof Error && !(error instanceof TypeError || error instanceof RangeError);
    },
    async lockForMigration(transaction) {
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(transaction);
    },
    // It checks by itself, also while a table changes.
    async checkReferences() {},
    async durabilityGaps(db) {
      const { rows } = await sql<{ name: string; setting: string }>`
        select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes')`.execute(
        db,
      );
      return rows.filter(({ setting }) => setting === 'off').map(({ name }) => `${name} is off`);
    },
    async clockOffsetMs(db, now) {
      const asked = now();
      const { rows } = await sql<{
        ms: number;
      }>`select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms`.execute(db);
      // Half of the round trip passed before the server read its clock.
      return rows[0]!.ms - (asked + now()) / 2;
    },
  };
}

/** PostgreSQL's text has no NUL. What is looked for with one is not there, and nothing of ours is written with one. */
const storable = (value: unknown): unknown => (typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value);

/**
 * A server that is gone without a word cannot tell us that a statement took too long. So we stop waiting ourselves,
 * and throw the connection away: returned to the pool, it would make the next caller wait for nothing too.
 */
function impatient(pool: pg.Pool, waitMs: number): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect();
      let isSilent = false;
      let hasFailed = false;
      const query = async (text: string, values: unknown[]) => {
        // PostgreSQL answers the COMMIT of a failed transaction with a quiet ROLLBACK: nobody would notice.
        if (text === 'commit' && hasFailed) throw new Error('a statement of the transaction had failed');
        hasFailed = text !== 'begin' && hasFailed;
        const { promise: silence, reject } = Promise.withResolvers<never>();
        const timer = setTimeout(() => {
          isSilent = true;
          reject(new Error(`no answer from PostgreSQL within ${waitMs} ms`));
        }, waitMs);
        try {
          return await Promise.race([client.query(text, values.map(storable)), silence]);
        } catch (error) {
          hasFailed = true;
          throw error;
        } finally {
          clearTimeout(timer);
        }
      };
      // Kysely's type also has cursors, which it takes only for streaming; we read page by page.
      return { query, release: () => client.release(isSilent) } as unknown as PostgresPoolClient;
    },
    end: () => pool.end(),
    options: pool.options,
  };
}
