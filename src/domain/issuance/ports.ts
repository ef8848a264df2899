// What ordering and issuing need from the store. Every look-up of something an account owns names the account; what
// belongs to another account is not found.

import type { Issuer, PublicIssuer } from '../certificate/authority.ts';
import type {
  CertificateRecord,
  CertificateState,
  IssuedCertificate,
  PreparedCertificate,
} from '../certificate/certificate.ts';
import type { Order } from '../certificate/order.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { CertificateRef } from '../revocation/ports.ts';
import type { PreviousCertificate } from './request.ts';

/** Private keys are sealed before they reach the disk. */
export interface Issuers {
  list(): Promise<Issuer[]>;
  /** Like `list`, without unsealing private keys. */
  listPublic(): Promise<PublicIssuer[]>;
  /** Stores all, or none if an active issuer of the same role and key type exists. */
  claim(issuers: readonly Issuer[]): Promise<void>;
  /** Activates them, and retires the active issuers of their key type. */
  adopt(issuers: readonly Issuer[]): Promise<void>;
}

/** The certificate of an order that is being signed, and the end of the signer's lease. */
export interface Signing {
  readonly certificateId: CertificateId;
  readonly until: number;
}

export interface Orders {
  /** Throws `duplicate_alternative_order_id` if the account has an order with that id. Remembers its names. */
  insert(order: Order): Promise<void>;
  find(accountId: AccountId, id: OrderId): Promise<Order | undefined>;
  /** With its current certificate, in one statement: what every reissue begins with. */
  findWithCurrent(
    accountId: AccountId,
    id: OrderId,
  ): Promise<{ readonly order: Order; readonly current: PreviousCertificate | null } | undefined>;
  /** Makes the order findable by these names, besides those it has carried before. */
  rememberNames(id: OrderId, names: readonly string[]): Promise<void>;
  findByAlternative(accountId: AccountId, alternativeId: string): Promise<Order | undefined>;
  /** Locks the order until the transaction ends. */
  findForUpdate(accountId: AccountId, id: OrderId): Promise<{ order: Order; signing: Signing | null } | undefined>;
  list(accountId: AccountId, page: Page): Promise<Order[]>;
  /**
   * Writes the mutable fields of an order, and ends its signing lease, if any. Throws `service_busy` when the order has
   * changed since it was read.
   */
  save(order: Order): Promise<void>;
  beginSigning(orderId: OrderId, signing: Signing): Promise<void>;
  /** Saves the order if its revision is unchanged and this certificate holds the lease; returns false otherwise. */
  finishSigning(order: Order, certificateId: CertificateId): Promise<boolean>;
  /** Orders whose signing lease has expired, oldest first. */
  overdue(now: number, limit: number): Promise<{ accountId: AccountId; orderId: OrderId }[]>;
}

/** In the order's history. Without a version before it is issued. */
export interface CertificateSummary {
  readonly id: CertificateId;
  readonly state: CertificateState;
  readonly version: number | null;
  readonly replacesId: CertificateId | null;
  readonly createdAt: number;
  readonly issuedAt: number | null;
}

export type IssuedFacts = Pick<IssuedCertificate, 'der' | 'issuedAt' | 'version' | 'replacesId'> & {
  /** Of the encryption half, if there is one. */
  readonly encryptionDer: Uint8Array | null;
};

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
  /** Certificates signed, or being signed, on this key in any account; the key of an encryption half counts too. */
  listOnKey(fingerprint: string, page: Page): Promise<(CertificateRef & { readonly state: CertificateState })[]>;
  /** Voided certificates that are not revoked, in any account. */
  listVoided(page: Page): Promise<CertificateRef[]>;
  /** False when it is no longer prepared: its lease expired and it was voided. */
  issue(id: CertificateId, issued: IssuedFacts): Promise<boolean>;
  /** Turns a pending certificate into a prepared one under the same id. False when it is no longer pending. */
  prepare(record: PreparedCertificate): Promise<boolean>;
  /**
   * Voids a prepared certificate; its serial number stays taken. If its id was answered before, it becomes pending again
   * and the voided serial number is kept under `newId`.
   */
  void(id: CertificateId, newId: CertificateId): Promise<void>;
  /** Cancels a pending certificate; does nothing otherwise. */
  cancel(accountId: AccountId, id: CertificateId): Promise<void>;
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
