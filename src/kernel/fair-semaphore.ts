// So many at once, and those who wait take turns by whom they are for: whoever asks a thousand things at once waits for
// the others after each of them, and nobody else waits for the thousand.

export function fairSemaphore(atOnce: number): (key: string) => Promise<Disposable> {
  let free = atOnce;
  /** In the order in which their turn comes; none of the queues is empty. */
  const waiting = new Map<string, (() => void)[]>();

  function release(): void {
    const [next] = waiting;
    if (!next) {
      free += 1;
      return;
    }
    const [key, queue] = next;
    const begin = queue.shift();
    waiting.delete(key);
    // Behind everybody else who waits.
    if (queue.length > 0) waiting.set(key, queue);
    begin?.();
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
