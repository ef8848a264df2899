// Work on the same thing in the order of asking, work on different things at once. A queue for each thing, kept only
// while somebody is in it; how long one may be is bounded by the requests served at once.

export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export function keyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    last.set(key, mine);
    const forget = () => {
      if (last.get(key) === mine) last.delete(key);
    };
    mine.then(forget, forget);
    return mine;
  };
}
