// Many transactions, one fsync. Concurrent transactions run one after another as savepoints of a single
// BEGIN IMMEDIATE … COMMIT, and none resolves before that COMMIT is on disk. One that fails is rolled back to its
// savepoint and fails alone; a disk that fails takes the whole group with it, so nothing is acknowledged that is
// not durable.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { FifoLock } from './fifo-lock.ts';
import { isSqliteBusy, type SqliteConnection } from './sqlite-connection.ts';

export interface GroupCommitLimits {
  /** Transactions that may wait for the writer; beyond, the service is busy. */
  readonly maxWaiting: number;
  /** How long one waits for its turn, or for another process to release the file. */
  readonly maxWaitMs: number;
  /** A transaction that holds the writer longer is rolled back: everyone else waits behind it. */
  readonly maxHoldMs: number;
}

export const DEFAULT_LIMITS: GroupCommitLimits = { maxWaiting: 4_096, maxWaitMs: 5_000, maxHoldMs: 10_000 };
const BUSY_RETRY_MS = 5;

/** The store could not finish, and everything in this transaction is undone. */
export class RolledBack extends Error {}

interface Group {
  readonly committed: PromiseWithResolvers<void>;
  size: number;
  commitScheduled: boolean;
}

export interface Ticket {
  readonly group: Group;
  readonly deadline: NodeJS.Timeout;
  isOpen: boolean;
  /** A statement failed: as in PostgreSQL, nothing but a rollback can follow. */
  hasFailed: boolean;
}

export class GroupCommit {
  readonly #writer: SqliteConnection;
  readonly #limits: GroupCommitLimits;
  readonly #lock: FifoLock;
  readonly #onCommit: (groupSize: number) => void;
  #group: Group | undefined;

  constructor(writer: SqliteConnection, limits: GroupCommitLimits, onCommit: (groupSize: number) => void) {
    this.#writer = writer;
    this.#limits = limits;
    this.#lock = new FifoLock(limits.maxWaiting, limits.maxWaitMs);
    this.#onCommit = onCommit;
  }

  async begin(): Promise<Ticket> {
    await this.#lock.acquire();
    try {
      this.#dropDeadGroup();
      this.#group ??= await this.#openGroup();
      this.#writer.run('savepoint work');
      const ticket: Ticket = {
        group: this.#group,
        isOpen: true,
        hasFailed: false,
        deadline: setTimeout(() => this.rollback(ticket), this.#limits.maxHoldMs),
      };
      return ticket;
    } catch (error) {
      this.#dropDeadGroup();
      // A group that could be opened but not entered must still end, or it would keep the file's lock for ever.
      if (this.#group) this.#scheduleCommit(this.#group);
      this.#lock.release();
      throw error;
    }
  }

  /** Resolves when the group's COMMIT is on disk. */
  async commit(ticket: Ticket): Promise<void> {
    try {
      this.requireOpen(ticket);
      this.#writer.run('release work');
    } catch (error) {
      this.rollback(ticket);
      throw error;
    }
    ticket.group.size += 1;
    this.#finish(ticket);
    await ticket.group.committed.promise;
  }

  rollback(ticket: Ticket): void {
    if (!ticket.isOpen) return;
    try {
      // SQLite may have rolled everything back by itself (disk full, I/O error): then there is no savepoint left.
      if (this.#writer.inTransaction) {
        this.#writer.run('rollback to work');
        this.#writer.run('release work');
      }
    } catch {
      // What cannot be undone alone is undone together: the group's other members are told that they failed.
      this.#abandonGroup();
    }
    this.#dropDeadGroup();
    this.#finish(ticket);
  }

  requireOpen(ticket: Ticket): void {
    if (!ticket.isOpen) throw new RolledBack(`the transaction took longer than ${this.#limits.maxHoldMs} ms`);
    if (ticket.hasFailed) throw new RolledBack('a statement of the transaction had failed');
    // A statement after SQLite rolled back by itself would be a transaction of its own, committed at once.
    if (!this.#writer.inTransaction) throw new RolledBack('SQLite rolled the transaction back');
  }

  /** Waits until nothing is under way. */
  async drain(): Promise<void> {
    await this.#lock.acquireUnbounded();
    this.#lock.release();
    await this.#group?.committed.promise.catch(() => {});
  }

  async #openGroup(): Promise<Group> {
    this.#writer.requireFile();
    // Left over from a rollback that failed: until it succeeds, nothing can begin.
    if (this.#writer.inTransaction) this.#writer.run('rollback');
    const deadline = performance.now() + this.#limits.maxWaitMs;
    for (;;) {
      try {
        this.#writer.run('begin immediate');
        break;
      } catch (error) {
        // SQLite's own busy handler would sleep in this thread and stop every other request.
        if (!isSqliteBusy(error) || performance.now() > deadline) throw error;
        await sleep(BUSY_RETRY_MS);
      }
    }
    const group = { committed: Promise.withResolvers<void>(), size: 0, commitScheduled: false };
    // Whoever waits for the group sees its rejection; a group in which nobody is left must not end the process.
    group.committed.promise.catch(() => {});
    return group;
  }

  #finish(ticket: Ticket): void {
    ticket.isOpen = false;
    clearTimeout(ticket.deadline);
    this.#lock.release();
    this.#scheduleCommit(ticket.group);
  }

  /** The first to finish queues the commit behind everyone who waits already; they all share it. */
  #scheduleCommit(group: Group): void {
    if (group.commitScheduled || group !== this.#group) return;
    group.commitScheduled = true;
    void setImmediate()
      // Not bounded like the others: were the commit refused its turn, its members would wait for ever.
      .then(() => this.#lock.acquireUnbounded())
      .then(() => {
        this.#commitGroup(group);
        this.#lock.release();
      });
  }

  #commitGroup(group: Group): void {
    this.#dropDeadGroup();
    if (this.#group !== group) return;
    this.#group = undefined;
    try {
      this.#writer.run('commit');
      group.committed.resolve();
      if (group.size > 0) this.#onCommit(group.size);
    } catch (error) {
      group.committed.reject(error);
      this.#abandonGroup();
    }
  }

  /** Must not throw: whoever calls it holds the lock, or has an error of its own to tell. */
  #abandonGroup(): void {
    try {
      if (this.#writer.inTransaction) this.#writer.run('rollback');
    } catch {
      // The next group tries again, and is refused if that fails too.
    }
  }

  /** SQLite rolls the whole transaction back by itself when the disk fails: then everyone in the group failed. */
  #dropDeadGroup(): void {
    if (!this.#group || this.#writer.inTransaction) return;
    this.#group.committed.reject(new RolledBack('SQLite rolled the transaction back'));
    this.#group = undefined;
  }
}
