// Group commit: many transactions, one fsync. Concurrent transactions run one after another in a single BEGIN IMMEDIATE …
// COMMIT, and none resolves before that COMMIT is on disk. A failed transaction is undone and fails alone; a disk failure
// fails the whole group, so nothing is acknowledged that is not durable.
//
// `begin` … `commit` is a transaction that awaits between its statements, within a savepoint. `run` is synchronous work:
// all that is queued in one event-loop turn runs back to back, and needs savepoints only when one of them fails.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { FifoLock, LockTimeout } from './fifo-lock.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

export interface GroupCommitLimits {
  /** Transactions that may queue for the writer; beyond that the store is unavailable. */
  readonly maxWaiting: number;
  /** Longest wait for the writer, or for another process to release the file. */
  readonly maxWaitMs: number;
  /** A transaction that holds the writer longer is rolled back, because all others queue behind it. */
  readonly maxHoldMs: number;
}

export const DEFAULT_LIMITS: GroupCommitLimits = { maxWaiting: 4_096, maxWaitMs: 5_000, maxHoldMs: 10_000 };
const BUSY_RETRY_MS = 1;
/** Works of one round: the event loop stands still meanwhile. */
const MAX_ROUND = 256;

/** The transaction could not be committed; all of it is undone. */
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

/** Synchronous work that waits for its round. It may be run twice: what the first run wrote is undone. */
interface Work {
  run(): void;
  /** After the commit. */
  succeed(): void;
  fail(error: unknown): void;
}

export class GroupCommit {
  readonly #writer: SqliteConnection;
  readonly #limits: GroupCommitLimits;
  readonly #lock: FifoLock;
  readonly #onCommit: (groupSize: number) => void;
  readonly #queue: Work[] = [];
  #group: Group | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(writer: SqliteConnection, limits: GroupCommitLimits, onCommit: (groupSize: number) => void) {
    this.#writer = writer;
    this.#limits = limits;
    this.#lock = new FifoLock(limits.maxWaiting, limits.maxWaitMs);
    this.#onCommit = onCommit;
  }

  /** Runs `work` as a transaction of its own; resolves with its result when that is on disk. */
  run<T>(work: (writer: SqliteConnection) => T): Promise<T> {
    if (this.#queue.length >= this.#limits.maxWaiting) {
      return Promise.reject(new LockTimeout(`the queue for the writer is full (${this.#limits.maxWaiting})`));
    }
    return new Promise((resolve, reject) => {
      let result: T;
      this.#queue.push({
        run: () => {
          result = work(this.#writer);
        },
        succeed: () => resolve(result),
        fail: reject,
      });
      if (this.#queue.length === 1) this.#round = setImmediate().then(() => this.#runQueue());
    });
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
      // A group that was opened but not joined must still end, or it would hold the file's write lock forever.
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
    this.#undoSavepoint();
    this.#dropDeadGroup();
    this.#finish(ticket);
  }

  #undoSavepoint(): void {
    try {
      // After a disk failure SQLite may have rolled back the whole transaction, savepoints included.
      if (this.#writer.inTransaction) {
        this.#writer.run('rollback to work');
        this.#writer.run('release work');
      }
    } catch {
      // If the savepoint cannot be rolled back, the whole group is, and its other members fail.
      this.#abandonGroup();
    }
  }

  requireOpen(ticket: Ticket): void {
    if (!ticket.isOpen) throw new RolledBack(`the transaction took longer than ${this.#limits.maxHoldMs} ms`);
    if (ticket.hasFailed) throw new RolledBack('a statement of the transaction had failed');
    this.#requireTransaction();
  }

  /** After an automatic rollback a statement would run, and commit, as a transaction of its own. */
  #requireTransaction(): void {
    if (!this.#writer.inTransaction) throw new RolledBack('SQLite rolled the transaction back');
  }

  /** Resolves once no transaction is in progress. */
  async drain(): Promise<void> {
    while (this.#queue.length > 0) await this.#round;
    await this.#lock.acquireUnbounded();
    this.#lock.release();
    await this.#group?.committed.promise.catch(() => {});
  }

  /** Never rejects: every work of the round succeeds or fails. */
  async #runQueue(): Promise<void> {
    try {
      await this.#lock.acquire();
    } catch (error) {
      for (const work of this.#queue.splice(0)) work.fail(error);
      return;
    }
    try {
      this.#dropDeadGroup();
      const isFresh = this.#group === undefined;
      try {
        this.#group ??= await this.#openGroup();
      } catch (error) {
        for (const work of this.#queue.splice(0)) work.fail(error);
        return;
      }
      const round = this.#queue.splice(0, MAX_ROUND);
      if (this.#queue.length > 0) this.#round = setImmediate().then(() => this.#runQueue());
      const group = isFresh ? await this.#runTogether(round, this.#group) : this.#runApart(round, this.#group);
      // Transactions that wait already share the commit.
      if (this.#lock.hasWaiting) this.#scheduleCommit(group);
      else this.#commitGroup(group);
    } finally {
      this.#lock.release();
    }
  }

  /** In a group without other members. Returns the group of those that succeeded. */
  async #runTogether(round: readonly Work[], group: Group): Promise<Group> {
    try {
      for (const work of round) {
        this.#requireTransaction();
        work.run();
      }
      this.#join(group, round);
      return group;
    } catch (error) {
      this.#abandonGroup();
      this.#group = undefined;
      const [only, ...others] = round;
      if (only && others.length === 0) {
        only.fail(error);
        return group;
      }
      // One of them has failed, or the disk. Each gets a savepoint, in a new group.
      try {
        this.#group = await this.#openGroup();
      } catch (failure) {
        for (const work of round) work.fail(failure);
        return group;
      }
      return this.#runApart(round, this.#group);
    }
  }

  #runApart(round: readonly Work[], group: Group): Group {
    for (const work of round) {
      try {
        this.#requireTransaction();
        this.#writer.run('savepoint work');
        work.run();
        this.#writer.run('release work');
        this.#join(group, [work]);
      } catch (error) {
        work.fail(error);
        this.#undoSavepoint();
      }
    }
    return group;
  }

  #join(group: Group, works: readonly Work[]): void {
    group.size += works.length;
    group.committed.promise.then(
      () => {
        for (const work of works) work.succeed();
      },
      (error) => {
        for (const work of works) work.fail(error);
      },
    );
  }

  async #openGroup(): Promise<Group> {
    this.#writer.requireFile();
    // A failed rollback leaves a transaction open; no group can begin until it is rolled back.
    if (this.#writer.inTransaction) this.#writer.run('rollback');
    this.#writer.requireRoom();
    const deadline = performance.now() + this.#limits.maxWaitMs;
    // SQLite's busy handler would block the event loop, hence this retry loop.
    while (!this.#writer.tryBegin()) {
      if (performance.now() > deadline) {
        this.#writer.stopWaiting();
        throw new LockTimeout(`another process did not release the database within ${this.#limits.maxWaitMs} ms`);
      }
      await sleep(BUSY_RETRY_MS);
    }
    const group = { committed: Promise.withResolvers<void>(), size: 0, commitScheduled: false };
    // Members see the rejection; without members it must not end the process as unhandled.
    group.committed.promise.catch(() => {});
    return group;
  }

  #finish(ticket: Ticket): void {
    ticket.isOpen = false;
    clearTimeout(ticket.deadline);
    this.#lock.release();
    this.#scheduleCommit(ticket.group);
  }

  /** The first member to finish queues the commit behind all transactions that already wait; they share it. */
  #scheduleCommit(group: Group): void {
    if (group.commitScheduled || group !== this.#group) return;
    group.commitScheduled = true;
    void setImmediate()
      // Unbounded: if the commit timed out in the queue, its members would wait forever.
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

  /** Never throws: callers hold the lock or have an error of their own to report. */
  #abandonGroup(): void {
    try {
      if (this.#writer.inTransaction) this.#writer.run('rollback');
    } catch {
      // openGroup retries the rollback.
    }
  }

  /** On a disk failure SQLite rolls back the whole transaction by itself: every member of the group has failed. */
  #dropDeadGroup(): void {
    if (!this.#group || this.#writer.inTransaction) return;
    this.#group.committed.reject(new RolledBack('SQLite rolled the transaction back'));
    this.#group = undefined;
  }
}
