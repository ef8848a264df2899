// Store ports of revocation: revocations and their schedule, revoked serial numbers, CRLs, OCSP responders, the blocklist.

import type { Revocation, RevocationCause, RevocationReason } from '../certificate/certificate.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { CrlRef } from './revocation.ts';

/** Identifies a certificate, and the order to lock before it is changed. */
export interface CertificateRef {
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
}

/** A scheduled revocation with what its certificate is called by. */
export type AccountRevocation = Revocation &
  Pick<CertificateRef, 'orderId' | 'certificateId'> & { readonly commonName: string | null };

export interface Revocations {
  /** If one is scheduled already, the earlier date wins, and the first cause unless that was `previous_replaced`. */
  schedule(accountId: AccountId, certificateId: CertificateId, revocation: Revocation): Promise<void>;
  /** The order's revocations that have not happened yet, the earliest first. */
  listScheduled(
    accountId: AccountId,
    orderId: OrderId,
    limit: number,
  ): Promise<(Revocation & { readonly certificateId: CertificateId })[]>;
  /** The same of all orders of the account; of very many the first thousand are examined. */
  listOfAccount(accountId: AccountId, limit: number): Promise<AccountRevocation[]>;
  /** Due and not applied, the oldest first. */
  due(now: number, limit: number): Promise<CertificateRef[]>;
  /** The next three change only a revocation that has not happened; false when it has, or when none is scheduled. */
  reschedule(accountId: AccountId, certificateId: CertificateId, dueAt: number): Promise<boolean>;
  unschedule(accountId: AccountId, certificateId: CertificateId): Promise<boolean>;
  markRevoked(
    certificateId: CertificateId,
    as: { readonly reason: RevocationReason; readonly cause: RevocationCause; readonly at: number },
  ): Promise<boolean>;
  /** Replaces the reason of a revocation that has happened. */
  changeReason(certificateId: CertificateId, reason: RevocationReason, cause: RevocationCause): Promise<void>;
}

/** A revoked serial number as a CRL lists it. */
export interface CrlEntry {
  readonly serial: string;
  readonly reason: RevocationReason;
  readonly revokedAt: number;
}

export interface RevokedSerial extends CrlEntry, CrlRef {
  /** Null for a serial number that is known from a CRL only: its certificate was issued after the restored backup. */
  readonly certificateId: CertificateId | null;
  readonly notAfter: number;
}

/** A revoked serial number with the first CRL that lists it; null while none does. */
export interface PublishedSerial extends CrlEntry, CrlRef {
  readonly crlNumber: number | null;
  readonly crlPublishedAt: number | null;
}

export type SerialStatus =
  | { readonly kind: 'good' }
  | { readonly kind: 'revoked'; readonly revokedAt: number; readonly reason: RevocationReason }
  | { readonly kind: 'unknown' };

/** An entry to add, or to replace when an earlier CRL lists it with another reason (`wasListed`). */
export type CrlChange = CrlEntry & { readonly wasListed: boolean };

/** Keyset paging over the entries of a CRL, by serial number. */
export interface CrlEntryPage {
  /** Entries first listed in CRLs up to this number. */
  readonly upTo: number;
  /** Leaves out certificates that expired before this time. */
  readonly expiredBefore: number;
  readonly after: string;
  readonly limit: number;
}

export interface RevokedSerials {
  insert(revoked: RevokedSerial): Promise<void>;
  ofCertificate(certificateId: CertificateId): Promise<PublishedSerial[]>;
  /** The reasons of those serial numbers of one issuer that are recorded as revoked. */
  reasonsOf(issuerId: string, listed: readonly (CrlEntry & CrlRef)[]): Promise<ReadonlyMap<string, RevocationReason>>;
  /** The certificate that has the serial number, be it of its encryption half. */
  ownerOf(issuerId: string, serial: string): Promise<CertificateRef | undefined>;
  /** Replaces the reason of a serial number without a certificate. */
  changeReasonOf(listed: CrlEntry & CrlRef): Promise<void>;
  changeReason(certificateId: CertificateId, reason: RevocationReason): Promise<void>;
  /** Never `good` for a serial number that this issuer did not issue. */
  statusOf(issuerId: string, serial: string): Promise<SerialStatus>;
  /** Entries that no published CRL lists with their current reason. */
  unlisted(crl: CrlRef, limit: number): Promise<CrlChange[]>;
  /** Entries that CRLs with numbers in (after, upTo] have added or changed. */
  listedBetween(crl: CrlRef, after: number, upTo: number, limit: number): Promise<CrlChange[]>;
  /** Entries in their current state, by serial number. */
  page(crl: CrlRef, page: CrlEntryPage): Promise<CrlEntry[]>;
  crlsWithUnlisted(limit: number): Promise<CrlRef[]>;
}

export interface CrlHead extends CrlRef {
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly entries: number;
  /** Certificates that had expired before this time are not listed. */
  readonly expiredBefore: number;
  /** The URLs in its issuing distribution point, separated by spaces. */
  readonly addresses: string;
}

export interface PublishedCrl extends CrlHead {
  readonly der: Uint8Array;
}

/** A CRL whose signature an issuer of the store has made, as read from a file or a URL. */
export interface ReadCrl {
  readonly issuerId: string;
  /** Null for a CRL of this issuer that is not a shard of ours; its entries count, its number does not. */
  readonly shard: number | null;
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly addresses: readonly string[];
  readonly entries: readonly (CrlEntry & CrlRef)[];
  readonly der: Uint8Array;
  /** No certificate outlives its issuer. */
  readonly issuerNotAfter: number;
}

export interface Crls {
  head(crl: CrlRef): Promise<CrlHead | undefined>;
  heads(): Promise<CrlHead[]>;
  find(crl: CrlRef): Promise<PublishedCrl | undefined>;
  /**
   * Compare and swap: replaces the CRL with the number `replaces` (null: there is none), and marks `added` as listed `at`.
   * Returns false, and writes nothing, when another instance was faster.
   */
  publish(crl: PublishedCrl, replaces: number | null, added: readonly CrlEntry[], at: number): Promise<boolean>;
  /** Stores a CRL that was published before, unless a higher number is stored. Returns whether it was. */
  adopt(crl: PublishedCrl): Promise<boolean>;
  /** Makes every CRL whose issuer's key is here look published before that time: it is published anew before it is served. */
  makeDue(publishedBefore: number): Promise<void>;
}

/** Publishes these CRLs with everything that is recorded. */
export type PublishCrls = (crls: readonly CrlRef[]) => Promise<void>;

/** Base URLs that CRLs are, or were, served at: certificates name them for as long as they live. */
export interface PkiAddresses {
  remember(url: string, at: number): Promise<void>;
  /** The most recently used ones, sorted. */
  list(limit: number): Promise<string[]>;
}

export interface OcspResponder {
  /** Hexadecimal, lower case. */
  readonly serial: string;
  readonly issuerId: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** DER. */
  readonly certificate: Uint8Array;
  /** PKCS#8, DER; sealed at rest. */
  readonly privateKey: Uint8Array;
}

export interface OcspResponders {
  /** The responder with the latest notAfter whose notBefore has passed. */
  current(issuerId: string, at: number): Promise<OcspResponder | undefined>;
  /** Records the serial number, before anything is signed. */
  prepare(responder: Omit<OcspResponder, 'certificate' | 'privateKey'>, at: number): Promise<void>;
  finish(responder: OcspResponder): Promise<void>;
}

/**
 * The blocklist of compromised keys, by fingerprint: the SHA-256 of the SPKI, or of an RSA modulus what Debian lists, which
 * stands for every key on the modulus.
 */
export interface BlockedKeys {
  /** Blocked for all accounts, or for this one. */
  has(key: PublicKey, accountId: AccountId): Promise<boolean>;
  /** Blocks the key for all accounts. */
  add(fingerprint: string, reason: string, at: number): Promise<void>;
  addAll(fingerprints: readonly string[], reason: string, at: number): Promise<void>;
  /** Blocks the key for this account only: a CSR is no secret, so one account could report the key of another. */
  report(accountId: AccountId, fingerprint: string, at: number): Promise<void>;
}
