// Publishes CRLs: at once when there is a new revocation, and once a day in any case. The store keeps the latest CRL of
// each shard. Publishing is a compare and swap on its number: one instance wins, the others read again.
//
// CRL number: the largest of the last number plus one, the time, and what follows the numbers served from this data folder.
// The first keeps numbers growing when a clock goes back, the others when the store is restored from a backup older than the
// last published CRL. A CRL that cannot be signed here is never served with a lower number.

import { backdated } from '../../../domain/certificate/validity.ts';
import type { Clock } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import type { CrlHead, PublishCrls, PublishedCrl } from '../../../domain/revocation/ports.ts';
import { type CrlRef, crlKey } from '../../../domain/revocation/revocation.ts';
import type { Store } from '../../../domain/store.ts';
import type { KeyedMutex } from '../../../kernel/concurrency.ts';
import { DAY_MS, SECOND_MS } from '../../../kernel/durations.ts';
import { crlUrl } from '../issuers.ts';
import { crlToBeSigned } from './crl.ts';
import { appendEntries, crlEntryCache, NO_ENTRIES } from './crl-entries.ts';
import type { ServedNumbers } from './served-numbers.ts';
import type { StatusSigner, StatusSigners } from './signers.ts';

/** Renewed daily and valid for a week, which leaves six days to notice that publishing has stopped. */
export const RENEW_AFTER_MS = DAY_MS;
const CRL_LIFE_MS = 7 * DAY_MS;
/** A CRL from further in the future was made by a wrong clock, and is renewed. */
const MAX_AHEAD_MS = 300_000;
/** Bounds the base URLs in one CRL: more than an operator changes within the life of a certificate. */
const MAX_ADDRESSES = 16;
const MAX_CHANGES = 5_000;
const MAX_PASSES = 50;
const MAX_CRLS = 1_000;

export interface CrlPublisher {
  /** Resolves when the CRLs list every recorded revocation. */
  readonly publish: PublishCrls;
  /** The current CRL, published first when it is missing or due. Undefined when the issuer has none. */
  serve(crl: CrlRef): Promise<PublishedCrl | undefined>;
  /** Publishes every CRL that is due. Returns how many were published. */
  publishDue(): Promise<number>;
  /**
   * At a start the store may be older than what was published, after a restore of any kind: every CRL that can be signed here
   * becomes due. Returns what is wrong with the others.
   */
  takeUp(): Promise<string[]>;
}

/** Twice the time, so that CRLs are due for instances whose clock is behind as well. */
export const longDue = (now: number): number => now - 2 * RENEW_AFTER_MS;

interface PublisherTools {
  readonly store: Store;
  readonly now: Clock;
  readonly signers: () => StatusSigners;
  /** Looks for an issuer that another process may just have made. */
  readonly know: (issuerId: string) => Promise<void>;
  readonly withLock: KeyedMutex;
  readonly served: ServedNumbers;
  readonly onPublished: (crl: CrlHead, changes: number) => void;
}

const isDue = ({ thisUpdate }: Pick<CrlHead, 'thisUpdate'>, now: number): boolean =>
  thisUpdate + RENEW_AFTER_MS <= now || thisUpdate > now + MAX_AHEAD_MS;

export function crlPublisher(tools: PublisherTools): CrlPublisher {
  const { store, now, signers, know, withLock, served, onPublished } = tools;
  const entryCache = crlEntryCache(store);
  const crlCache = new Map<string, PublishedCrl>();

  function signerOf({ issuerId, shard }: CrlRef): StatusSigner | undefined {
    const signer = signers().get(issuerId);
    // An expired issuer needs no CRL: its certificates have expired with it.
    return signer && shard >= 0 && shard < signer.shards && signer.notAfter >= now() ? signer : undefined;
  }

  const isToReplace = (head: CrlHead, at: number): boolean => isDue(head, at) || served.isOutdated(head, head.number);

  /** Publishes one CRL with up to MAX_CHANGES changes. False when there is nothing to publish. */
  async function publishNext(crl: CrlRef, signer: StatusSigner): Promise<boolean> {
    const at = now();
    const head = await store.crls.head(crl);
    const changes = await store.revokedSerials.unlisted(crl, MAX_CHANGES);
    const addresses = addressesOf(crl, signer, await store.pkiAddresses.list(MAX_ADDRESSES));
    const isRenewal = head === undefined || isToReplace(head, at) || head.addresses !== addresses.join(' ');
    if (!isRenewal && changes.length === 0) return false;
    // RFC 5280, 3.3: an expired certificate is dropped only after a CRL issued since its expiry has listed it.
    // At most `at`: a CRL dated by a clock that was ahead says nothing about expiry.
    const expiredBefore = Math.min(at, (isRenewal ? head?.thisUpdate : head?.expiredBefore) ?? 0);
    const isRebuilt = isRenewal || changes.some(({ wasListed }) => wasListed);
    const added = changes.filter(({ wasListed }) => !wasListed);
    const entries = appendEntries(await baseEntries(head, expiredBefore, isRebuilt), added);
    const thisUpdate = thisUpdateOf(at, head, signer);
    const next: CrlHead = {
      ...{ issuerId: crl.issuerId, shard: crl.shard },
      number: Math.max((head?.number ?? 0) + 1, numberAt(signer, head?.number ?? 0, at), served.nextOf(crl)),
      thisUpdate,
      nextUpdate: thisUpdate + CRL_LIFE_MS,
      entries: entries.count,
      expiredBefore,
      addresses: addresses.join(' '),
    };
    const der = await signer.signed(
      crlToBeSigned({
        ...next,
        addresses,
        algorithm: signer.algorithm,
        issuer: signer.name,
        issuerKeyId: signer.keyId,
        entries: entries.bytes.subarray(0, entries.length),
      }),
    );
    const isPublished = await store.transaction((tx) =>
      tx.crls.publish({ ...next, der }, head?.number ?? null, changes, at),
    );
    if (isPublished) {
      entryCache.set(crl, { ...entries, number: next.number });
      onPublished(next, changes.length);
    }
    return true;
  }

  async function baseEntries(head: CrlHead | undefined, expiredBefore: number, isRebuilt: boolean) {
    if (!head) return NO_ENTRIES;
    return isRebuilt ? await entryCache.read(head, expiredBefore) : await entryCache.get(head);
  }

  /** Publishes until nothing is pending. Returns how many CRLs that took. */
  async function publishPending(crl: CrlRef): Promise<number> {
    if (!signers().has(crl.issuerId)) await know(crl.issuerId);
    const signer = signerOf(crl);
    if (!signer) return 0;
    return await withLock(`crl ${crlKey(crl)}`, async () => {
      for (let passes = 0; passes < MAX_PASSES; passes += 1) if (!(await publishNext(crl, signer))) return passes;
      throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    });
  }

  async function readCached(crl: CrlRef, { number }: CrlHead): Promise<PublishedCrl | undefined> {
    const cached = crlCache.get(crlKey(crl));
    if (cached?.number === number) return cached;
    const found = await store.crls.find(crl);
    if (found) crlCache.set(crlKey(crl), found);
    return found;
  }

  async function show(crl: CrlRef, head: CrlHead): Promise<PublishedCrl | undefined> {
    // Where it cannot be published anew, none is better than one that the world has seen replaced.
    if (served.isOutdated(crl, head.number)) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    served.note(crl, head.number, signers().has(crl.issuerId));
    return await readCached(crl, head);
  }

  /** A failure does not stop the others; the first one is thrown at the end. */
  async function publishAll(crls: readonly CrlRef[]): Promise<number> {
    const outcomes: PromiseSettledResult<number>[] = [];
    for (const crl of new Map(crls.map((one) => [crlKey(one), one])).values()) {
      outcomes.push(...(await Promise.allSettled([publishPending(crl)])));
    }
    const failed = outcomes.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    return outcomes.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0);
  }

  return {
    async publish(crls) {
      await publishAll(crls);
    },

    async serve(crl) {
      const head = await store.crls.head(crl);
      if (head && !isToReplace(head, now())) return await show(crl, head);
      await publishPending(crl).catch((error) => {
        // While the store is busy, a CRL that is a day old is better than none.
        if (!head || !(error instanceof Refusal)) throw error;
      });
      const next = await store.crls.head(crl);
      return next && (await show(crl, next));
    },

    async takeUp() {
      const heads = await store.crls.heads();
      await store.crls.makeDue(longDue(now()));
      const issuerIds = new Set([...signers().keys(), ...heads.map(({ issuerId }) => issuerId)]);
      const outdated = served.outdated(issuerIds, heads);
      if (outdated > 0) served.recordRollback(now());
      const foreign = heads.filter((head) => !signers().has(head.issuerId));
      const wrong = foreign.flatMap((head) => {
        const name = `the CRL ${crlKey(head)}, number ${head.number}, whose issuer’s key is not here`;
        if (served.isOutdated(head, head.number)) {
          return [`${name}, is older than one served before, and is not served: reseal crl import CRL…`];
        }
        return head.nextUpdate <= now() ? [`${name}, has expired: reseal crl import CRL…`] : [];
      });
      return outdated === 0 ? wrong : [rolledBack(outdated), ...wrong];
    },

    async publishDue() {
      const urls = await store.pkiAddresses.list(MAX_ADDRESSES);
      const heads = await store.crls.heads();
      const due = heads.filter((one) => {
        const signer = signerOf(one);
        return signer && (isToReplace(one, now()) || one.addresses !== addressesOf(one, signer, urls).join(' '));
      });
      return await publishAll([...(await store.revokedSerials.crlsWithUnlisted(MAX_CRLS)), ...due]);
    },
  };
}

/**
 * Backdated, but not before that of the CRL it replaces, which an earlier version may have dated later. `nextUpdate` tells,
 * because that of the head is set back when it is to be replaced. Never in the future, whatever a wrong clock has dated.
 */
const thisUpdateOf = (at: number, head: CrlHead | undefined, signer: StatusSigner): number =>
  Math.min(at, Math.max(backdated(at, signer), (head?.nextUpdate ?? 0) - CRL_LIFE_MS));

const rolledBack = (crls: number): string =>
  `the store looks rolled back: ${crls} CRLs were served with a higher number. Bring the revocations back: reseal crl import CRL…`;

/** A complete CRL has no addresses, which only tell shards apart. */
const addressesOf = ({ issuerId, shard }: CrlRef, { shards }: StatusSigner, urls: readonly string[]): string[] =>
  shards === 1 ? [] : urls.map((url) => crlUrl(url, issuerId, shard));

const SM2_EPOCH = Date.UTC(2026, 0, 1);
/** GmSSL reads no larger number. */
const MAX_SM2_NUMBER = 2 ** 31 - 1;

/**
 * The time in milliseconds. For SM2 in seconds since 2026, which stay below GmSSL's bound for decades; a CRL that was
 * numbered in milliseconds before goes on so.
 */
function numberAt({ keyType, shards }: StatusSigner, last: number, at: number): number {
  const isShort = keyType === 'sm2' && shards === 1 && last < MAX_SM2_NUMBER;
  return isShort ? Math.floor((at - SM2_EPOCH) / SECOND_MS) : at;
}
