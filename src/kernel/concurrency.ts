// Concurrency within one process: a mutex per key, a fair semaphore, a map with bounded parallelism, batches, calls
// that are coalesced, and sweeps.

import { FairQueue } from './fair-queue.ts';

export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/**
 * Runs work with the same key in the order of calls, and work with different keys in parallel; none before the call has
 * returned. A queue exists only while its key is at work; the number of requests served at once bounds its length.
 */
export function keyedMutex(): KeyedMutex {
  /** Of each key at work: what begins the next work. */
  const waiting = new Map<string, (() => void)[]>();
  return async (key, work) => {
    const queue = waiting.get(key);
    if (!queue) waiting.set(key, []);
    await (queue && new Promise<void>((begin) => queue.push(begin)));
    try {
      return await work();
    } finally {
      const begin = waiting.get(key)?.shift();
      if (begin) begin();
      else waiting.delete(key);
    }
  };
}

/**
 * Permits that are shared out fairly across keys. A key never holds more than it leaves free, so that slow work of one key
 * does not make the next key wait; those that wait are admitted in turn (round-robin), whatever their number.
 */
export class FairPermits {
  readonly #held = new Map<string, number>();
  /** No key in it may take a permit now. */
  readonly #waiting = new FairQueue<() => void>();
  #free: number;
  #isAdmitting = false;

  constructor(permits: number) {
    this.#free = permits;
  }

  /** Calls `begin` once the key has a permit: at once, if it may take one. */
  take(key: string, begin: () => void): void {
    if (this.#mayTake(key)) this.#grant(key, begin);
    else this.#waiting.push(key, () => this.#grant(key, begin));
  }

  release(key: string): void {
    const held = this.#count(key);
    if (held > 1) this.#held.set(key, held - 1);
    else this.#held.delete(key);
    this.#free += 1;
    // Work that ends at once releases its permit in here: the loop below goes on, instead of one within the other.
    if (this.#isAdmitting || this.#waiting.size === 0) return;
    this.#isAdmitting = true;
    try {
      for (let grant = this.#next(); grant; grant = this.#next()) grant();
    } finally {
      this.#isAdmitting = false;
    }
  }

  #next(): (() => void) | undefined {
    return this.#waiting.shift(this.#mayTake);
  }

  readonly #mayTake = (key: string): boolean => this.#count(key) < this.#free;

  #count(key: string): number {
    return this.#held.get(key) ?? 0;
  }

  #grant(key: string, begin: () => void): void {
    this.#free -= 1;
    this.#held.set(key, this.#count(key) + 1);
    begin();
  }
}

export type FairSemaphore = (key: string) => Promise<Disposable>;

/** FairPermits to wait for. Dispose of the result to release the permit. */
export function fairSemaphore(permits: number): FairSemaphore {
  const fair = new FairPermits(permits);
  return (key) =>
    new Promise((resolve) => fair.take(key, () => resolve({ [Symbol.dispose]: () => fair.release(key) })));
}

export interface KeyCounts {
  count(key: string): number;
  /** Counts each key once more, until disposed of. */
  add(keys: readonly string[]): Disposable;
}

/** Drops a key when its count is zero; otherwise every key ever seen would stay in memory. */
export function keyCounts(): KeyCounts {
  const counts = new Map<string, number>();
  const count = (key: string) => counts.get(key) ?? 0;
  return {
    count,
    add(keys) {
      for (const key of keys) counts.set(key, count(key) + 1);
      return {
        [Symbol.dispose]() {
          for (const key of keys) {
            if (count(key) > 1) counts.set(key, count(key) - 1);
            else counts.delete(key);
          }
        },
      };
    },
  };
}

/** Maps `items` with at most `limit` calls of `work` at once. Results are in the order of the items. */
export async function mapLimit<Item, Result>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const [only] = items;
  if (only !== undefined && items.length === 1) return [await work(only)];
  if (items.length <= limit) return await Promise.all(items.map(work));
  const results: Result[] = [];
  const queue = items.entries();
  async function worker(): Promise<void> {
    for (const [index, item] of queue) results[index] = await work(item);
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

export type InBatch = <T>(work: () => T) => Promise<T>;

/**
 * Runs synchronous work in batches: everything that was queued by the end of an event-loop turn runs back to back, for
 * `turnMs` at most. Alike computations one after another keep the processor's caches warm.
 */
export function batches(turnMs: number): InBatch {
  const queue: (() => void)[] = [];
  function run(): void {
    const endsAt = performance.now() + turnMs;
    let done = 0;
    do queue[done++]?.();
    while (done < queue.length && performance.now() < endsAt);
    queue.splice(0, done);
    if (queue.length > 0) setImmediate(run);
  }
  return (work) =>
    new Promise((resolve, reject) => {
      if (queue.length === 0) setImmediate(run);
      queue.push(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
}

/** Runs `work` at once, then at most once per `everyMs`, the last time after the last call. */
export function coalesce(work: () => void, everyMs: number): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isDue = false;
  return function call() {
    isDue = timer !== undefined;
    if (isDue) return;
    work();
    timer = setTimeout(() => {
      timer = undefined;
      if (isDue) call();
    }, everyMs);
  };
}

/** Returns what starts a sweep every `everyMs`, unless one runs; it ends when `sweep` returns false. Keeps no process alive. */
export function sweeper(everyMs: number, sweep: () => boolean): () => void {
  let timer: NodeJS.Timeout | undefined;
  return () => {
    timer ??= setInterval(() => {
      if (sweep()) return;
      clearInterval(timer);
      timer = undefined;
    }, everyMs).unref();
  };
}
