// A queue that is fair across keys: they take turns, whatever the number of their items. It has no bound of its own; who
// bounds it drops from the longest, so that a key that floods it displaces nothing but its own items.

export class FairQueue<Item> {
  /** Next key first. No list is empty. */
  readonly #byKey = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(key: string, item: Item): void {
    const items = this.#byKey.get(key) ?? [];
    items.push(item);
    this.#byKey.set(key, items);
    this.#size += 1;
  }

  /** Removes and returns the oldest item of the key whose turn it is, of those that may take one. */
  shift(mayTake: (key: string) => boolean = () => true): Item | undefined {
    for (const [key, items] of this.#byKey) {
      if (!mayTake(key)) continue;
      // Re-insertion moves the key behind all others.
      this.#byKey.delete(key);
      if (items.length > 1) this.#byKey.set(key, items);
      this.#size -= 1;
      return items.shift();
    }
    return undefined;
  }

  /** Removes and returns the newest item of the key with the most; of several such keys, of the one that came last. */
  dropLongest(): Item | undefined {
    let longest: [string, Item[]] | undefined;
    for (const entry of this.#byKey) if (entry[1].length >= (longest?.[1].length ?? 0)) longest = entry;
    if (!longest) return undefined;
    const [key, items] = longest;
    if (items.length === 1) this.#byKey.delete(key);
    this.#size -= 1;
    return items.pop();
  }
}
