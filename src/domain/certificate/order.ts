// What was ordered, and every certificate made for it: the records, and the table of an order's statuses. It does not
// decide what a reissue may do (reissue.ts) and holds no bytes of private keys.

import { Refusal } from '../errors.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { PublicKey } from './public-key.ts';
import type { SignHash } from './sign-hash.ts';

export const ORDER_STATUSES = [
  'domain_verifing', // The spelling existing clients compare with.
  'issuing',
  'issued',
  'reissuing',
  'revoked',
  'canceled',
  'expired',
  'rejected',
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

/** How an order begins: names must be proven first, or all of them are. */
export const FIRST_STATUSES = ['domain_verifing', 'issuing'] as const satisfies readonly OrderStatus[];

/** All transitions there are (ADR 0007). A reissue that is issued before its answer makes none. */
export const TRANSITIONS: Readonly<Record<OrderStatus, readonly OrderStatus[]>> = {
  domain_verifing: ['issuing', 'canceled', 'rejected'],
  issuing: ['issued', 'domain_verifing', 'rejected'],
  issued: ['reissuing', 'revoked', 'expired'],
  reissuing: ['issued', 'revoked', 'expired'],
  revoked: [],
  canceled: [],
  expired: [],
  rejected: [],
};

export function requireTransition(from: OrderStatus, to: OrderStatus): void {
  if (TRANSITIONS[from].includes(to)) return;
  throw new Refusal('order_state_conflict', {
    reason: {
      en: `An order that is ${from} cannot become ${to}.`,
      zh: `状态为 ${from} 的订单不能变为 ${to}。`,
    },
    details: { status: from },
  });
}

export const DCV_METHODS = ['dns', 'file', 'email', 'dns-persist'] as const;
export type DcvMethod = (typeof DCV_METHODS)[number];
export const DCV_SCOPES = ['fqdn', 'base_domain'] as const;
export type DcvScope = (typeof DCV_SCOPES)[number];

export const PERSIST_POLICIES = ['fqdn', 'wildcard'] as const;
export type PersistPolicy = (typeof PERSIST_POLICIES)[number];

/** How the names of an order are proven. Without names to prove there is no method. */
export interface DomainValidation {
  readonly dcvMethod: DcvMethod | null;
  readonly dcvScope: DcvScope;
  /** Unix seconds. Null is "no expiry"; 0 is a word of requests only and never kept. */
  readonly persistUntil: number | null;
  readonly persistPolicy: PersistPolicy;
}

export interface Order extends DomainValidation {
  readonly id: OrderId;
  readonly accountId: AccountId;
  readonly productId: string;
  /** The customer's own name for it, unique within the account. */
  readonly alternativeId: string | null;
  readonly status: OrderStatus;
  /**
   * Those of the current certificate, or before there is one those that were ordered. They change in the transaction
   * that changes currentCertificateId, and are here so that a list of orders reads one table.
   */
  readonly commonName: string | null;
  readonly names: readonly string[];
  readonly currentCertificateId: CertificateId | null;
  /** A first certificate or a reissue that waits for proof; at most one at a time. */
  readonly pendingCertificateId: CertificateId | null;
  readonly createdAt: number;
  /** The first moment at which no certificate is owed any more. */
  readonly termEndsAt: number;
  /** Grows with every change: whoever writes says which one it has read, so that two instances cannot both win. */
  readonly revision: number;
}

/**
 * - `pending`: waits for proof. Its id has been answered, so it ends as issued or canceled.
 * - `prepared`: serial number and bytes to be signed are durable, and somebody holds the lease to sign them once.
 * - `issued`: signed. Whether it is still valid is a matter of its dates and its revocation.
 * - `voided`: prepared, and its signer was lost. Perhaps a signature exists somewhere: the serial number stays taken and
 *   revocable, and is never signed again.
 * - `canceled`: given up or lapsed while pending.
 */
export const CERTIFICATE_STATES = ['pending', 'prepared', 'issued', 'voided', 'canceled'] as const;
export type CertificateState = (typeof CERTIFICATE_STATES)[number];

export type RevocationReason =
  | 'superseded'
  | 'key_compromise'
  | 'cessation_of_operation'
  | 'affiliation_changed'
  | 'privilege_withdrawn';
/** `key_compromise`: not this certificate but its key was reported. */
export type RevocationCause = 'name_removed' | 'previous_replaced' | 'requested' | 'key_compromise';

/** What the issuance of a certificate will do to an earlier one, and how long after it. */
export interface PlannedRevocation {
  readonly certificateId: CertificateId;
  readonly reason: 'superseded';
  readonly cause: 'name_removed' | 'previous_replaced';
  readonly afterHours: number;
}

/** Of an issued certificate: scheduled from the issuance that caused it, done once `revokedAt` is set. */
export interface Revocation {
  readonly reason: RevocationReason;
  readonly cause: RevocationCause;
  /** The certificate whose issuance caused it. */
  readonly causedById: CertificateId | null;
  readonly dueAt: number;
  readonly revokedAt: number | null;
}

export interface CertificateRecord {
  readonly id: CertificateId;
  readonly orderId: OrderId;
  readonly accountId: AccountId;
  readonly state: CertificateState;
  readonly createdAt: number;
  /** When its id was answered although it was not issued yet. Such an id must survive a lost signer. */
  readonly pendingSince: number | null;

  /** What shall be certified. */
  readonly commonName: string | null;
  readonly names: readonly string[];
  /** As it was sent; null when the last key was certified again. */
  readonly csr: string | null;
  readonly publicKey: PublicKey;
  readonly signHash: SignHash;
  /** The wishes and not the dates: a pending certificate gets its dates when it is issued. */
  readonly validityDays: number | null;
  readonly customExpirationDate: string | null;
  /** Fixed by the consent that was given: a later issuance revokes nothing that was not agreed to. */
  readonly willRevoke: readonly PlannedRevocation[];

  /** Written down before anything is signed; null while pending. */
  readonly preparation: Preparation | null;

  /** Known once it is issued. */
  readonly der: Uint8Array | null;
  readonly issuedAt: number | null;
  /** 1, 2, 3 … within the order, in the order of issuance. */
  readonly version: number | null;
  /** The certificate that was current until this one was issued. Read backwards it says what replaced a certificate. */
  readonly replacesId: CertificateId | null;
  readonly revocation: Revocation | null;

  /** The cloud-held key it certifies, if it is one. */
  readonly cloudKeyId: string | null;
  /** `un_modify_key`: a wish too, for one that is issued later. */
  readonly keepsEncryptionKey: boolean;
  /** The other half of a dual certificate, prepared and issued together with this one. */
  readonly encryption: EncryptionHalf | null;
}

export interface EncryptionHalf {
  readonly escrowedKeyId: string;
  /** Hexadecimal, lower case. */
  readonly serial: string;
  /** Null once issued. */
  readonly toBeSigned: Uint8Array | null;
  readonly der: Uint8Array | null;
  /** The private key, readable with the signing key of the certificate only: SM2EnvelopedKey, DER. */
  readonly envelope: Uint8Array;
}

export interface Preparation {
  readonly issuerId: string;
  /** Hexadecimal, lower case; unique for the issuer for ever. */
  readonly serial: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Null once issued: the certificate contains them. */
  readonly toBeSigned: Uint8Array | null;
  readonly preparedAt: number;
  /** After this moment anybody may void it; before it, nobody but its signer touches it. */
  readonly leaseEndsAt: number;
}

/**
 * What becomes of a certificate whose signer was lost. The serial number always ends in a voided record. If the id of
 * the certificate had been answered already, it goes back to waiting for its issuance, and the voided record gets an
 * id of its own; otherwise nobody ever heard of it.
 */
export function afterLostSigner(
  record: CertificateRecord,
  newId: string,
): { readonly voided: CertificateRecord; readonly pending: CertificateRecord | null } {
  if (record.state !== 'prepared') throw new Error(`certificate ${record.id} is ${record.state}, not prepared`);
  if (record.pendingSince === null) return { voided: { ...record, state: 'voided' }, pending: null };
  return {
    voided: { ...record, id: newId, state: 'voided' },
    pending: { ...record, state: 'pending', preparation: null },
  };
}
