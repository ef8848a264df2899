// Cache of encoded CRL entries, per shard. Entries published by other instances are fetched by CRL number; on any mismatch
// the shard is read again from the store, which is authoritative.

import type { CrlEntry, CrlHead } from '../../../domain/revocation/ports.ts';
import { type CrlRef, crlKey } from '../../../domain/revocation/revocation.ts';
import type { Repositories } from '../../../domain/store.ts';
import { encodeEntry } from './crl.ts';

/** Entries per read: a few megabytes at most. */
const PAGE = 5_000;
const MIN_BUFFER_BYTES = 4_096;

interface EncodedEntries {
  /** The number of the CRL that lists exactly these entries. */
  readonly number: number;
  readonly count: number;
  /** The entries are the first `length` bytes; the rest is spare capacity. */
  readonly bytes: Buffer;
  readonly length: number;
}

export const NO_ENTRIES: EncodedEntries = { number: 0, count: 0, bytes: Buffer.alloc(0), length: 0 };

/** Writes only behind the given entries, so the old value stays valid unless the result is cached. */
export function appendEntries(entries: EncodedEntries, added: readonly CrlEntry[]): EncodedEntries {
  const encoded = added.map(encodeEntry);
  let length = entries.length;
  for (const one of encoded) length += one.length;
  let { bytes } = entries;
  if (length > bytes.length) {
    bytes = Buffer.alloc(Math.max(MIN_BUFFER_BYTES, 2 * length));
    entries.bytes.copy(bytes, 0, 0, entries.length);
  }
  let position = entries.length;
  for (const one of encoded) {
    bytes.set(one, position);
    position += one.length;
  }
  return { number: entries.number, count: entries.count + added.length, bytes, length };
}

export function crlEntryCache({ revokedSerials }: Pick<Repositories, 'revokedSerials'>) {
  const cache = new Map<string, EncodedEntries>();

  /** Brings the cached entries up to the CRL's number. Undefined when they must be read from the store. */
  async function catchUp(head: CrlHead): Promise<EncodedEntries | undefined> {
    const entries = cache.get(crlKey(head));
    // A lower number means that the store was restored from a backup.
    if (!entries || entries.number > head.number) return undefined;
    if (entries.number === head.number) return entries;
    const changes = await revokedSerials.listedBetween(head, entries.number, head.number, PAGE);
    if (changes.length === PAGE || changes.some(({ wasListed }) => wasListed)) return undefined;
    const current = appendEntries({ ...entries, number: head.number }, changes);
    // Differs when the other instance dropped expired certificates.
    return current.count === head.entries ? current : undefined;
  }

  async function read(head: CrlHead, expiredBefore: number): Promise<EncodedEntries> {
    let entries: EncodedEntries = { ...NO_ENTRIES, number: head.number };
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await revokedSerials.page(head, { upTo: head.number, expiredBefore, after, limit: PAGE });
      entries = appendEntries(entries, page);
      after = page.length < PAGE ? undefined : page.at(-1)?.serial;
    }
    return entries;
  }

  return {
    /** The entries of the published CRL, from the cache where possible. */
    async get(head: CrlHead): Promise<EncodedEntries> {
      return (await catchUp(head)) ?? (await read(head, head.expiredBefore));
    },
    /** Reads the entries of the published CRL from the store, without certificates that expired before that time. */
    read,
    set(crl: CrlRef, entries: EncodedEntries): void {
      cache.set(crlKey(crl), entries);
    },
  };
}
