// One connection to an SQLite file: pragmas, statement cache, the turn of a writer, and the bound of the WAL.
import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import type { QueryResult } from 'kysely';
import { isSqliteBusy, PRIMARY_CODES } from './sqlite-errors.ts';
import { Turnstile } from './turnstile.ts';

// Waiting inside SQLite blocks the event loop. Opening may wait, as another process could be recovering the WAL. A read
// may wait briefly, in the rare cases where the WAL locks readers out; a write never waits.
const OPEN_WAIT_MS = 5_000;
const READ_WAIT_MS = 100;
/** Transactions that begin within this time need not pass the turnstile again: each change of writers takes a millisecond. */
const TURN_MS = 5;
const MAX_STATEMENTS = 500;
// SQLite's default of 2 MiB is less than the upper pages of a few indexes. With a large cache nearly every commit is slow:
// SQLite looks through all of it for pages beyond the end of the file, because splitting a page moves another one there for
// a moment. Pages that are not in it come from the operating system's cache.
const CACHE_KIB = 8 * 1024;
/**
 * Of a new file. A reissue changes a few bytes in a page of each of several indexes, and every changed page is written
 * whole: with a quarter of SQLite's default, half as much is written.
 */
const PAGE_BYTES = 1_024;
/** WAL size before a checkpoint; a start after a crash reads the WAL once. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;
/** A WAL that has grown beyond is cut to this size when it begins anew; otherwise it would keep its largest size for ever. */
const KEPT_WAL_BYTES = 2 * CHECKPOINT_BYTES;
/** While a reader keeps its snapshot, checkpoints cannot begin the WAL anew. Beyond this size writes are refused. */
export const WAL_LIMIT_BYTES = 1024 * 1024 * 1024;
/** Transactions between two looks at the size of the WAL: what they write is small beside the limit. */
const WAL_CHECK_EVERY = 16;

type Values = readonly SQLOutputValue[];

interface Prepared {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
  /** Of a statement whose rows are arrays. */
  readonly rowFrom: ((values: Values) => unknown) | undefined;
}

export class SqliteConnection {
  readonly #file: string;
  readonly #inode: number;
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();
  readonly #turnstile: Turnstile | undefined;
  readonly #walLimitBytes: number;
  #turnEndsAt = 0;
  #untilWalCheck = 0;

  constructor(file: string, mode: 'read' | 'write' | 'migrate', walLimitBytes = WAL_LIMIT_BYTES) {
    this.#file = file;
    this.#walLimitBytes = walLimitBytes;
    this.#database = new DatabaseSync(file, {
      timeout: OPEN_WAIT_MS,
      readOnly: mode === 'read',
      enableForeignKeyConstraints: mode !== 'migrate',
    });
    this.#inode = statSync(file).ino;
    if (mode !== 'read') {
      this.#turnstile = new Turnstile(file);
      // FULL syncs the WAL before each commit returns. NORMAL would lose acknowledged commits on power loss.
      this.#database.exec(`pragma page_size = ${PAGE_BYTES}`);
      this.#database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 0');
      // Overwrites deleted content where that needs no extra write.
      this.#database.exec('pragma secure_delete = fast');
      // Savepoints keep a sub-journal. In temporary files it cost 130 kB and 50 write calls per reissue.
      this.#database.exec('pragma temp_store = memory');
      // Fewer checkpoints: hot pages are copied from the WAL once instead of every few commits.
      const { page_size: pageBytes } = this.#database.prepare('pragma page_size').get() as { page_size: number };
      const pages = Math.ceil(CHECKPOINT_BYTES / pageBytes);
      this.#database.exec(`pragma cache_size = -${CACHE_KIB}; pragma wal_autocheckpoint = ${pages}`);
      this.#database.exec(`pragma journal_size_limit = ${KEPT_WAL_BYTES}`);
    } else {
      this.#database.exec(`pragma busy_timeout = ${READ_WAIT_MS}`);
    }
  }

  /** Throws if the file was deleted or replaced: writes to the old inode would succeed and be lost. */
  requireFile(): void {
    if (statSync(this.#file, { throwIfNoEntry: false })?.ino === this.#inode) return;
    throw Object.assign(new Error('the database file was deleted or replaced'), { errcode: PRIMARY_CODES.cannotOpen });
  }

  /** Throws, as on a full disk, while the WAL is beyond its limit and a reader keeps it. Call outside of a transaction. */
  requireRoom(): void {
    if (this.#untilWalCheck-- > 0) return;
    this.#untilWalCheck = 0;
    if (walBytesOf(this.#file) > this.#walLimitBytes && !this.#truncateWal()) {
      const text = 'the WAL is beyond RESEAL_WAL_LIMIT_MIB, because a reader keeps an old snapshot';
      throw Object.assign(new Error(text), { errcode: PRIMARY_CODES.full });
    }
    this.#untilWalCheck = WAL_CHECK_EVERY;
  }

  #truncateWal(): boolean {
    const { busy } = this.#database.prepare('pragma wal_checkpoint(truncate)').get() as { busy: number };
    return busy === 0;
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  run<R>(sql: string, parameters: readonly unknown[] = []): QueryResult<R> {
    const { statement, returnsRows, rowFrom } = this.#prepare(sql);
    const values = parameters as readonly SQLInputValue[];
    if (returnsRows) {
      const rows: unknown[] = statement.all(...values);
      return { rows: (rowFrom ? (rows as Values[]).map(rowFrom) : rows) as R[] };
    }
    const { changes } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }

  /** Begins a transaction that holds the write lock. False while another process has it; call again until `stopWaiting`. */
  tryBegin(): boolean {
    const isNewTurn = performance.now() > this.#turnEndsAt;
    if (isNewTurn && !this.#turnstile?.tryEnter()) return false;
    try {
      this.run('begin immediate');
    } catch (error) {
      if (isSqliteBusy(error)) return false;
      this.stopWaiting();
      throw error;
    }
    if (isNewTurn) this.#turnEndsAt = performance.now() + TURN_MS;
    this.stopWaiting();
    return true;
  }

  stopWaiting(): void {
    this.#turnstile?.leave();
  }

  close(): void {
    this.#turnstile?.close();
    this.#database.close();
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known) return known;
    const statement = this.#database.prepare(sql);
    const columns = statement.columns().map(({ name }) => name);
    // A `*` may mean other columns tomorrow, when an instance of a later version has migrated the store.
    const namesColumns = columns.length > 0 && !sql.includes('*');
    statement.setReturnArrays(namesColumns);
    const rowFrom = namesColumns ? rowMaker(columns) : undefined;
    const prepared = { statement, returnsRows: columns.length > 0, rowFrom };
    // SQL texts vary only in the length of lists, so the limit is rarely reached; clearing is simpler than an LRU.
    if (this.#prepared.size >= MAX_STATEMENTS) this.#prepared.clear();
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}

/**
 * Rows of one shape, of which V8 knows where each column is. Those that node:sqlite makes are hash tables, for which it looks
 * up the name of each column anew: reading an order costs a quarter more with them.
 */
function rowMaker(columns: readonly string[]): (values: Values) => unknown {
  const blank: Record<string, SQLOutputValue> = Object.fromEntries(columns.map((name) => [name, null]));
  return (values) => {
    const row = { ...blank };
    for (let index = 0; index < columns.length; index += 1) row[columns[index]!] = values[index]!;
    return row;
  };
}

export const walBytesOf = (file: string): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
