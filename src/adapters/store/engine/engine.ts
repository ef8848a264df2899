// The interface of a database engine: a Kysely dialect and its properties. No other code branches on the engine's name.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';
import { Refusal } from '../../../domain/errors.ts';
import type { Db, Schema, Transaction } from './schema.ts';

export interface Engine {
  readonly name: 'sqlite' | 'postgresql';
  readonly dialect: Dialect;
  /** True where a read before a write needs FOR UPDATE; an engine with a single writer needs no row locks. */
  readonly locksRows: boolean;
  /** True for errors of the database rather than the statement: a retry may succeed. */
  isUnavailable(error: unknown): boolean;
  /** Mutex across instances, held until the transaction ends: one instance migrates, the others wait. */
  lockForMigration(transaction: Transaction): Promise<void>;
  /** Throws on dangling foreign keys, where migrations run without the database's own check. */
  checkReferences(transaction: Transaction): Promise<void>;
  /** Settings under which an acknowledged commit could be lost; empty if none. */
  durabilityGaps(db: Db): Promise<string[]>;
  sizeBytes(db: Db): Promise<number>;
  /** How far the database's clock is ahead of this process's. */
  clockOffsetMs(db: Db, now: () => number): Promise<number>;
}

const RETRY_AFTER_SECONDS = 1;

/** Opens the engine. Callers see every failure of the database itself as `service_busy`. */
export function openEngine(engine: Engine, onUnavailable: (error: unknown) => void): Db {
  const { dialect } = engine;
  return new Kysely<Schema>({
    dialect: {
      createAdapter: () => dialect.createAdapter(),
      createQueryCompiler: () => dialect.createQueryCompiler(),
      createIntrospector: (db) => dialect.createIntrospector(db),
      createDriver: () => new TranslatingDriver(dialect.createDriver(), translator(engine, onUnavailable)),
    },
  });
}

type Translate = <T>(work: () => Promise<T>) => Promise<T>;

function translator(engine: Engine, onUnavailable: (error: unknown) => void): Translate {
  return async (work) => {
    try {
      return await work();
    } catch (error) {
      if (!engine.isUnavailable(error)) throw error;
      onUnavailable(error);
      throw new Refusal('service_busy', { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error });
    }
  };
}

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
