// Publishes lists of revocations: at once when one is due to show something new, and once a day in any case. The store
// keeps the last one of each; whoever publishes the next says which one it replaces, so that of several instances one
// wins and the others look again.
//
// Numbers: one more than the last, or the milliseconds since 1970, whichever is larger. The first keeps them growing
// while clocks go back; the second keeps them growing when the store is restored from a backup that is older than the
// last list somebody has seen.

import type { Clock } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import type { ListHead, PublishedList, PublishLists } from '../../../domain/revocation/ports.ts';
import { type ListRef, listKey } from '../../../domain/revocation/revocation.ts';
import type { Store } from '../../../domain/store.ts';
import { crlUrl } from '../issuers.ts';
import { listToBeSigned } from './crl.ts';
import { type Entries, listEntries, withAdded } from './list-entries.ts';
import type { StatusSigner, StatusSigners } from './signers.ts';

const DAY_MS = 86_400_000;
/** Every list is made anew once a day, and good for a week: six days are left to notice that nobody does it. */
export const RENEW_AFTER_MS = DAY_MS;
export const LIST_LIFE_MS = 7 * DAY_MS;
/** A list from later than this was made by a clock that was wrong. */
const MAX_AHEAD_MS = 300_000;
/** More addresses than anyone changes to in the life of a certificate. */
const MAX_ADDRESSES = 16;
const NEW_AT_ONCE = 5_000;
const MAX_PASSES = 50;
const LISTS_AT_ONCE = 1_000;

export interface ListPublisher {
  /** Resolves when the lists show everything that is recorded. */
  readonly publish: PublishLists;
  /** The published one, made first if there is none, or if its time has come. Undefined when there can be none. */
  serve(list: ListRef): Promise<PublishedList | undefined>;
  /** Whatever is due, in all lists. Returns how many were published. */
  publishDue(): Promise<number>;
}

export interface PublisherTools {
  readonly store: Store;
  readonly now: Clock;
  readonly signers: () => StatusSigners;
  readonly withLock: <T>(key: string, work: () => Promise<T>) => Promise<T>;
}

export const isDue = ({ thisUpdate }: Pick<ListHead, 'thisUpdate'>, now: number): boolean =>
  thisUpdate + RENEW_AFTER_MS <= now || thisUpdate > now + MAX_AHEAD_MS;

export function listPublisher({ store, now, signers, withLock }: PublisherTools): ListPublisher {
  const entries = listEntries(store);
  const served = new Map<string, PublishedList>();

  function signerOf({ issuerId, shard }: ListRef): StatusSigner | undefined {
    const signer = signers().get(issuerId);
    // Whose certificates have all ended needs no list any more.
    return signer && shard >= 0 && shard < signer.shards && signer.notAfter >= now() ? signer : undefined;
  }

  /** One step towards a list that shows everything; false when it does already. */
  async function pass(list: ListRef, signer: StatusSigner): Promise<boolean> {
    const at = now();
    const head = await store.revocationLists.head(list);
    const news = await store.revokedSerials.unlisted(list, NEW_AT_ONCE);
    const addresses = addressesOf(list, signer, await store.pkiAddresses.list(MAX_ADDRESSES));
    const isRenewal = head === undefined || isDue(head, at) || head.addresses !== addresses.join(' ');
    if (!isRenewal && news.length === 0) return false;
    // RFC 5280, 3.3: what has ended leaves a list only after one that was made since has shown it.
    // One from a clock that was ahead does not say what has ended.
    const endedBefore = Math.min(at, (isRenewal ? head?.thisUpdate : head?.endedBefore) ?? 0);
    const isAnew = isRenewal || news.some(({ isKnown }) => isKnown);
    const added = news.filter(({ isKnown }) => !isKnown);
    const shown = withAdded(await before(head, endedBefore, isAnew), added);
    const next: ListHead = {
      ...{ issuerId: list.issuerId, shard: list.shard },
      number: Math.max((head?.number ?? 0) + 1, at),
      thisUpdate: at,
      nextUpdate: at + LIST_LIFE_MS,
      entries: shown.count,
      endedBefore,
      addresses: addresses.join(' '),
    };
    const der = await signer.signed(
      listToBeSigned({
        ...next,
        addresses,
        algorithm: signer.algorithm,
        issuer: signer.name,
        issuerKeyId: signer.keyId,
        entries: shown.bytes.subarray(0, shown.length),
      }),
    );
    const isOurs = await store.transaction((tx) =>
      tx.revocationLists.publish({ ...next, der }, head?.number ?? null, news),
    );
    if (isOurs) entries.keep(list, { ...shown, number: next.number });
    return true;
  }

  async function before(head: ListHead | undefined, endedBefore: number, isAnew: boolean): Promise<Entries> {
    if (!head) return entries.none;
    return isAnew ? await entries.readAnew(head, endedBefore) : await entries.of(head);
  }

  function bringUpToDate(list: ListRef): Promise<number> {
    const signer = signerOf(list);
    if (!signer) return Promise.resolve(0);
    return withLock(`crl ${listKey(list)}`, async () => {
      for (let passes = 0; passes < MAX_PASSES; passes += 1) if (!(await pass(list, signer))) return passes;
      throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    });
  }

  async function whole(list: ListRef, { number }: ListHead): Promise<PublishedList | undefined> {
    const kept = served.get(listKey(list));
    if (kept?.number === number) return kept;
    const found = await store.revocationLists.find(list);
    if (found) served.set(listKey(list), found);
    return found;
  }

  /** One that fails keeps nobody else waiting; what failed is told in the end. */
  async function bringAllUpToDate(lists: readonly ListRef[]): Promise<number> {
    const outcomes: PromiseSettledResult<number>[] = [];
    for (const list of new Map(lists.map((one) => [listKey(one), one])).values()) {
      outcomes.push(...(await Promise.allSettled([bringUpToDate(list)])));
    }
    const failed = outcomes.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    return outcomes.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0);
  }

  return {
    async publish(lists) {
      await bringAllUpToDate(lists);
    },

    async serve(list) {
      const head = await store.revocationLists.head(list);
      if (head && !isDue(head, now())) return await whole(list, head);
      await bringUpToDate(list).catch((error) => {
        // One that is a day old is better than none while the store is busy.
        if (!head || !(error instanceof Refusal)) throw error;
      });
      const next = await store.revocationLists.head(list);
      return next && (await whole(list, next));
    },

    async publishDue() {
      const urls = await store.pkiAddresses.list(MAX_ADDRESSES);
      const heads = await store.revocationLists.heads();
      const late = heads.filter((one) => {
        const signer = signerOf(one);
        return signer && (isDue(one, now()) || one.addresses !== addressesOf(one, signer, urls).join(' '));
      });
      return await bringAllUpToDate([...(await store.revokedSerials.unlistedLists(LISTS_AT_ONCE)), ...late]);
    },
  };
}

/** A root has one list with everything, and verifiers look for the root itself in it, which names no address. */
const addressesOf = ({ issuerId, shard }: ListRef, { isRoot }: StatusSigner, urls: readonly string[]): string[] =>
  isRoot ? [] : urls.map((url) => crlUrl(url, issuerId, shard));
