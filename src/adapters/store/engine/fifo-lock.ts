// FIFO mutex with a bounded queue and a bounded wait.

export class LockTimeout extends Error {}

interface Waiter {
  grant(): void;
}

export class FifoLock {
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #waiting = new Set<Waiter>();
  #held = false;

  constructor(maxWaiting: number, maxWaitMs: number) {
    this.#maxWaiting = maxWaiting;
    this.#maxWaitMs = maxWaitMs;
  }

  get hasWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Waits without a bound: for the few callers that other waiters depend on. */
  acquireUnbounded(): Promise<void> {
    if (this.#takeIfFree()) return Promise.resolve();
    return new Promise((grant) => {
      this.#waiting.add({ grant });
    });
  }

  /** Rejects with LockTimeout when the queue is full or the wait exceeds its limit. */
  acquire(): Promise<void> {
    if (this.#takeIfFree()) return Promise.resolve();
    if (this.#waiting.size >= this.#maxWaiting) {
      return Promise.reject(new LockTimeout(`the queue for the writer is full (${this.#maxWaiting})`));
    }
    return new Promise((resolve, reject) => {
      const waiter = {
        grant: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(waiter);
        reject(new LockTimeout(`the writer was not free within ${this.#maxWaitMs} ms`));
      }, this.#maxWaitMs);
      this.#waiting.add(waiter);
    });
  }

  release(): void {
    // A Set iterates in insertion order: first in, first out.
    const [next] = this.#waiting;
    if (!next) {
      this.#held = false;
      return;
    }
    this.#waiting.delete(next);
    next.grant();
  }

  #takeIfFree(): boolean {
    if (this.#held) return false;
    this.#held = true;
    return true;
  }
}
