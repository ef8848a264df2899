// The entries of each list as this process knows them, encoded one after the other. What another instance has added
// is caught up with by number; what does not add up is read anew from the store, which alone is the truth.

import type { ListedSerial, ListHead } from '../../../domain/revocation/ports.ts';
import { type ListRef, listKey } from '../../../domain/revocation/revocation.ts';
import type { Repositories } from '../../../domain/store.ts';
import { listEntry } from './crl.ts';

/** Read from the store at once: a few megabytes at most. */
const PAGE = 5_000;
const FIRST_BYTES = 4_096;

export interface Entries {
  /** Of the list that shows exactly these. */
  readonly number: number;
  readonly count: number;
  /** The first `length` bytes are the entries; behind them is room for more. */
  readonly bytes: Buffer;
  readonly length: number;
}

const NONE: Entries = { number: 0, count: 0, bytes: Buffer.alloc(0), length: 0 };

/** The bytes before are not touched: as long as nobody keeps the result, nothing has changed. */
export function withAdded(entries: Entries, added: readonly ListedSerial[]): Entries {
  const encoded = added.map(listEntry);
  let length = entries.length;
  for (const one of encoded) length += one.length;
  let { bytes } = entries;
  if (length > bytes.length) {
    bytes = Buffer.alloc(Math.max(FIRST_BYTES, 2 * length));
    entries.bytes.copy(bytes, 0, 0, entries.length);
  }
  let position = entries.length;
  for (const one of encoded) {
    bytes.set(one, position);
    position += one.length;
  }
  return { number: entries.number, count: entries.count + added.length, bytes, length };
}

export function listEntries({ revokedSerials }: Pick<Repositories, 'revokedSerials'>) {
  const kept = new Map<string, Entries>();

  async function caughtUp(head: ListHead): Promise<Entries | undefined> {
    const entries = kept.get(listKey(head));
    // A number that went back: the store was restored under us.
    if (!entries || entries.number > head.number) return undefined;
    if (entries.number === head.number) return entries;
    const news = await revokedSerials.listedBetween(head, entries.number, head.number, PAGE);
    if (news.length === PAGE || news.some(({ isKnown }) => isKnown)) return undefined;
    const now = withAdded({ ...entries, number: head.number }, news);
    // The other one may have left out what has ended.
    return now.count === head.entries ? now : undefined;
  }

  async function readAnew(head: ListHead, endedBefore: number): Promise<Entries> {
    let entries: Entries = { ...NONE, number: head.number };
    for (let after = ''; ; ) {
      const page = await revokedSerials.page(head, head.number, endedBefore, after, PAGE);
      entries = withAdded(entries, page);
      if (page.length < PAGE) return entries;
      after = page.at(-1)!.serial;
    }
  }

  return {
    none: NONE,
    /** Those of the published list, as cheaply as they can be had. */
    async of(head: ListHead): Promise<Entries> {
      return (await caughtUp(head)) ?? (await readAnew(head, head.endedBefore));
    },
    /** Those of the published list, without certificates that have ended before that moment. */
    readAnew,
    keep(list: ListRef, entries: Entries): void {
      kept.set(listKey(list), entries);
    },
  };
}
