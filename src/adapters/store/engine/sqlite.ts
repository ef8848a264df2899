// The SQLite engine: a Kysely dialect over node:sqlite. Transactions, batches and single writes go through the group
// commit; plain selects see committed data only: on a second, read-only connection, or on the writer's between transactions.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type LimitNode,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteDialect,
  SqliteQueryCompiler,
  sql,
} from 'kysely';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import { rowsOf } from './batch.ts';
import { columnsOf } from './columns.ts';
import type { Column, Engine, Rows } from './engine.ts';
import { LockTimeout } from './fifo-lock.ts';
import { DEFAULT_LIMITS, GroupCommit, type GroupCommitLimits, RolledBack, type Ticket } from './group-commit.ts';
import { SqliteConnection, walBytesOf } from './sqlite-connection.ts';
import { isSqliteBusy, isSqliteDamage, isSqliteUnavailable } from './sqlite-errors.ts';
import { purgeSqlite } from './sqlite-purge.ts';

interface SqliteOptions {
  readonly file: string;
  readonly limits?: GroupCommitLimits;
  readonly walLimitBytes?: number | undefined;
  readonly onCommit?: (groupSize: number) => void;
  /** Defers foreign key checks to the end: changing a table in SQLite means dropping it first. */
  readonly isMigrating?: boolean;
  /** Opens a file that no process writes to, such as a backup, and leaves it unchanged. */
  readonly isReadOnly?: boolean;
}

/** SQLite's application id of a backup file. */
export const BACKUP_ID = 0x72736c62;
const MAX_FAULTS = 20;

export function sqliteEngine(options: SqliteOptions): Engine {
  const connections = new Connections(options);
  return {
    name: 'sqlite',
    dialect: new NodeSqliteDialect(connections),
    locksRows: false,
    hasClock: false,
    json: {
      values: (list) => sql`select value from json_each(${list})`,
      among: (list) => sql`in (select value from json_each(${list}))`,
      elements: (list) => sql`json_each(${list})`,
      rows: (columns) => sql`json_group_array(json_array(${columnsOf(columns)}))`,
    },
    select({ sql: text, parameters }) {
      const { writer, reader } = connections.opened;
      // Every commit empties the reader's page cache, not the writer's. Within a transaction the writer would see what is
      // not committed yet.
      if (writer.inTransaction) return reader.run(text, parameters).rows;
      try {
        return writer.run(text, parameters).rows;
      } catch (error) {
        // The writer never waits for a lock.
        if (!isSqliteBusy(error)) throw error;
        return reader.run(text, parameters).rows;
      }
    },
    batches: {
      isDecided: sql<boolean>`true`,
      // Of an insert with a select SQLite copies every page that it changes, in case that a later row fails.
      row: (values) => sql`values (${values})`,
      members: () => sql``,
      // SQLite collects what is returned in a temporary table, and knows the number of changed rows without.
      returning: (_key, result) => (result === undefined ? sql`` : sql`returning ${sql.ref(result)}`),
      combine: (statements) => statements,
      run: (statements) => connections.opened.groups.run((writer) => runAll(writer, statements)),
    },
    isUnavailable: (error) => error instanceof LockTimeout || error instanceof RolledBack || isSqliteUnavailable(error),
    isDamage: isSqliteDamage,
    // A single writer cannot deadlock.
    isDeadlock: () => false,
    // BEGIN IMMEDIATE already holds the file's write lock, across processes.
    async lockForMigration() {},
    async checkReferences(transaction) {
      const { rows } = await sql`pragma foreign_key_check`.execute(transaction);
      if (rows.length > 0) throw new Error(`a migration left ${rows.length} dangling references`);
    },
    async requireLive(db) {
      const { rows } = await sql<{ application_id: number }>`pragma application_id`.execute(db);
      if (rows[0]?.application_id !== BACKUP_ID) return;
      throw new Problem(
        EXIT.refused,
        `${options.file} is a backup: a service on it would forget what was revoked since`,
        `Move it away, then: reseal restore FILE --crl …`,
      );
    },
    async integrityFaults(db) {
      const { rows: pages } = await sql<{
        integrity_check: string;
      }>`pragma integrity_check(${sql.lit(MAX_FAULTS)})`.execute(db);
      const { rows: references } = await sql<{ table: string; parent: string }>`pragma foreign_key_check`.execute(db);
      return [
        ...pages.map(({ integrity_check: fault }) => fault).filter((fault) => fault !== 'ok'),
        ...references.slice(0, MAX_FAULTS).map(({ table, parent }) => `a row of ${table} refers to no ${parent}`),
      ];
    },
    async quickFaults(db) {
      // As a select, which the reading connection takes: on the writer's it would hold the write lock.
      const found = sql<{ quick_check: string }>`(select quick_check from pragma_quick_check)`;
      const rows = await db.selectFrom(found.as('found')).selectAll().limit(MAX_FAULTS).execute();
      return rows.map(({ quick_check: fault }) => fault.replaceAll('\n', ' ')).filter((fault) => fault !== 'ok');
    },
    // A migrating connection does not enforce them.
    async dropReferences() {
      return [];
    },
    columns: (db) =>
      db
        .selectFrom(
          sql<Column>`(select tables.name as "table", columns.name as "column", columns.pk as "keyPosition"
            from sqlite_master as tables, pragma_table_info(tables.name) as columns
            where tables.type = 'table' and substr(tables.name, 1, 7) <> 'sqlite_')`.as('catalog'),
        )
        .selectAll()
        .execute(),
    purge: () => purgeSqlite(options.file),
    async durabilityGaps(db) {
      const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(db);
      return rows[0]?.synchronous === 2 ? [] : [`PRAGMA synchronous is ${rows[0]?.synchronous}, not 2 (FULL)`];
    },
    async sizeBytes(db) {
      // Built as a select, which the reading connection takes: a raw query would go through the writer.
      const size = sql<number>`(select page_count from pragma_page_count) * (select page_size from pragma_page_size)`;
      return (await db.selectNoFrom(size.as('bytes')).executeTakeFirstOrThrow()).bytes;
    },
    walBytes: () => walBytesOf(options.file),
    async clockOffsetMs() {
      return 0;
    },
  };
}

function runAll(writer: SqliteConnection, statements: readonly CompiledQuery[]): Rows {
  let rows: Rows = [];
  for (const [index, statement] of statements.entries()) {
    rows = rowsOf(writer.run(statement.sql, statement.parameters));
    if (index === 0 && rows.length === 0) break;
  }
  return rows;
}

interface Opened {
  readonly writer: SqliteConnection;
  readonly reader: SqliteConnection;
  readonly groups: GroupCommit;
  readonly isReadOnly: boolean;
}

/** One writer and one reader of a file, opened by the first use. */
class Connections {
  readonly #options: SqliteOptions;
  #opened: Opened | undefined;

  constructor(options: SqliteOptions) {
    this.#options = options;
  }

  get opened(): Opened {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  #open(): Opened {
    const {
      file,
      limits = DEFAULT_LIMITS,
      walLimitBytes,
      onCommit = () => {},
      isMigrating = false,
      isReadOnly = false,
    } = this.#options;
    // The writer first: it creates the file and its WAL, which a read-only connection cannot.
    const writer = new SqliteConnection(file, isReadOnly ? 'read' : isMigrating ? 'migrate' : 'write', walLimitBytes);
    const reader = new SqliteConnection(file, 'read');
    return { writer, reader, groups: new GroupCommit(writer, limits, onCommit), isReadOnly };
  }

  async close(): Promise<void> {
    await this.#opened?.groups.drain();
    this.#opened?.reader.close();
    this.#opened?.writer.close();
    this.#opened = undefined;
  }
}

class NodeSqliteDialect extends SqliteDialect {
  readonly #connections: Connections;

  constructor(connections: Connections) {
    // The base class provides compiler and introspector; its driver, which needs better-sqlite3, is replaced below.
    super({ database: () => Promise.reject(new Error('unused')) });
    this.#connections = connections;
  }

  override createDriver(): Driver {
    return new GroupCommitDriver(this.#connections);
  }

  override createAdapter(): SqliteAdapter {
    return new ConcurrentSqliteAdapter();
  }

  override createQueryCompiler(): SqliteQueryCompiler {
    return new HiddenLimitCompiler();
  }
}

/**
 * Hides the limit from SQLite's planner: a statement whose limit is a parameter it plans by the value, so it compiles it
 * anew each time that one is bound. Behind an operator it does not look for a value.
 */
class HiddenLimitCompiler extends SqliteQueryCompiler {
  protected override visitLimit({ limit }: LimitNode): void {
    this.append('limit +');
    this.visitNode(limit);
  }
}

/** Allows concurrent connections: the group commit serializes writers. */
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class GroupCommitDriver implements Driver {
  readonly #connections: Connections;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async init(): Promise<void> {
    this.#connections.opened;
  }

  async acquireConnection(): Promise<GroupCommitConnection> {
    return new GroupCommitConnection(this.#connections.opened);
  }

  async beginTransaction(connection: GroupCommitConnection): Promise<void> {
    await connection.begin();
  }

  async commitTransaction(connection: GroupCommitConnection): Promise<void> {
    await connection.commit();
  }

  async rollbackTransaction(connection: GroupCommitConnection): Promise<void> {
    connection.rollback();
  }

  async releaseConnection(): Promise<void> {}

  destroy(): Promise<void> {
    return this.#connections.close();
  }
}

class GroupCommitConnection implements DatabaseConnection {
  readonly #opened: Opened;
  #ticket: Ticket | undefined;

  constructor(opened: Opened) {
    this.#opened = opened;
  }

  async begin(): Promise<void> {
    this.#ticket = await this.#opened.groups.begin();
  }

  async commit(): Promise<void> {
    if (!this.#ticket) throw new Error('there is no transaction to commit');
    await this.#opened.groups.commit(this.#ticket);
  }

  rollback(): void {
    if (this.#ticket) this.#opened.groups.rollback(this.#ticket);
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { writer, reader, groups, isReadOnly } = this.#opened;
    if (this.#ticket) {
      groups.requireOpen(this.#ticket);
      try {
        return writer.run<R>(query.sql, query.parameters);
      } catch (error) {
        this.#ticket.hasFailed = true;
        throw error;
      }
    }
    if (isReadOnly || SelectQueryNode.is(query.query)) return reader.run<R>(query.sql, query.parameters);
    return await groups.run(() => writer.run<R>(query.sql, query.parameters));
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator, and nothing is streamed.
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('streaming is not supported: read page by page');
  }
}
