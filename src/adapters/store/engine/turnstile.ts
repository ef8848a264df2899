// Turnstile in front of a database's write lock, so that processes take turns. SQLite gives the lock to the process that
// asks at the right moment: a busy one takes it again right after each commit, while the others poll. A process that
// waits for the lock holds the turnstile meanwhile, and the last writer cannot pass it before. The operating system opens
// the turnstile when a process dies. Only fairness depends on it: the write lock stays SQLite's.
import { DatabaseSync } from 'node:sqlite';
import { isSqliteBusy } from './sqlite-errors.ts';

export class Turnstile {
  readonly #database: DatabaseSync;
  #isHeld = false;

  /** The lock is that of an empty database beside the one it is for. */
  constructor(file: string) {
    this.#database = new DatabaseSync(`${file}-turn`, { timeout: 0 });
    // A lock of an empty database creates its first page, and so a journal: as a file, that would add two changes of the
    // folder to what the next fsync of the WAL waits for.
    this.#database.exec('pragma journal_mode = memory');
  }

  /** False while another process waits for the write lock. */
  tryEnter(): boolean {
    try {
      if (!this.#isHeld) this.#database.exec('begin immediate');
      this.#isHeld = true;
    } catch (error) {
      if (!isSqliteBusy(error)) throw error;
    }
    return this.#isHeld;
  }

  leave(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#database.exec('rollback');
  }

  close(): void {
    this.#database.close();
  }
}
