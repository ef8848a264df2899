// The PostgreSQL engine, over pg. Every wait has a timeout: for a connection, for a statement, and for an idle
// transaction that holds locks.
import { type CompiledQuery, PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from 'kysely';
import pg from 'pg';
import { columnsOf } from './columns.ts';
import type { Column, Engine, Rows } from './engine.ts';
import { combine, IS_DECIDED } from './member-sets.ts';
import { replaceNul } from './pipelined-query.ts';
import { StatementGroups } from './statement-groups.ts';

interface PostgresOptions {
  readonly url: string;
  readonly maxConnections: number;
  readonly maxHoldMs?: number;
  readonly statementMs?: number;
}

const INT8 = 20;
const CONNECT_MS = 5_000;
const STATEMENT_MS = 10_000;
const GRACE_MS = 2_000;
// Arbitrary, but the same in every version of Reseal.
const MIGRATION_LOCK = 0x7265736c;

/** SQLSTATE classes and codes about the server and access to it, not about the statement. */
const UNAVAILABLE = /^(08|0A000|28|53|58|57P|3D000|40001|40P01|42501|55P03|57014|25006|25P03|XX001|XX002)/;
/**
 * Errors with which a server ends the connection: connection_exception, operator_intervention, and the timeouts of idle and
 * long transactions. By code, because the severity is in the server's language.
 */
const ENDS_CONNECTION = /^(08|57P|25P0[34])/;

/** Whether the server has undone the transaction, and the connection can be used again. */
const isUndone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !ENDS_CONNECTION.test(error.code ?? '');
/** deadlock_detected. */
const DEADLOCK = '40P01';
/** data_corrupted and index_corrupted. */
const DAMAGE = /^XX00[12]$/;

/** All bigint columns hold milliseconds or counters, far below 2^53. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
};

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
    types,
  });
  // Without these listeners a lost connection, idle in the pool or between two statements of a transaction, would end
  // the process. The pool replaces it, and the next statement on it fails.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const waitMs = statementMs + GRACE_MS;
  const timed = withQueryTimeout(pool, waitMs);
  async function alone({ sql: text, parameters }: CompiledQuery): Promise<Rows> {
    const client = await timed.connect();
    try {
      return (await client.query<unknown>(text, parameters)).rows;
    } finally {
      client.release();
    }
  }
  const groups = { pool, types, waitMs, nameOf: statementName, alone, isUndone, isStale };
  const reads = new StatementGroups(groups);
  const writes = new StatementGroups(groups);
  return {
    name: 'postgresql',
    dialect: new PostgresDialect({ pool: timed }),
    locksRows: true,
    hasClock: true,
    json: {
      values: (list) => sql`select json_array_elements_text(cast(${list} as json))`,
      among: (list) => sql`= any(array(select json_array_elements_text(cast(${list} as json))))`,
      elements: (list) => sql`json_array_elements(cast(${list} as json))`,
      rows: (columns) => sql`cast(json_agg(json_build_array(${columnsOf(columns)})) as text)`,
    },
    select: (query) => reads.run(query),
    batches: {
      isDecided: IS_DECIDED,
      row: (values) => sql`select ${values} from member where ${IS_DECIDED}`,
      members: (before, after = '') => sql.raw(`${before} member ${after}`),
      returning(key, result) {
        const returned = sql`returning ${sql.ref(key)} as member_key`;
        return result === undefined ? returned : sql`${returned}, ${sql.ref(result)}`;
      },
      combine,
      run: async (combined) => (await Promise.all(combined.map((query) => writes.run(query)))).flat(),
    },
    isUnavailable(error) {
      if (error instanceof pg.DatabaseError) return UNAVAILABLE.test(error.code ?? '');
      // Any other error is a lost connection or a timeout, except those that only our own bugs raise.
      return error instanceof Error && !(error instanceof TypeError || error instanceof RangeError);
    },
    isDamage: isPostgresDamage,
    isDeadlock: (error) => error instanceof pg.DatabaseError && error.code === DEADLOCK,
    async lockForMigration(transaction) {
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(transaction);
    },
    // PostgreSQL enforces foreign keys during a migration too.
    async checkReferences() {},
    // A dump is restored by PostgreSQL's own tools, which check pages and references.
    async requireLive() {},
    async integrityFaults() {
      return [];
    },
    // PostgreSQL counts the pages whose checksum was wrong when it read them. Reading all of them is up to pg_amcheck.
    async quickFaults(db) {
      const { rows } = await sql<{ name: string | null; failures: number }>`
        select datname as name, checksum_failures as failures from pg_stat_database
        where checksum_failures > 0 and (datname = current_database() or datname is null)`.execute(db);
      return rows.map(({ name, failures }) => `${failures} pages of ${name ?? 'shared tables'} had a wrong checksum`);
    },
    async dropReferences(transaction) {
      const { rows } = await sql<{ table: string; name: string; definition: string }>`
        select conrelid::regclass::text as "table", quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
        from pg_constraint where contype = 'f' and connamespace = current_schema()::regnamespace`.execute(transaction);
      for (const { table, name } of rows) {
        await sql.raw(`alter table ${table} drop constraint ${name}`).execute(transaction);
      }
      return rows.map(({ table, name, definition }) => `alter table ${table} add constraint ${name} ${definition}`);
    },
    columns: (db) =>
      db
        .selectFrom(
          sql<Column>`(select tables.relname as "table", columns.attname as "column",
              coalesce(array_position(keys.indkey::int2[], columns.attnum) + 1, 0) as "keyPosition"
            from pg_class as tables
            join pg_attribute as columns on columns.attrelid = tables.oid
            left join pg_index as keys on keys.indrelid = tables.oid and keys.indisprimary
            where tables.relkind = 'r' and tables.relnamespace = current_schema()::regnamespace
              and columns.attnum > 0 and not columns.attisdropped)`.as('catalog'),
        )
        .selectAll()
        .execute(),
    async purge(db) {
      // The only table from which a key is removed that must be nowhere afterwards.
      await sql`vacuum full issuer`.execute(db);
      return [
        'the write-ahead log of PostgreSQL, its archive and its replicas: they keep the former row until they are recycled',
        'blocks of the disk that the table issuer used before VACUUM FULL, which was done: file systems keep them until they are used again',
      ];
    },
    async durabilityGaps(db) {
      const { rows } = await sql<{ name: string; setting: string }>`
        select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes')`.execute(
        db,
      );
      return rows.filter(({ setting }) => setting === 'off').map(({ name }) => `${name} is off`);
    },
    async sizeBytes(db) {
      const size = sql<number>`pg_database_size(current_database())`;
      return (await db.selectNoFrom(size.as('bytes')).executeTakeFirstOrThrow()).bytes;
    },
    walBytes: () => null,
    async clockOffsetMs(db, now) {
      const asked = now();
      const { rows } = await sql<{
        ms: number;
      }>`select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms`.execute(db);
      const [row] = rows;
      if (!row) throw new Error('PostgreSQL did not return its clock');
      // The server read its clock about half a round trip after the query was sent. Whole, as all times in the store.
      return Math.round(row.ms - (asked + now()) / 2);
    },
  };
}

export const isPostgresDamage = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && DAMAGE.test(error.code ?? '');

/**
 * Named statements are parsed and planned once per connection, which halves the database's share of a reissue. SQL texts
 * vary only in the length of lists; beyond the bound, and for transaction control, they stay unnamed.
 */
const MAX_NAMED = 500;
const names = new Map<string, string>();

function statementName(text: string): string {
  if (!text.includes(' ')) return '';
  const known = names.get(text);
  if (known !== undefined || names.size >= MAX_NAMED) return known ?? '';
  const name = `reseal_${generation}_${names.size}`;
  names.set(text, name);
  return name;
}

/**
 * feature_not_supported: a newer instance has changed the columns of a table, and the result of a prepared statement would
 * have another type. New names make every connection prepare its statements anew.
 */
const STALE_STATEMENT = '0A000';
const isStale = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === STALE_STATEMENT;
let generation = 0;

function forgetStatements(): void {
  generation += 1;
  names.clear();
}

/**
 * Client-side timeout of each query: an unreachable server cannot enforce statement_timeout. A connection that timed out
 * is closed instead of returned to the pool, where the next caller would wait on it again.
 */
function withQueryTimeout(pool: pg.Pool, waitMs: number): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect();
      let hasTimedOut = false;
      let hasFailed = false;
      let isInTransaction = false;
      const query = async (text: string, values: unknown[]) => {
        // PostgreSQL answers COMMIT of a failed transaction with ROLLBACK and no error.
        if (text === 'commit' && hasFailed) throw new Error('a statement of the transaction had failed');
        hasFailed = text !== 'begin' && hasFailed;
        if (text === 'begin') isInTransaction = true;
        else if (text === 'commit' || text === 'rollback') isInTransaction = false;
        const { promise: timeout, reject } = Promise.withResolvers<never>();
        const timer = setTimeout(() => {
          hasTimedOut = true;
          reject(new Error(`no answer from PostgreSQL within ${waitMs} ms`));
        }, waitMs);
        try {
          const run = () =>
            Promise.race([client.query({ name: statementName(text), text, values: values.map(replaceNul) }), timeout]);
          return await run().catch((error) => {
            if (!isStale(error)) throw error;
            forgetStatements();
            // A transaction is lost with its statement; its caller tries again, as after any loss of a connection.
            if (isInTransaction) throw error;
            return run();
          });
        } catch (error) {
          hasFailed = true;
          throw error;
        } finally {
          clearTimeout(timer);
        }
      };
      // Kysely's type also covers cursors, used for streaming only; the store reads page by page.
      return { query, release: () => client.release(hasTimedOut) } as unknown as PostgresPoolClient;
    },
    end: () => pool.end(),
    options: pool.options,
  };
}
