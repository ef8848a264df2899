// The SQLite engine: a Kysely dialect over node:sqlite. Transactions and single writes go through the group commit; plain
// selects use a second, read-only connection and so see committed data only.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteDialect,
  sql,
} from 'kysely';
import type { Engine } from './engine.ts';
import { LockTimeout } from './fifo-lock.ts';
import { DEFAULT_LIMITS, GroupCommit, type GroupCommitLimits, RolledBack, type Ticket } from './group-commit.ts';
import { isSqliteUnavailable, SqliteConnection } from './sqlite-connection.ts';

interface SqliteOptions {
  readonly file: string;
  readonly limits?: GroupCommitLimits;
  readonly onCommit?: (groupSize: number) => void;
  /** Defers foreign key checks to the end: changing a table in SQLite means dropping it first. */
  readonly isMigrating?: boolean;
}

export function sqliteEngine(options: SqliteOptions): Engine {
  return {
    name: 'sqlite',
    dialect: new NodeSqliteDialect(options),
    locksRows: false,
    isUnavailable: (error) => error instanceof LockTimeout || error instanceof RolledBack || isSqliteUnavailable(error),
    // BEGIN IMMEDIATE already holds the file's write lock, across processes.
    async lockForMigration() {},
    async checkReferences(transaction) {
      const { rows } = await sql`pragma foreign_key_check`.execute(transaction);
      if (rows.length > 0) throw new Error(`a migration left ${rows.length} dangling references`);
    },
    async durabilityGaps(db) {
      const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(db);
      return rows[0]?.synchronous === 2 ? [] : [`PRAGMA synchronous is ${rows[0]?.synchronous}, not 2 (FULL)`];
    },
    async sizeBytes(db) {
      // Built as a select, which the reading connection takes: a raw query would go through the writer.
      const size = sql<number>`(select page_count from pragma_page_count) * (select page_size from pragma_page_size)`;
      return (await db.selectNoFrom(size.as('bytes')).executeTakeFirstOrThrow()).bytes;
    },
    async clockOffsetMs() {
      return 0;
    },
  };
}

class NodeSqliteDialect extends SqliteDialect {
  readonly #options: SqliteOptions;

  constructor(options: SqliteOptions) {
    // The base class provides compiler and introspector; its driver, which needs better-sqlite3, is replaced below.
    super({ database: () => Promise.reject(new Error('unused')) });
    this.#options = options;
  }

  override createDriver(): Driver {
    return new GroupCommitDriver(this.#options);
  }

  override createAdapter(): SqliteAdapter {
    return new ConcurrentSqliteAdapter();
  }
}

/** Allows concurrent connections: the group commit serializes writers. */
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class GroupCommitDriver implements Driver {
  readonly #options: SqliteOptions;
  #opened: { writer: SqliteConnection; reader: SqliteConnection; groups: GroupCommit } | undefined;

  constructor(options: SqliteOptions) {
    this.#options = options;
  }

  async init(): Promise<void> {
    const { file, limits = DEFAULT_LIMITS, onCommit = () => {}, isMigrating = false } = this.#options;
    // The writer first: it creates the file and its WAL, which a read-only connection cannot.
    const writer = new SqliteConnection(file, isMigrating ? 'migrate' : 'write');
    const reader = new SqliteConnection(file, 'read');
    this.#opened = { writer, reader, groups: new GroupCommit(writer, limits, onCommit) };
  }

  async acquireConnection(): Promise<GroupCommitConnection> {
    if (!this.#opened) throw new Error('the driver is not open');
    const { writer, reader, groups } = this.#opened;
    return new GroupCommitConnection(writer, reader, groups);
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

  async destroy(): Promise<void> {
    await this.#opened?.groups.drain();
    this.#opened?.reader.close();
    this.#opened?.writer.close();
    this.#opened = undefined;
  }
}

class GroupCommitConnection implements DatabaseConnection {
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #groups: GroupCommit;
  #ticket: Ticket | undefined;

  constructor(writer: SqliteConnection, reader: SqliteConnection, groups: GroupCommit) {
    this.#writer = writer;
    this.#reader = reader;
    this.#groups = groups;
  }

  async begin(): Promise<void> {
    this.#ticket = await this.#groups.begin();
  }

  async commit(): Promise<void> {
    if (!this.#ticket) throw new Error('there is no transaction to commit');
    await this.#groups.commit(this.#ticket);
  }

  rollback(): void {
    if (this.#ticket) this.#groups.rollback(this.#ticket);
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#ticket) {
      this.#groups.requireOpen(this.#ticket);
      try {
        return this.#writer.run<R>(query.sql, query.parameters);
      } catch (error) {
        this.#ticket.hasFailed = true;
        throw error;
      }
    }
    if (SelectQueryNode.is(query.query)) return this.#reader.run<R>(query.sql, query.parameters);
    return await this.#asTransaction<R>(query);
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator, and nothing is streamed.
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('streaming is not supported: read page by page');
  }

  async #asTransaction<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const ticket = await this.#groups.begin();
    let result: QueryResult<R>;
    try {
      result = this.#writer.run<R>(query.sql, query.parameters);
    } catch (error) {
      this.#groups.rollback(ticket);
      throw error;
    }
    await this.#groups.commit(ticket);
    return result;
  }
}
