// What the store needs to know about a database engine: a Kysely dialect and a row of facts. Nothing else in the
// code asks which engine it is.
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
  /** Whether a row that is decided about must be locked (FOR UPDATE); where there is one writer, it is. */
  readonly locksRows: boolean;
  /** True when the database, not the statement, is at fault, so that the same call may succeed later. */
  isUnavailable(error: unknown): boolean;
  /** One instance migrates, the others wait here and then find the work done. */
  lockForMigration(transaction: Transaction): Promise<void>;
  /** Throws when a row refers to one that is not there, where migrations are made without the database's own check. */
  checkReferences(transaction: Transaction): Promise<void>;
  /** Settings under which an acknowledged commit could be lost; empty when all is well. */
  durabilityGaps(db: Db): Promise<string[]>;
  /** How far the database's clock is ahead of ours. */
  clockOffsetMs(db: Db, now: () => number): Promise<number>;
}

const RETRY_AFTER_SECONDS = 1;

/** Opens the engine so that every failure of the database itself reaches the callers as `service_busy`. */
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

class TranslatingDriver implements Driver {
  readonly #driver: Driver;
  readonly #translate: Translate;
  readonly #inner = new WeakMap<DatabaseConnection, DatabaseConnection>();

  constructor(driver: Driver, translate: Translate) {
    this.#driver = driver;
    this.#translate = translate;
  }

  init(): Promise<void> {
    return this.#translate(() => this.#driver.init());
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const inner = await this.#translate(() => this.#driver.acquireConnection());
    const outer: DatabaseConnection = {
      executeQuery: <R>(query: CompiledQuery): Promise<QueryResult<R>> =>
        this.#translate(() => inner.executeQuery<R>(query)),
      streamQuery: (query, chunkSize) => inner.streamQuery(query, chunkSize),
    };
    this.#inner.set(outer, inner);
    return outer;
  }

  beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    return this.#translate(() => this.#driver.beginTransaction(this.#inner.get(connection)!, settings));
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#translate(() => this.#driver.commitTransaction(this.#inner.get(connection)!));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // A connection that broke has rolled back by breaking; what went wrong before is the error worth telling.
    await this.#translate(() => this.#driver.rollbackTransaction(this.#inner.get(connection)!)).catch((error) => {
      if (!(error instanceof Refusal)) throw error;
    });
  }

  releaseConnection(connection: DatabaseConnection): Promise<void> {
    return this.#driver.releaseConnection(this.#inner.get(connection)!);
  }

  destroy(): Promise<void> {
    return this.#driver.destroy();
  }
}
