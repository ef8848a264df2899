// A lock that is granted in the order of asking, with a bound on how many may wait and on how long.

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

  /** Waits however long it takes: for the few whose turn others depend on. */
  acquireUnbounded(): Promise<void> {
    if (this.#takeIfFree()) return Promise.resolve();
    return new Promise((grant) => {
      this.#waiting.add({ grant });
    });
  }

  /** Rejects with LockTimeout when the queue is full, or the wait was too long. */
  acquire(): Promise<void> {
    if (this.#takeIfFree()) return Promise.resolve();
    if (this.#waiting.size >= this.#maxWaiting) {
      return Promise.reject(new LockTimeout(`${this.#maxWaiting} are waiting already`));
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
        reject(new LockTimeout(`no turn within ${this.#maxWaitMs} ms`));
      }, this.#maxWaitMs);
      this.#waiting.add(waiter);
    });
  }

  release(): void {
    // A Set keeps the order of insertion, so the first one out is the first one in.
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
