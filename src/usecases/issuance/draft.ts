// A draft is a decision to issue, with what it rests on besides the request. It was read before anything was locked, so
// it is compared again under the order's lock: if one item has changed, the decision is made again.
import type { Product } from '../../domain/catalog/products.ts';
import { canStillSign } from '../../domain/certificate/authority.ts';
import type { PendingCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import type { CertificateId } from '../../domain/ids.ts';
import { chooseIssuer } from '../../domain/issuance/key.ts';
import type { CertificatePlan, CertificateRequest, PreviousCertificate } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import { earlierAnswer, type Idempotency } from './idempotency.ts';
import type { IssuanceTools } from './tools.ts';

export interface Draft {
  /** As it was read; a new one is not stored yet. */
  readonly order: Order;
  readonly product: Product;
  readonly request: Pick<CertificateRequest, 'keySource' | 'signHash' | 'pin' | 'pinHint' | 'keepsEncryptionKey'>;
  /** Null before the first certificate of the order. */
  readonly previous: PreviousCertificate | null;
  readonly plan: CertificatePlan;
  /** Names that were validated before, and by which methods. */
  readonly provenBy: ReadonlyMap<string, readonly string[]>;
  /** The URL of the ACME account that the order was placed by, if it was. */
  readonly acmeAccount?: string | undefined;
  /** The certificate to be issued, without serial number and dates. */
  readonly wanted: PendingCertificate;
  readonly basis: Basis;
}

export interface Basis {
  /** When it was decided, and until when its dates hold: the term, the end that was asked for, the age of the decision. */
  readonly decided: { readonly at: number; readonly until: number };
  /** Of the order as it was read; null for one that is not stored yet. */
  readonly revision: number | null;
  /** The last moment at which every proof that the decision counted on may be reused. */
  readonly provenUntil: number;
  readonly issuerId: string;
  /** A key that was not on the blocklist; null for a key that is made for this request. */
  readonly unblockedKey: PublicKey | null;
  /** The cloud-held key that is certified again, and was not destroyed. */
  readonly cloudKeyId: string | null;
  /** Certificates that will be revoked, and were valid. */
  readonly revokes: readonly CertificateId[];
  /** No earlier request had used this key. */
  readonly idempotency: Idempotency | null;
}

interface Now {
  readonly tools: Pick<IssuanceTools, 'authority'>;
  readonly tx: Repositories;
  /** The order under its lock; null for a new one. */
  readonly order: Order | null;
  readonly at: number;
}

type Holds<Value> = (was: Value, draft: Draft, now: Now) => boolean | Promise<boolean>;
type HoldsInMemory<Value> = (was: Value, draft: Draft, now: Pick<Now, 'tools' | 'at'>) => boolean;
type InMemory = 'decided' | 'provenUntil' | 'issuerId';

/** Whether each item is as it was, the cheapest first. A new item without a comparison does not compile. */
const HOLDS: {
  readonly [Item in keyof Basis]: Item extends InMemory ? HoldsInMemory<Basis[Item]> : Holds<Basis[Item]>;
} = {
  // A clock that went back makes a decision of the future, which is as suspect as an old one.
  decided: (was, _draft, { at }) => was.at <= at && at <= was.until,
  revision: (was, _draft, { order }) => was === (order?.revision ?? null),
  provenUntil: (was, _draft, { at }) => at <= was,
  issuerId(was, { order, product, wanted, basis: { decided } }, { tools: { authority }, at }) {
    const issuers = { choose: authority.issuerFor, served: authority.served };
    const issuer = chooseIssuer({ now: decided.at, order, product, issuers }, wanted.publicKey, wanted.signHash);
    return issuer !== undefined && issuer.id === was && canStillSign(issuer, at);
  },
  unblockedKey: async (was, { order: { accountId } }, { tx }) =>
    was === null || !(await tx.blockedKeys.has(was, accountId)),
  cloudKeyId: async (was, { order: { accountId } }, { tx }) =>
    was === null || (await tx.cloudKeys.find(accountId, was)) !== undefined,
  async revokes(was, { order: { accountId, id } }, { tx, at }) {
    if (was.length === 0) return true;
    const valid = new Set((await tx.certificates.listValid(accountId, id, at)).map((one) => one.id));
    return was.every((certificateId) => valid.has(certificateId));
  },
  idempotency: async (was, { order: { accountId, id: orderId } }, { tx, at }) =>
    was === null || (await earlierAnswer(tx, { accountId, orderId, at }, was)) === undefined,
};

/**
 * Whether a decision still holds, as far as it can be told without reading, and needs nothing but what `signings.begin`
 * compares: the order's revision, the blocklist and the idempotency key.
 */
export function holdsWithoutReading(draft: Draft, now: Pick<Now, 'tools' | 'at'>): boolean {
  const { decided, provenUntil, issuerId, cloudKeyId, revokes } = draft.basis;
  return (
    cloudKeyId === null &&
    revokes.length === 0 &&
    HOLDS.decided(decided, draft, now) &&
    HOLDS.provenUntil(provenUntil, draft, now) &&
    HOLDS.issuerId(issuerId, draft, now)
  );
}

/** A decision as old as this is made again, so that a certificate begins when it is issued. */
const MAX_AGE_MS = 2_000;

export const decidedAt = (
  at: number,
  { termEndsAt }: Pick<Order, 'termEndsAt'>,
  { notAfter }: Pick<CertificatePlan, 'notAfter'>,
): Basis['decided'] => ({ at, until: Math.min(at + MAX_AGE_MS, termEndsAt - 1, notAfter) });

/** The first item that has changed since the decision; null when the decision still holds. */
export async function changedSince(draft: Draft, now: Now): Promise<keyof Basis | null> {
  const { basis } = draft;
  const holds = <Item extends keyof Basis>(item: Item) => (HOLDS[item] as Holds<Basis[Item]>)(basis[item], draft, now);
  for (const item of Object.keys(HOLDS) as (keyof Basis)[]) {
    if (!(await holds(item))) return item;
  }
  return null;
}

export async function previousOf(db: Repositories, order: Order): Promise<PreviousCertificate | null> {
  const id = order.currentCertificateId;
  return id === null ? null : ((await db.certificates.findCurrent(order.accountId, id)) ?? null);
}
