// Reasons in revocation requests of ACME: those that a holder may give (RFC 5280, 5.3.1).
import type { RevocationReason } from '../certificate/certificate.ts';
import { CUSTOMER_REASONS, REASON_CODES } from '../revocation/revocation.ts';
import { AcmeProblem } from './problem.ts';

/** Undefined for none, and for 0, "unspecified": the service writes the reason that fits. */
export function parseReason(code: unknown): RevocationReason | undefined {
  if (code === undefined || code === null || code === 0) return undefined;
  const reason = CUSTOMER_REASONS.find((one) => REASON_CODES[one] === code);
  if (reason) return reason;
  const codes = CUSTOMER_REASONS.map((one) => REASON_CODES[one]).sort();
  throw new AcmeProblem('badRevocationReason', {
    en: `reason is one of 0, ${codes.join(', ')}, or left out.`,
    zh: `reason 须为 0、${codes.join('、')} 之一，或不发送。`,
  });
}
