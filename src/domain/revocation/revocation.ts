// Revocation rules: what may be revoked, for which reason and when, and which CRL shard lists a serial number.

import { DAY_MS } from '../../kernel/durations.ts';
import type { Product } from '../catalog/products.ts';
import type {
  CertificateRecord,
  RevocableCertificate,
  Revocation,
  RevocationReason,
} from '../certificate/certificate.ts';
import { parseDateTime } from '../certificate/validity.ts';
import { invalid, Refusal } from '../errors.ts';

/** CRLReason codes (RFC 5280, 5.3.1). 0, "unspecified", is never written. */
export const REASON_CODES: Readonly<Record<RevocationReason, number>> = {
  key_compromise: 1,
  affiliation_changed: 3,
  superseded: 4,
  cessation_of_operation: 5,
  privilege_withdrawn: 9,
};

/** Reasons that customers may give. `privilege_withdrawn` is the operator's verdict on a customer. */
export const CUSTOMER_REASONS = [
  'superseded',
  'cessation_of_operation',
  'key_compromise',
  'affiliation_changed',
] as const satisfies readonly RevocationReason[];
export const OPERATOR_REASONS = [
  ...CUSTOMER_REASONS,
  'privilege_withdrawn',
] as const satisfies readonly RevocationReason[];

export function requireReason(text: string, allowed: readonly RevocationReason[]): RevocationReason {
  const reason = allowed.find((one) => one === text);
  if (reason) return reason;
  throw invalid(
    'reason',
    `reason is one of ${allowed.join(', ')}; left out, the service writes the one that fits.`,
    `reason 须为 ${allowed.join('、')} 之一；不填时由服务选择合适的原因。`,
  );
}

/** The reason when the request gives none. */
export const defaultReason = (isReplaced: boolean): RevocationReason =>
  isReplaced ? 'superseded' : 'cessation_of_operation';

/** Verifiers fetch whole CRLs, so each issuer shards its revocations to keep them small. */
export const CRL_SHARDS = 16;

/** Shard of a hexadecimal serial number. It is part of the URL in the certificate, so it must never change. */
export const shardOf = (serial: string): number => Number.parseInt(serial.slice(-2), 16) % CRL_SHARDS;

/** How long before its end the next list of an offline root is asked for: a ceremony has to be arranged. */
export const OFFLINE_NOTICE_MS = 30 * DAY_MS;

/** One CRL: a shard of an issuer. */
export interface CrlRef {
  readonly issuerId: string;
  readonly shard: number;
}

export const crlKey = ({ issuerId, shard }: CrlRef): string => `${issuerId}/${shard}`;

/** Serial numbers to revoke, with their CRLs. Both halves of a dual certificate are revoked together. */
export const serialsOf = ({ preparation: { issuerId, serial }, encryption }: RevocableCertificate) =>
  [serial, ...(encryption ? [encryption.serial] : [])].map((one) => ({ issuerId, shard: shardOf(one), serial: one }));

/** A voided serial number can be revoked too: it was not issued, but a signature may exist. */
export const isRevocable = (certificate: CertificateRecord): certificate is RevocableCertificate =>
  certificate.state === 'issued' || certificate.state === 'voided';

export function requireRevocable(certificate: CertificateRecord): RevocableCertificate {
  if (isRevocable(certificate)) return certificate;
  const { id, state } = certificate;
  throw conflict(
    `Certificate ${id} is ${state === 'canceled' ? 'canceled' : 'not issued yet'}: there is nothing to revoke.`,
    `证书 ${id} ${state === 'canceled' ? '已取消' : '尚未签发'}，无可吊销。`,
  );
}

/** Returns the scheduled revocation. Refuses when there is none, or when it has happened. */
export function requireScheduled(revocation: Revocation | null): Revocation {
  if (revocation && revocation.revokedAt === null) return revocation;
  throw revocation
    ? conflict('The certificate is revoked already, and that cannot be taken back.', '该证书已吊销，无法撤回。')
    : conflict('No revocation of this certificate is scheduled.', '该证书没有已安排的吊销。');
}

export function requirePostponable({ revocationMayBePutOff }: Product): void {
  if (revocationMayBePutOff) return;
  throw conflict(
    'The product of this order does not let a revocation be put off or canceled; it can be brought forward.',
    '该订单的产品不允许推迟或取消吊销，但可以提前。',
  );
}

export function requireBeforeExpiry(dueAt: number, notAfter: number): void {
  if (dueAt <= notAfter) return;
  throw invalid(
    'due_at',
    'due_at lies after the end of the certificate. Cancel the revocation instead, where the product allows it.',
    'due_at 晚于证书到期时间；如产品允许，请改为取消吊销。',
  );
}

/** Parses `due_at`, in milliseconds. */
export function parseDueAt(text: string): number {
  const dueAt = parseDateTime(text);
  if (dueAt !== undefined) return dueAt;
  throw invalid(
    'due_at',
    'due_at is an RFC 3339 date-time such as 2027-01-31T12:00:00Z.',
    'due_at 须为 RFC 3339 日期时间，如 2027-01-31T12:00:00Z。',
  );
}

const conflict = (en: string, zh: string): Refusal => new Refusal('revocation_state_conflict', { reason: { en, zh } });
