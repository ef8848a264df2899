// One connection to an SQLite file: pragmas, prepared statements, and what SQLite's own codes mean.
import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { QueryResult } from 'kysely';

// Waiting inside SQLite blocks the event loop. Opening may: another process could be recovering the log. A read may
// for a moment, in the rare cases in which the log keeps readers out; a write never does.
const OPEN_WAIT_MS = 5_000;
const READ_WAIT_MS = 100;
const MAX_STATEMENTS = 500;
// The two MiB that SQLite takes by itself do not hold the upper pages of a few indexes.
const CACHE_KIB = 64 * 1024;
/** At 4 KiB each; a start after a crash reads the log once. */
const LOG_PAGES = 4_000;

interface Prepared {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
}

export class SqliteConnection {
  readonly #file: string;
  readonly #inode: number;
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(file: string, mode: 'read' | 'write' | 'migrate') {
    this.#file = file;
    this.#database = new DatabaseSync(file, {
      timeout: OPEN_WAIT_MS,
      readOnly: mode === 'read',
      enableForeignKeyConstraints: mode !== 'migrate',
    });
    this.#inode = statSync(file).ino;
    if (mode !== 'read') {
      // FULL: the log is synced to the disk at every commit, before the commit returns. NORMAL would lose
      // acknowledged commits on power loss.
      this.#database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 0');
      // What is deleted is overwritten in the file, as far as that costs no write of its own.
      this.#database.exec('pragma secure_delete = fast');
      // Pages that many transactions touch are copied from the log into the file once instead of every few commits.
      this.#database.exec(`pragma cache_size = -${CACHE_KIB}; pragma wal_autocheckpoint = ${LOG_PAGES}`);
    } else {
      this.#database.exec(`pragma busy_timeout = ${READ_WAIT_MS}`);
    }
  }

  /** A file that was deleted or replaced below us can still be written to, and everything written would be gone. */
  requireFile(): void {
    if (statSync(this.#file, { throwIfNoEntry: false })?.ino === this.#inode) return;
    throw Object.assign(new Error('the database file was deleted or replaced'), { errcode: PRIMARY_CODES.cannotOpen });
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  run<R>(sql: string, parameters: readonly unknown[] = []): QueryResult<R> {
    const { statement, returnsRows } = this.#prepare(sql);
    const values = parameters as readonly SQLInputValue[];
    if (returnsRows) return { rows: statement.all(...values) as R[] };
    const { changes } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }

  close(): void {
    this.#database.close();
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known) return known;
    const statement = this.#database.prepare(sql);
    const prepared = { statement, returnsRows: statement.columns().length > 0 };
    // Texts vary only in the length of lists, so the bound is rarely met; dropping all is simpler than an LRU.
    if (this.#prepared.size >= MAX_STATEMENTS) this.#prepared.clear();
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}

/** The primary result codes that speak of the file and the machine, not of the statement. */
const PRIMARY_CODES = {
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const;

/** Another process holds the write lock: worth another try in a moment. */
export const isSqliteBusy = (error: unknown): boolean => primaryCode(error) === PRIMARY_CODES.busy;

/** The disk, the lock or the memory failed us, not the statement: the same call may succeed later. */
export const isSqliteUnavailable = (error: unknown): boolean =>
  Object.values(PRIMARY_CODES).some((code) => code === primaryCode(error));

function primaryCode(error: unknown): number | undefined {
  const extended = (error as { errcode?: unknown }).errcode;
  return typeof extended === 'number' ? extended & 0xff : undefined;
}
