// What ordering and issuing need from the store. Every look-up of something an account owns names the account: what
// belongs to another is not there.

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
  /** The same ones in the same order; no private key is opened. */
  listPublic(): Promise<PublicIssuer[]>;
  /** All of them, or none when an active issuer of the same role and key type is there already. */
  claim(issuers: readonly Issuer[]): Promise<void>;
  /** They take the place of the active ones of their key type, which are retired. */
  adopt(issuers: readonly Issuer[]): Promise<void>;
}

/** Which certificate of an order is being signed right now, and until when its signer is believed to be alive. */
export interface Signing {
  readonly certificateId: CertificateId;
  readonly until: number;
}

export interface Orders {
  /** Refuses with `duplicate_alternative_order_id` what the account has an order of that name for. */
  insert(order: Order): Promise<void>;
  find(accountId: AccountId, id: OrderId): Promise<Order | undefined>;
  findByAlternative(accountId: AccountId, alternativeId: string): Promise<Order | undefined>;
  /** Nobody else decides about the order until the transaction ends. */
  findForUpdate(accountId: AccountId, id: OrderId): Promise<{ order: Order; signing: Signing | null } | undefined>;
  list(accountId: AccountId, page: Page): Promise<Order[]>;
  /**
   * Writes what may change about an order, and ends the signing of it, if any. Refuses with `service_busy` when the
   * order has changed since it was read.
   */
  save(order: Order): Promise<void>;
  beginSigning(orderId: OrderId, signing: Signing): Promise<void>;
  /** Saves the order, if it is unchanged and this certificate is still the one being signed; else false. */
  finishSigning(order: Order, certificateId: CertificateId): Promise<boolean>;
  /** Orders whose signer is overdue, the longest first. */
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
  /** What a reissue compares with; the version is 0 for one that was never issued. */
  findCurrent(accountId: AccountId, id: CertificateId): Promise<PreviousCertificate | undefined>;
  /** The latest that was issued on this cloud-held key. */
  findByCloudKey(accountId: AccountId, cloudKeyId: string): Promise<IssuedCertificate | undefined>;
  /** The one whose issuance made this one the previous. */
  findReplacing(accountId: AccountId, id: CertificateId): Promise<string | undefined>;
  /** The last ones made for the order, the earlier one first, without those that were voided. */
  listLast(accountId: AccountId, orderId: OrderId, limit: number): Promise<CertificateSummary[]>;
  /** Issued, not expired and not revoked; one that is only to be revoked still counts. */
  listValid(accountId: AccountId, orderId: OrderId, now: number): Promise<{ id: CertificateId; names: string[] }[]>;
  /** Whether there is any of them. */
  hasUnrevoked(accountId: AccountId, orderId: OrderId, now: number): Promise<boolean>;
  /** Everything that was, or is being, signed on this key, in any account; the encryption half's key counts too. */
  listOnKey(fingerprint: string, page: Page): Promise<(CertificateRef & { readonly state: CertificateState })[]>;
  /** Serial numbers of lost signers that are not revoked, in any account. */
  listVoided(page: Page): Promise<CertificateRef[]>;
  /** False when it is not prepared any more: somebody found its signer overdue and voided it. */
  issue(id: CertificateId, issued: IssuedFacts): Promise<boolean>;
  /** Of one that is pending: its id stays, and what is to be signed is written down. False when it is not pending any more. */
  prepare(record: PreparedCertificate): Promise<boolean>;
  /**
   * The serial number stays taken. One whose id was answered before goes back to waiting, and the voided serial number
   * gets the id that is given for it.
   */
  void(id: CertificateId, newId: CertificateId): Promise<void>;
  /** Only what is pending. */
  cancel(accountId: AccountId, id: CertificateId): Promise<void>;
}

export interface IdempotencyKeys {
  find(
    accountId: AccountId,
    orderId: OrderId,
    key: string,
    since: number,
  ): Promise<{ requestHash: string; certificateId: CertificateId } | undefined>;
  /** Takes the place of an older one under the same key. */
  put(
    accountId: AccountId,
    orderId: OrderId,
    key: string,
    entry: { requestHash: string; certificateId: CertificateId; at: number },
  ): Promise<void>;
}
