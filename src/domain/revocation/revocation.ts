// What may be revoked, why and when; and on which list of its issuer a serial number stands. Pure. That nothing is
// revoked before its replacement is issued is a matter of the transaction that issues it, not of this file.

import type { Product } from '../catalog/products.ts';
import type { CertificateRecord, Revocation, RevocationReason } from '../certificate/order.ts';
import { parseDateTime } from '../certificate/validity.ts';
import { invalid, Refusal } from '../errors.ts';

/** The number of a reason in lists and in OCSP (RFC 5280, 5.3.1). 0, "unspecified", is never written. */
export const REASON_CODES: Readonly<Record<RevocationReason, number>> = {
  key_compromise: 1,
  affiliation_changed: 3,
  superseded: 4,
  cessation_of_operation: 5,
  privilege_withdrawn: 9,
};

/** What a customer may say; `privilege_withdrawn` is for the operator to say about a customer. */
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

/** Without a word from the customer: one that was replaced is superseded, any other is given up. */
export const defaultReason = (isReplaced: boolean): RevocationReason =>
  isReplaced ? 'superseded' : 'cessation_of_operation';

/** A list of revocations is fetched whole, so the certificates of an issuer are spread over several. */
export const CRL_SHARDS = 16;

/** Of a serial number in hexadecimal. It is written into the certificate, and so for ever. */
export const shardOf = (serial: string): number => Number.parseInt(serial.slice(-2), 16) % CRL_SHARDS;

/** One list of one issuer. */
export interface ListRef {
  readonly issuerId: string;
  readonly shard: number;
}

export const listKey = ({ issuerId, shard }: ListRef): string => `${issuerId}/${shard}`;

/** The halves of a dual certificate are one: whoever may not sign any more shall not be written to either. */
export const serialsOf = ({ preparation, encryption }: Pick<CertificateRecord, 'preparation' | 'encryption'>) =>
  preparation
    ? [preparation.serial, ...(encryption ? [encryption.serial] : [])].map((serial) => ({
        ...{ issuerId: preparation.issuerId, shard: shardOf(serial), serial },
      }))
    : [];

/** A serial number that was never issued can be revoked too, if perhaps a signature exists: that is what voided means. */
export function requireRevocable({ id, state }: Pick<CertificateRecord, 'id' | 'state'>): void {
  if (state === 'issued' || state === 'voided') return;
  throw conflict(
    `Certificate ${id} is ${state === 'canceled' ? 'canceled' : 'not issued yet'}: there is nothing to revoke.`,
    `证书 ${id} ${state === 'canceled' ? '已取消' : '尚未签发'}，无可吊销。`,
  );
}

/** The revocation that is still to come; one that happened cannot be changed any more. */
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

/** Beyond its own end there is nothing left to put off. */
export function requireBeforeExpiry(dueAt: number, notAfter: number): void {
  if (dueAt <= notAfter) return;
  throw invalid(
    'due_at',
    'due_at lies after the end of the certificate. Cancel the revocation instead, where the product allows it.',
    'due_at 晚于证书到期时间；如产品允许，请改为取消吊销。',
  );
}

/** When a revocation shall happen, in the wire's words. */
export function parseDueAt(text: string): number {
  const moment = parseDateTime(text);
  if (moment !== undefined) return moment;
  throw invalid(
    'due_at',
    'due_at is an RFC 3339 date-time such as 2027-01-31T12:00:00Z.',
    'due_at 须为 RFC 3339 日期时间，如 2027-01-31T12:00:00Z。',
  );
}

const conflict = (en: string, zh: string): Refusal => new Refusal('revocation_state_conflict', { reason: { en, zh } });
