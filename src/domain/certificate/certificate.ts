// Every certificate made for an order, by state: a state has exactly the facts that are known in it. The record says what
// was requested and consented to; what a reissue may do is decided elsewhere. No private keys here.
import type { Localized } from '../../kernel/locale.ts';
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
  /** Null for one that was canceled before the reason was kept. */
  readonly cancellation: Cancellation | null;
}

/** Why a pending certificate was never issued, with what the customer can do. */
export const CANCELLATION_REASONS = {
  requested: { en: 'It was canceled on request.', zh: '已按请求取消。' },
  validation_lapsed: {
    en: 'Its names were not proven in time. Reissue, and publish the records.',
    zh: '域名未在期限内完成验证，请重新申请重签并发布记录。',
  },
  expiration_passed: {
    en: 'The date it should have ended on, or the term of the order, passed while it waited. Reissue with a later date, or place a new order.',
    zh: '等待期间，所要求的到期日期或订单期限已过，请以更晚的日期重签，或重新下单。',
  },
  key_compromised: {
    en: 'Its key was reported as compromised while it waited. Reissue with a CSR of a new key.',
    zh: '等待期间，其密钥被报告已泄露，请使用新密钥的 CSR 重签。',
  },
  order_revoked: {
    en: 'The last valid certificate of the order was revoked while it waited. Place a new order.',
    zh: '等待期间，订单的最后一张有效证书被吊销，请重新下单。',
  },
} as const satisfies Record<string, Localized>;
export type CancellationReason = keyof typeof CANCELLATION_REASONS;

export interface Cancellation {
  readonly reason: CancellationReason;
  readonly at: number;
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

/** As the account sees a certificate. A revocation still to come does not count. */
export type CertificateStatus = CertificateState | 'revoked';
export const CERTIFICATE_STATUSES = [...CERTIFICATE_STATES, 'revoked'] as const;

export const statusOf = (certificate: CertificateRecord): CertificateStatus =>
  revocationOf(certificate)?.revokedAt ? 'revoked' : certificate.state;

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
