// What ordering and issuing need from the store. Every look-up of something an account owns names the account; what
// belongs to another account is not found.

import type { AuditEntry } from '../access/ports.ts';
import type { AccountUsage } from '../access/quota.ts';
import type { OutboxEvent } from '../callbacks/ports.ts';
import type { Issuer, IssuerSlot, PublicIssuer, Purpose } from '../certificate/authority.ts';
import type {
  Cancellation,
  CertificateRecord,
  CertificateStatus,
  IssuedCertificate,
  PreparedCertificate,
} from '../certificate/certificate.ts';
import type { Order } from '../certificate/order.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import { isAhead } from '../clock.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { CertificateRef } from '../revocation/ports.ts';
import type { Proof } from '../validation/ports.ts';
import type { PreviousCertificate } from './request.ts';

/** Private keys are sealed before they reach the disk. */
export interface Issuers {
  list(): Promise<Issuer[]>;
  /** Like `list`, without unsealing private keys. */
  listPublic(): Promise<PublicIssuer[]>;
  /** Stores a root that was made here, unless there is one of its key type. */
  claimRoot(root: Issuer): Promise<void>;
  /** Stores the issuer of a slot, unless the slot has one. In a transaction. */
  claimSlot(issuer: Issuer, slot: IssuerSlot): Promise<void>;
  /**
   * Stores an imported authority and those above it, if they are new, and gives it these purposes and no others. What had
   * them signs for them no more. In a transaction. Returns it as it is stored.
   */
  adopt(chain: readonly [Issuer, ...Issuer[]]): Promise<Issuer>;
  /**
   * Stores the successor of the issuer that has a slot, and gives it the slot. False, and nothing is changed, if another
   * one has it by now. In a transaction.
   */
  succeed(issuer: Issuer, slot: IssuerSlot, previousId: string): Promise<boolean>;
  /** Takes every purpose from an issuer. */
  retire(issuerId: string): Promise<void>;
  /** Overwrites the sealed key of an issuer, whose key is offline from now on. False if it had none. */
  removeKey(issuerId: string): Promise<boolean>;
  /** How many certificates each issuer has signed, and how many of them are revoked. */
  counts(): Promise<ReadonlyMap<string, { readonly issued: number; readonly revoked: number }>>;
}

/** A signature takes milliseconds and the store answers within seconds: a signer that exceeds this has lost its lease. */
export const SIGNING_LEASE_MS = 10_000;

/** The certificate of an order that is being signed, and the end of the signer's lease. */
export interface Signing {
  readonly certificateId: CertificateId;
  readonly until: number;
}

/** False once the signer is lost: what it was signing may be voided. */
export const isSignerAlive = ({ until }: Signing, now: number): boolean => isAhead(until, now, SIGNING_LEASE_MS);

export interface OrderForReissue {
  readonly order: Order;
  /** Of its account. */
  readonly usage: AccountUsage;
  readonly current: PreviousCertificate | null;
  /** The proofs, by name, of the names that were asked for and those of the current certificate. */
  readonly proofs: ReadonlyMap<string, readonly Proof[]>;
}

export type OrderRef = Pick<Order, 'id' | 'accountId'>;

export interface Orders {
  /** Throws `duplicate_alternative_order_id` if the account has an order with that id. Remembers its names. */
  insert(order: Order): Promise<void>;
  find(accountId: AccountId, id: OrderId): Promise<Order | undefined>;
  /** What every reissue begins with, in one statement. */
  findForReissue(
    accountId: AccountId,
    id: OrderId,
    proofNames: readonly string[],
  ): Promise<OrderForReissue | undefined>;
  /** Makes the order findable by these names and their domains, besides those it has carried before. */
  rememberNames(order: OrderRef, names: readonly string[]): Promise<void>;
  /** Does so for names that an instance of the version before has written, during a rolling restart. Returns how many. */
  completeNames(limit: number): Promise<number>;
  findByAlternative(accountId: AccountId, alternativeId: string): Promise<Order | undefined>;
  /** Locks the order until the transaction ends. */
  findForUpdate(accountId: AccountId, id: OrderId): Promise<{ order: Order; signing: Signing | null } | undefined>;
  /**
   * Writes the mutable fields of an order, and ends its signing lease, if any. Throws `service_busy` when the order has
   * changed since it was read.
   */
  save(order: Order): Promise<void>;
  /** Makes the customer's own id of an order usable for another one. */
  releaseAlternative(accountId: AccountId, id: OrderId): Promise<void>;
}

/** What must still hold when a certificate is written down. */
export interface BeginConditions {
  /** Of the order as it was read. */
  readonly revision: number;
  /** A key that must not be on the blocklist. */
  readonly unblockedKey: PublicKey | null;
  /** An idempotency key that must not have been used since. */
  readonly idempotency: { readonly key: string; readonly since: number } | null;
  /** What the issuer must still sign for: one that was retired meanwhile signs nothing. */
  readonly purpose: Purpose;
}

/** Everything that an issuance records beside its revocations. */
export interface FinishedIssuance {
  /** As it will be, with the revision it was read with. */
  readonly order: Order;
  readonly certificate: IssuedCertificate;
  readonly event: OutboxEvent;
  readonly audit: AuditEntry;
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null;
}

/** Certificates that are being signed, one per order. Each of the two writes is atomic, in a transaction or alone. */
export interface Signings {
  /** Writes down what will be signed, which takes the order's lease. False, and nothing is written, if a condition fails. */
  begin(record: PreparedCertificate, conditions: BeginConditions): Promise<boolean>;
  /**
   * Ends the lease and records everything. False, and nothing is written, if the lease was lost or the order has changed;
   * or if the key was reported meanwhile, unless `evenIfReported`.
   */
  finish(issuance: FinishedIssuance, options: { readonly evenIfReported: boolean }): Promise<boolean>;
  /**
   * Nothing is written down until the transaction ends, and whatever is written down afterwards sees what it has changed.
   * Call it before retiring an issuer: then what was written down under it is complete.
   */
  hold(): Promise<void>;
  /** How many certificates are being signed by issuers that sign for nothing any more. */
  countUnderRetired(): Promise<number>;
  /** Leases of lost signers. */
  overdue(now: number, limit: number): Promise<{ accountId: AccountId; orderId: OrderId }[]>;
  /** Marks what is being signed on this key, in one account or, with null, in all: it is issued and revoked at once. */
  reportKey(fingerprint: string, accountId: AccountId | null): Promise<void>;
  /**
   * Voids what an order is signing; its serial number stays taken. If its id was answered before, that certificate goes on
   * waiting, and the voided serial number is kept under `newId`.
   */
  void(orderId: OrderId, newId: CertificateId): Promise<void>;
  /** Forgets what an order is signing. Only for a serial number that was certainly not signed. */
  discard(orderId: OrderId): Promise<void>;
  /** Lengthens the lease of a signer that still has it. */
  renew(record: Pick<PreparedCertificate, 'id' | 'orderId'>, until: number): Promise<void>;
}

/** In the order's history. Without a version before it is issued. */
export interface CertificateSummary {
  readonly id: CertificateId;
  readonly status: CertificateStatus;
  readonly version: number | null;
  readonly replacesId: CertificateId | null;
  readonly createdAt: number;
  readonly issuedAt: number | null;
}

export interface Certificates {
  insert(certificate: CertificateRecord): Promise<void>;
  find(accountId: AccountId, id: CertificateId): Promise<CertificateRecord | undefined>;
  /** What a reissue compares with. Version 0 means never issued. */
  findCurrent(accountId: AccountId, id: CertificateId): Promise<PreviousCertificate | undefined>;
  /** The latest that was issued on this cloud-held key. */
  findByCloudKey(accountId: AccountId, cloudKeyId: string): Promise<IssuedCertificate | undefined>;
  /** The certificate that replaced this one. */
  findReplacing(accountId: AccountId, id: CertificateId): Promise<string | undefined>;
  /** The last certificates of the order, oldest first, without voided ones. */
  listLast(accountId: AccountId, orderId: OrderId, limit: number): Promise<CertificateSummary[]>;
  /** Issued, not expired and not revoked. A scheduled revocation does not count yet. */
  listValid(accountId: AccountId, orderId: OrderId, now: number): Promise<{ id: CertificateId; names: string[] }[]>;
  /** Whether `listValid` has any. */
  hasUnrevoked(accountId: AccountId, orderId: OrderId, now: number): Promise<boolean>;
  /** Certificates signed on this key in any account; the key of an encryption half counts too. */
  listOnKey(fingerprint: string, page: Page): Promise<CertificateRef[]>;
  /** Voided certificates that are not revoked, in any account. */
  listVoided(page: Page): Promise<CertificateRef[]>;
  /** Cancels a pending certificate; does nothing otherwise. */
  cancel(pending: CertificateRef, cancellation: Cancellation): Promise<void>;
  /** The last that was canceled in the order, if it is newer than `after`. */
  lastCanceled(
    accountId: AccountId,
    orderId: OrderId,
    after: CertificateId | null,
  ): Promise<(Cancellation & { readonly certificateId: CertificateId }) | undefined>;
}

export interface IdempotencyKeys {
  find(
    accountId: AccountId,
    orderId: OrderId,
    key: string,
    since: number,
  ): Promise<{ requestHash: string; certificateId: CertificateId } | undefined>;
  /** Replaces an older entry of the same key. */
  put(
    accountId: AccountId,
    orderId: OrderId,
    key: string,
    entry: { requestHash: string; certificateId: CertificateId; at: number },
  ): Promise<void>;
  /** Deletes keys used before that time. Returns how many. */
  deleteBefore(before: number, limit: number): Promise<number>;
}

/** Idempotency keys of placements. One whose order was interrupted before it was answered counts as unused. */
export interface PlacementKeys {
  find(accountId: AccountId, key: string, since: number): Promise<PlacementEntry | undefined>;
  /** False, and nothing is written, if another order has taken the key since. */
  take(
    accountId: AccountId,
    key: string,
    entry: PlacementEntry & { readonly at: number },
    since: number,
  ): Promise<boolean>;
  /** Deletes keys used before that time. Returns how many. */
  deleteBefore(before: number, limit: number): Promise<number>;
}

export interface PlacementEntry {
  readonly requestHash: string;
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
}
