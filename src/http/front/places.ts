// Places for work, shared fairly between keys: accounts, or the networks of strangers. A key may hold as many places as then
// are free: one that floods takes half of them, k that flood take k parts of k + 1, and a newcomer finds a free place. Work
// beyond that waits in the queue of its key, and the queues take turns. While the processor is the bottleneck, more work at
// once only makes all of it slower, so a key then holds a few places at most. No timers: the owner calls `sweep`.

/** Neither may call back at once: a queue would become a stack. */
export interface Waiter {
  /** It holds a place now. */
  admit(): void;
  /** It waited too long; `isOwnShare` as in `isShareUsed`. */
  refuse(isOwnShare: boolean): void;
}

interface Waiting {
  readonly waiter: Waiter;
  readonly since: number;
}

/** Enough to keep a processor busy, and to share one fsync. */
const FEW = 32;

export class Places {
  readonly #isSaturated: () => boolean;
  #free: number;
  #freeInQueue: number;
  readonly #held = new Map<string, number>();
  /** By key, the next to be served first. No queue is empty. */
  readonly #queues = new Map<string, Waiting[]>();

  /** As many may wait as there are places. */
  constructor(count: number, isSaturated: () => boolean = () => false) {
    this.#isSaturated = isSaturated;
    this.#free = count;
    this.#freeInQueue = count;
  }

  get hasWaiters(): boolean {
    return this.#queues.size > 0;
  }

  /** False if the work must wait. */
  take(key: string): boolean {
    // Others of the same key that wait were here first.
    return !this.#queues.has(key) && this.#hold(key);
  }

  #hold(key: string): boolean {
    const held = this.#held.get(key) ?? 0;
    if (held >= this.#free || (held >= FEW && this.#isSaturated())) return false;
    this.#held.set(key, held + 1);
    this.#free -= 1;
    return true;
  }

  /** Whether the key holds all that it may, and others would find a place. Otherwise there is none, or too little processor. */
  isShareUsed(key: string): boolean {
    return this.#free > 0 && (this.#held.get(key) ?? 0) >= this.#free;
  }

  /** Call after `take` failed. False if the queue has no room for more of this key. */
  wait(key: string, waiter: Waiter, since: number): boolean {
    const queue = this.#queues.get(key) ?? [];
    if (queue.length >= this.#freeInQueue) return false;
    queue.push({ waiter, since });
    this.#queues.set(key, queue);
    this.#freeInQueue -= 1;
    return true;
  }

  release(key: string): void {
    const held = this.#held.get(key) ?? 0;
    if (held > 1) this.#held.set(key, held - 1);
    else this.#held.delete(key);
    this.#free += 1;
    while (this.#queues.size > 0 && this.#admitNext());
  }

  /** False if no queue may have a place. */
  #admitNext(): boolean {
    for (const [key, queue] of this.#queues) {
      if (!this.#hold(key)) continue;
      this.#shift(key, queue)?.admit();
      return true;
    }
    return false;
  }

  /** Removes the first of a queue, and puts the queue behind all others. */
  #shift(key: string, queue: Waiting[]): Waiter | undefined {
    this.#freeInQueue += 1;
    this.#queues.delete(key);
    const first = queue.shift();
    if (queue.length > 0) this.#queues.set(key, queue);
    return first?.waiter;
  }

  /** Refuses everything that has waited since before `time`, and admits what could not be when a place became free. */
  sweep(time: number): void {
    for (const [key, queue] of [...this.#queues]) {
      while (queue[0] && queue[0].since < time) this.#shift(key, queue)?.refuse(this.isShareUsed(key));
    }
    while (this.#queues.size > 0 && this.#admitNext());
  }
}
