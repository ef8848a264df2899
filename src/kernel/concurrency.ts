// Concurrency within one process: a mutex per key, a fair semaphore, a map with bounded parallelism, batches, calls
// that are coalesced, and sweeps.

export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/**
 * Runs work with the same key in the order of calls, and work with different keys in parallel. A queue exists only
 * while it has entries; the number of requests served at once bounds its length.
 */
export function keyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const before = tails.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    tails.set(key, mine);
    const forget = () => {
      if (tails.get(key) === mine) tails.delete(key);
    };
    mine.then(forget, forget);
    return mine;
  };
}

/**
 * Semaphore with `permits` permits, fair across keys (round-robin): a key with a thousand waiters gets one permit, then
 * waits for every other key. Dispose of the result to release the permit.
 */
export function fairSemaphore(permits: number): (key: string) => Promise<Disposable> {
  let free = permits;
  /** Waiters by key, next key first. No queue is empty. */
  const waiting = new Map<string, (() => void)[]>();

  function release(): void {
    const [next] = waiting;
    if (!next) {
      free += 1;
      return;
    }
    const [key, queue] = next;
    const admit = queue.shift();
    // Re-insertion moves the key behind all others.
    waiting.delete(key);
    if (queue.length > 0) waiting.set(key, queue);
    admit?.();
  }

  return async (key) => {
    if (free > 0) free -= 1;
    else {
      const { promise, resolve } = Promise.withResolvers<void>();
      const queue = waiting.get(key) ?? [];
      queue.push(resolve);
      waiting.set(key, queue);
      await promise;
    }
    return { [Symbol.dispose]: release };
  };
}

/** Maps `items` with at most `limit` calls of `work` at once. Results are in the order of the items. */
export async function mapLimit<Item, Result>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
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
 * Runs synchronous work in batches: everything that was queued by the end of an event-loop turn runs back to back, at
 * most `limit` per turn. Alike computations one after another keep the processor's caches warm.
 */
export function batches(limit: number): InBatch {
  const queue: (() => void)[] = [];
  function run(): void {
    for (const work of queue.splice(0, limit)) work();
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
