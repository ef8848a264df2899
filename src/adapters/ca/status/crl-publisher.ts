// Publishes CRLs: at once when there is a new revocation, and once a day in any case. The store keeps the latest CRL of
// each shard. Publishing is a compare and swap on its number: one instance wins, the others read again.
//
// CRL number: the larger of the last number plus one and the milliseconds since 1970. The former keeps numbers growing
// when a clock goes back, the latter when the store is restored from a backup older than the last published CRL.

import type { Clock } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import type { CrlHead, PublishCrls, PublishedCrl } from '../../../domain/revocation/ports.ts';
import { type CrlRef, crlKey } from '../../../domain/revocation/revocation.ts';
import type { Store } from '../../../domain/store.ts';
import type { KeyedMutex } from '../../../kernel/concurrency.ts';
import { DAY_MS } from '../../../kernel/durations.ts';
import { crlUrl } from '../issuers.ts';
import { crlToBeSigned } from './crl.ts';
import { appendEntries, crlEntryCache, NO_ENTRIES } from './crl-entries.ts';
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
  /** Makes every CRL due: at a start the store may be older than what was published, after a restore of any kind. */
  makeDue(): Promise<void>;
}

/** Twice the time, so that CRLs are due for instances whose clock is behind as well. */
export const longDue = (now: number): number => now - 2 * RENEW_AFTER_MS;

interface PublisherTools {
  readonly store: Store;
  readonly now: Clock;
  readonly signers: () => StatusSigners;
  readonly withLock: KeyedMutex;
  readonly onPublished: (crl: CrlHead, changes: number) => void;
}

const isDue = ({ thisUpdate }: Pick<CrlHead, 'thisUpdate'>, now: number): boolean =>
  thisUpdate + RENEW_AFTER_MS <= now || thisUpdate > now + MAX_AHEAD_MS;

export function crlPublisher({ store, now, signers, withLock, onPublished }: PublisherTools): CrlPublisher {
  const entryCache = crlEntryCache(store);
  const crlCache = new Map<string, PublishedCrl>();

  function signerOf({ issuerId, shard }: CrlRef): StatusSigner | undefined {
    const signer = signers().get(issuerId);
    // An expired issuer needs no CRL: its certificates have expired with it.
    return signer && shard >= 0 && shard < signer.shards && signer.notAfter >= now() ? signer : undefined;
  }

  /** Publishes one CRL with up to MAX_CHANGES changes. False when there is nothing to publish. */
  async function publishNext(crl: CrlRef, signer: StatusSigner): Promise<boolean> {
    const at = now();
    const head = await store.crls.head(crl);
    const changes = await store.revokedSerials.unlisted(crl, MAX_CHANGES);
    const addresses = addressesOf(crl, signer, await store.pkiAddresses.list(MAX_ADDRESSES));
    const isRenewal = head === undefined || isDue(head, at) || head.addresses !== addresses.join(' ');
    if (!isRenewal && changes.length === 0) return false;
    // RFC 5280, 3.3: an expired certificate is dropped only after a CRL issued since its expiry has listed it.
    // At most `at`: a CRL dated by a clock that was ahead says nothing about expiry.
    const expiredBefore = Math.min(at, (isRenewal ? head?.thisUpdate : head?.expiredBefore) ?? 0);
    const isRebuilt = isRenewal || changes.some(({ wasListed }) => wasListed);
    const added = changes.filter(({ wasListed }) => !wasListed);
    const entries = appendEntries(await baseEntries(head, expiredBefore, isRebuilt), added);
    const next: CrlHead = {
      ...{ issuerId: crl.issuerId, shard: crl.shard },
      number: Math.max((head?.number ?? 0) + 1, at),
      thisUpdate: at,
      nextUpdate: at + CRL_LIFE_MS,
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
      tx.crls.publish({ ...next, der }, head?.number ?? null, changes),
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
  function publishPending(crl: CrlRef): Promise<number> {
    const signer = signerOf(crl);
    if (!signer) return Promise.resolve(0);
    return withLock(`crl ${crlKey(crl)}`, async () => {
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
      if (head && !isDue(head, now())) return await readCached(crl, head);
      await publishPending(crl).catch((error) => {
        // While the store is busy, a CRL that is a day old is better than none.
        if (!head || !(error instanceof Refusal)) throw error;
      });
      const next = await store.crls.head(crl);
      return next && (await readCached(crl, next));
    },

    makeDue: () => store.crls.makeDue(longDue(now())),

    async publishDue() {
      const urls = await store.pkiAddresses.list(MAX_ADDRESSES);
      const heads = await store.crls.heads();
      const due = heads.filter((one) => {
        const signer = signerOf(one);
        return signer && (isDue(one, now()) || one.addresses !== addressesOf(one, signer, urls).join(' '));
      });
      return await publishAll([...(await store.revokedSerials.crlsWithUnlisted(MAX_CRLS)), ...due]);
    },
  };
}

/** A root has one complete CRL without addresses: its own certificate names no distribution point to match. */
const addressesOf = ({ issuerId, shard }: CrlRef, { isRoot }: StatusSigner, urls: readonly string[]): string[] =>
  isRoot ? [] : urls.map((url) => crlUrl(url, issuerId, shard));
