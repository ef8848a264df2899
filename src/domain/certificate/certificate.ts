// Every certificate made for an order, by state: a state has exactly the facts that are known in it. The record says what
// was requested and consented to; what a reissue may do is decided elsewhere. No private keys here.
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { PublicKey } from './public-key.ts';
import type { SignHash } from './sign-hash.ts';

/**
 * - `pending`: waits for validation. Its id has been answered, so it ends as issued or canceled.
 * - `issued`: signed. Whether it is still valid depends on its dates and its revocation.
 * - `voided`: prepared, and its signer was lost. A signature may exist somewhere: the serial number stays taken and
 *   revocable, and is never signed again.
 * - `canceled`: dropped or expired while pending.
 */
export const CERTIFICATE_STATES = ['pending', 'issued', 'voided', 'canceled'] as const;
export type CertificateState = (typeof CERTIFICATE_STATES)[number];

export type CertificateRecord = PendingCertificate | IssuedCertificate | VoidedCertificate | CanceledCertificate;

/** What was requested, in every state. */
interface RequestedCertificate {
  readonly id: CertificateId;
  readonly orderId: OrderId;
  readonly accountId: AccountId;
  readonly createdAt: number;
  /** When its id was answered before it was issued. Such an id must survive a lost signer. */
  readonly pendingSince: number | null;
  readonly commonName: string | null;
  readonly names: readonly string[];
  /** As it was sent; null when the previous key is certified again. */
  readonly csr: string | null;
  readonly publicKey: PublicKey;
  readonly signHash: SignHash;
  /** As requested: a pending certificate gets its dates when it is issued. */
  readonly validityDays: number | null;
  readonly customExpirationDate: string | null;
  /** Fixed by the consent that was given: a later issuance revokes nothing else. */
  readonly willRevoke: readonly PlannedRevocation[];
  /** The cloud-held key it certifies, if it is one. */
  readonly cloudKeyId: string | null;
  /** `un_modify_key`, for a certificate that is issued later. */
  readonly keepsEncryptionKey: boolean;
}

export interface PendingCertificate extends RequestedCertificate {
  readonly state: 'pending';
}

export interface CanceledCertificate extends RequestedCertificate {
  readonly state: 'canceled';
}

/** What is fixed before a certificate is signed, and durable by then. */
export interface Preparation {
  readonly issuerId: string;
  /** Lower-case hexadecimal; never used twice by an issuer. */
  readonly serial: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly preparedAt: number;
  /** Until then only its signer may act on it; afterwards any process may void it. */
  readonly leaseEndsAt: number;
}

interface Unsigned extends RequestedCertificate {
  readonly preparation: Preparation;
  readonly toBeSigned: Uint8Array;
  readonly encryption: UnsignedHalf | null;
}

/**
 * Being signed: serial number and bytes to be signed are durable, and one signer holds the lease to sign them once. Not a
 * state of the record, which comes to be when the certificate is issued or voided; a pending one stays pending meanwhile.
 */
export interface PreparedCertificate extends Unsigned {
  readonly state: 'prepared';
}

export interface VoidedCertificate extends Unsigned {
  readonly state: 'voided';
  readonly revocation: Revocation | null;
}

export interface IssuedCertificate extends RequestedCertificate {
  readonly state: 'issued';
  readonly preparation: Preparation;
  readonly der: Uint8Array;
  readonly issuedAt: number;
  /** 1, 2, 3 … within the order, in the order of issuance. */
  readonly version: number;
  /** The certificate that was current until this one was issued. */
  readonly replacesId: CertificateId | null;
  readonly revocation: Revocation | null;
  readonly encryption: SignedHalf | null;
}

/** The encryption half of a dual certificate, prepared and issued together with it. */
interface EncryptionHalf {
  readonly escrowedKeyId: string;
  /** Lower-case hexadecimal. */
  readonly serial: string;
  /** The private key, readable with the signing key of the certificate only: SM2EnvelopedKey, DER. */
  readonly envelope: Uint8Array;
}

export interface UnsignedHalf extends EncryptionHalf {
  readonly toBeSigned: Uint8Array;
}

export interface SignedHalf extends EncryptionHalf {
  readonly der: Uint8Array;
}

/** Certificates whose serial number may exist in the world: only these can be revoked. */
export type RevocableCertificate = IssuedCertificate | VoidedCertificate;

/** Null for a certificate that cannot be revoked, too. */
export const revocationOf = (certificate: CertificateRecord): Revocation | null =>
  'revocation' in certificate ? certificate.revocation : null;

export type RevocationReason =
  | 'superseded'
  | 'key_compromise'
  | 'cessation_of_operation'
  | 'affiliation_changed'
  | 'privilege_withdrawn';
/** `key_compromise`: not this certificate but its key was reported. */
export const REVOCATION_CAUSES = ['name_removed', 'previous_replaced', 'requested', 'key_compromise'] as const;
export type RevocationCause = (typeof REVOCATION_CAUSES)[number];

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
