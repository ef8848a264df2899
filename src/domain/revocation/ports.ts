// What revoking, and showing the world what is revoked, needs from the store.

import type { Revocation, RevocationCause, RevocationReason } from '../certificate/order.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { ListRef } from './revocation.ts';

/** Where to find a certificate, and the order that must be locked first. */
export interface CertificateRef {
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
}

export interface Revocations {
  schedule(accountId: AccountId, certificateId: CertificateId, revocation: Revocation): Promise<void>;
  /** Those of the order that are still to come, the next one first. */
  listScheduled(
    accountId: AccountId,
    orderId: OrderId,
    limit: number,
  ): Promise<(Revocation & { readonly certificateId: CertificateId })[]>;
  /** Whose time has come, the longest ago first. */
  due(now: number, limit: number): Promise<CertificateRef[]>;
  /** The next three change only what has not happened yet; false when it has, or when nothing is scheduled. */
  reschedule(accountId: AccountId, certificateId: CertificateId, dueAt: number): Promise<boolean>;
  unschedule(accountId: AccountId, certificateId: CertificateId): Promise<boolean>;
  markRevoked(
    certificateId: CertificateId,
    as: { readonly reason: RevocationReason; readonly cause: RevocationCause; readonly at: number },
  ): Promise<boolean>;
  /** A key that turns out to be compromised changes the reason of what was revoked for another one. */
  changeReason(certificateId: CertificateId, reason: RevocationReason, cause: RevocationCause): Promise<void>;
}

/** A serial number as a list shows it. */
export interface ListedSerial {
  readonly serial: string;
  readonly reason: RevocationReason;
  readonly revokedAt: number;
}

export interface RevokedSerial extends ListedSerial, ListRef {
  readonly certificateId: CertificateId;
  readonly notAfter: number;
}

/** Since when the world can see it. */
export interface SeenSerial extends ListedSerial, ListRef {
  readonly crlNumber: number | null;
  readonly crlPublishedAt: number | null;
}

export type SerialStatus =
  | { readonly kind: 'good' }
  | { readonly kind: 'revoked'; readonly revokedAt: number; readonly reason: RevocationReason }
  | { readonly kind: 'unknown' };

export interface RevokedSerials {
  insert(revoked: RevokedSerial): Promise<void>;
  ofCertificate(certificateId: CertificateId): Promise<SeenSerial[]>;
  changeReason(certificateId: CertificateId, reason: RevocationReason): Promise<void>;
  /** Never good for a serial number that this issuer did not issue. */
  statusOf(issuerId: string, serial: string): Promise<SerialStatus>;
  /** What no list shows as it is now; `isKnown` when an earlier one shows it otherwise. */
  unlisted(list: ListRef, limit: number): Promise<(ListedSerial & { readonly isKnown: boolean })[]>;
  /** What lists after this one, up to that one, have brought. */
  listedBetween(
    list: ListRef,
    after: number,
    upTo: number,
    limit: number,
  ): Promise<(ListedSerial & { readonly isKnown: boolean })[]>;
  /** What lists up to this number have shown, as it is now, page by page; without what ended before that moment. */
  page(list: ListRef, number: number, endedBefore: number, after: string, limit: number): Promise<ListedSerial[]>;
  /** The lists that have something to show. */
  unlistedLists(limit: number): Promise<ListRef[]>;
}

export interface ListHead extends ListRef {
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly entries: number;
  /** Certificates that had ended before this moment were left out. */
  readonly endedBefore: number;
  /** The addresses it names as its own. */
  readonly addresses: string;
}

export interface PublishedList extends ListHead {
  readonly der: Uint8Array;
}

export interface RevocationLists {
  head(list: ListRef): Promise<ListHead | undefined>;
  heads(): Promise<ListHead[]>;
  find(list: ListRef): Promise<PublishedList | undefined>;
  /**
   * Takes the place of the one with that number (null: of none), and notes what it shows for the first time. False when
   * somebody else was faster; then nothing was written.
   */
  publish(list: PublishedList, replaces: number | null, shows: readonly ListedSerial[]): Promise<boolean>;
}

/** What happened to the lists is told to whoever publishes them; it goes on trying by itself if it fails now. */
export type PublishLists = (lists: readonly ListRef[]) => Promise<void>;

export interface PkiAddresses {
  remember(url: string, at: number): Promise<void>;
  /** Those used last. */
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
  /** Of those that are valid already, the one that lives longest. */
  current(issuerId: string, at: number): Promise<OcspResponder | undefined>;
  /** Before anything is signed. */
  writeDown(responder: Omit<OcspResponder, 'certificate' | 'privateKey'>, at: number): Promise<void>;
  finish(responder: OcspResponder): Promise<void>;
}

export interface BlockedKeys {
  /** For everybody, or for this account. */
  has(fingerprint: string, accountId: AccountId): Promise<boolean>;
  add(fingerprint: string, reason: string, at: number): Promise<void>;
  /** Blocked for this account alone: whoever has seen another's request could report its key. */
  report(accountId: AccountId, fingerprint: string, at: number): Promise<void>;
}
