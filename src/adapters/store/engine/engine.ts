// The interface of a database engine: a Kysely dialect and its properties. No other code branches on the engine's name.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  type RawBuilder,
  type TransactionSettings,
} from 'kysely';
import { Refusal } from '../../../domain/errors.ts';
import type { Db, Schema, Transaction } from './schema.ts';

/** A column of a table of ours. `keyPosition` counts from 1 in the primary key, and is 0 outside of it. */
export interface Column {
  readonly table: string;
  readonly column: string;
  readonly keyPosition: number;
}

/** A query of prepared.ts, with the name of the slot of each parameter, null for a constant. */
export interface PreparedQuery<Row = unknown> extends CompiledQuery<Row> {
  readonly slots: readonly (string | null)[];
}

export interface Engine {
  readonly name: 'sqlite' | 'postgresql';
  readonly dialect: Dialect;
  /** True where a read before a write needs FOR UPDATE; an engine with a single writer needs no row locks. */
  readonly locksRows: boolean;
  /** True for errors of the database rather than the statement: a retry may succeed. */
  isUnavailable(error: unknown): boolean;
  /** True for those of them that say the database's files are damaged: no retry succeeds. */
  isDamage(error: unknown): boolean;
  /** True if the database undid this transaction because it and another one waited for each other. */
  isDeadlock(error: unknown): boolean;
  /** Mutex across instances, held until the transaction ends: one instance migrates, the others wait. */
  lockForMigration(transaction: Transaction): Promise<void>;
  /** Throws on dangling foreign keys, where migrations run without the database's own check. */
  checkReferences(transaction: Transaction): Promise<void>;
  /** JSON in SQL, where the engines differ. */
  readonly json: {
    /** A select of the strings in a list. */
    values(list: unknown): RawBuilder<unknown>;
    /** After a column: whether it is one of the strings in a list. The planner takes the list for a short one. */
    among(list: unknown): RawBuilder<unknown>;
    /** A table of the elements of a list, each as `value`; of one that is a list itself, `->>` takes an element. */
    elements(list: unknown): RawBuilder<unknown>;
    /** All rows of a select as one text: a list of lists. */
    rows(columns: readonly string[]): RawBuilder<string | null>;
  };
  /** Runs a select outside of any transaction, without Kysely's layers: for the hot path. */
  select(query: CompiledQuery): Rows | Promise<Rows>;
  /** Of batches (batch.ts): the statements as they are sent, and their transaction. */
  readonly batches: {
    /** In a statement after the first: whether the first returned a row. */
    readonly isDecided: RawBuilder<boolean>;
    /** After the columns of an insert that follows the first statement: these values, if that returned a row. */
    row(values: RawBuilder<unknown>): RawBuilder<unknown>;
    /** The table of the slots' values with the words around it, on an engine that has one: `from`, `using`, `cross join`. */
    members(before: string, after?: string): RawBuilder<unknown>;
    /** At the end of the first statement and the last: the column with the batch's key, if the engine has to return it. */
    returning(key: string, result?: string): RawBuilder<unknown>;
    combine(statements: readonly PreparedQuery[], key: string): readonly CompiledQuery[];
    run(combined: readonly CompiledQuery[]): Promise<Rows>;
  };
  /** Throws a Problem if the database is a backup file, on which no service may run before it was restored. */
  requireLive(db: Db): Promise<void>;
  /** What is damaged in the database's files and references, in the engine's words; empty if nothing is. */
  integrityFaults(db: Db): Promise<string[]>;
  /** The same, as far as a running service can be examined without holding up its writers. */
  quickFaults(db: Db): Promise<string[]>;
  /** Drops all foreign keys, for rows that arrive in any order. Returns the statements that bring them back. */
  dropReferences(transaction: Transaction): Promise<string[]>;
  /** Every column of every table, from the database's catalog. */
  columns(db: Db): Promise<Column[]>;
  /** Settings under which an acknowledged commit could be lost; empty if none. */
  durabilityGaps(db: Db): Promise<string[]>;
  sizeBytes(db: Db): Promise<number>;
  /**
   * Removes what was deleted or replaced from the database's files, where the engine can. Returns where it may still be, in
   * words for the operator. Not in a transaction.
   */
  purge(db: Db): Promise<string[]>;
  /** Of the log that a long reader lets grow; null where the database bounds it by itself. */
  walBytes(): number | null;
  /** Whether the database has a clock of its own, on another machine perhaps. */
  readonly hasClock: boolean;
  /** How far the database's clock is ahead of this process's. */
  clockOffsetMs(db: Db, now: () => number): Promise<number>;
}

/** For queries whose text depends on the engine: made once for each. */
export function perEngine<T>(make: (engine: Engine) => T): (engine: Engine) => T {
  const made = new WeakMap<Engine, T>();
  return (engine) => {
    const known = made.get(engine) ?? make(engine);
    made.set(engine, known);
    return known;
  };
}

export type Rows = readonly unknown[];

const RETRY_AFTER_SECONDS = 1;

/** Around Kysely's layers. Failures of the database are `service_busy`, as everywhere. */
interface Direct {
  select(query: CompiledQuery): Rows | Promise<Rows>;
  runBatch(combined: readonly CompiledQuery[]): Promise<Rows>;
}

/** By adapter: one belongs to one open engine, transactions included. */
const directs = new WeakMap<object, Direct>();

const connections = new WeakMap<Db, DatabaseConnection>();

/** The connection of a transaction that was announced by `useConnection`. */
export const connectionOf = (db: Db): DatabaseConnection | undefined => connections.get(db);

/** Lets the prepared statements of a transaction go to its connection without Kysely's layers. */
export async function useConnection(transaction: Transaction): Promise<void> {
  const connection = await transaction.getExecutor().provideConnection(async (own) => own);
  connections.set(transaction, connection);
}

/** Undefined in a transaction, whose statements belong on its own connection. */
export const directOf = (db: Db): Direct | undefined =>
  db.isTransaction ? undefined : directs.get(db.getExecutor().adapter);

/** Opens the engine. Callers see every failure of the database itself as `service_busy`. */
export function openEngine(engine: Engine, onUnavailable: (error: unknown, isDamage: boolean) => void): Db {
  const { dialect, batches } = engine;
  const translated = (error: unknown): unknown => {
    if (!engine.isUnavailable(error)) return error;
    onUnavailable(error, engine.isDamage(error));
    return new Refusal('service_busy', { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error });
  };
  const rethrow = (error: unknown): never => {
    throw translated(error);
  };
  const translate: Translate = async (work) => {
    try {
      return await work();
    } catch (error) {
      throw translated(error);
    }
  };
  const direct: Direct = {
    select(query) {
      try {
        const rows = engine.select(query);
        return rows instanceof Promise ? rows.catch(rethrow) : rows;
      } catch (error) {
        return rethrow(error);
      }
    },
    runBatch: (combined) => translate(() => batches.run(combined)),
  };
  return new Kysely<Schema>({
    dialect: {
      createAdapter() {
        const adapter = dialect.createAdapter();
        directs.set(adapter, direct);
        return adapter;
      },
      createQueryCompiler: () => dialect.createQueryCompiler(),
      createIntrospector: (db) => dialect.createIntrospector(db),
      createDriver: () => new TranslatingDriver(dialect.createDriver(), translate),
    },
  });
}

type Translate = <T>(work: () => T | Promise<T>) => Promise<T>;

/** A connection of the engine whose errors are translated. */
class TranslatingConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #translate: Translate;

  constructor(inner: DatabaseConnection, translate: Translate) {
    this.inner = inner;
    this.#translate = translate;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#translate(() => this.inner.executeQuery<R>(query));
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.inner.streamQuery<R>(query, chunkSize);
  }
}

/** Kysely hands back only connections that acquireConnection returned. */
class TranslatingDriver implements Driver {
  readonly #driver: Driver;
  readonly #translate: Translate;

  constructor(driver: Driver, translate: Translate) {
    this.#driver = driver;
    this.#translate = translate;
  }

  init(): Promise<void> {
    return this.#translate(() => this.#driver.init());
  }

  async acquireConnection(): Promise<TranslatingConnection> {
    const inner = await this.#translate(() => this.#driver.acquireConnection());
    return new TranslatingConnection(inner, this.#translate);
  }

  beginTransaction({ inner }: TranslatingConnection, settings: TransactionSettings): Promise<void> {
    return this.#translate(() => this.#driver.beginTransaction(inner, settings));
  }

  commitTransaction({ inner }: TranslatingConnection): Promise<void> {
    return this.#translate(() => this.#driver.commitTransaction(inner));
  }

  async rollbackTransaction({ inner }: TranslatingConnection): Promise<void> {
    // A broken connection has rolled back already; the caller should see the original error, not this one.
    await this.#translate(() => this.#driver.rollbackTransaction(inner)).catch((error) => {
      if (!(error instanceof Refusal)) throw error;
    });
  }

  releaseConnection({ inner }: TranslatingConnection): Promise<void> {
    return this.#driver.releaseConnection(inner);
  }

  destroy(): Promise<void> {
    return this.#driver.destroy();
  }
}
