// An order that was placed over ACME. It is an order like any other (domain/certificate/order.ts), which has no certificate
// before its CSR arrives: this record is what is known about it besides. Statuses of ACME are derived, never stored.
import { DAY_MS } from '../../kernel/durations.ts';
import { awaitsCsr, type Order } from '../certificate/order.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import { type Authorization, authorizationStatus } from './authorization.ts';
import type { StoredProblem } from './stored-problem.ts';

export interface AcmeOrder {
  readonly orderId: OrderId;
  readonly accountId: AccountId;
  readonly acmeAccountId: string;
  /** The account as the client knows it: CAA may name it. */
  readonly acmeAccountUrl: string;
  /** What its certificate is called, also before there is one. Never that of another order, and never a reissue. */
  readonly certificateId: CertificateId;
  /** The certificate that this order renews, also as the client named it (RFC 9773). */
  readonly replaces: { readonly certId: string; readonly certificateId: CertificateId } | null;
  /** Whether its issuance revokes that certificate, by the consent that its binding carries. */
  readonly revokesReplaced: boolean;
  /** As requested, RFC 3339. */
  readonly notAfter: string | null;
  /** When an order ends that has not got its CSR by then. */
  readonly expiresAt: number;
  /** Why it ended without a certificate, if that is known. */
  readonly problem: StoredProblem | null;
  /** Until then the record is kept. */
  readonly keepUntil: number;
}

export type AcmeOrderStatus = 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';

/** RFC 8555, 7.1.6. An order that was revoked or reissued later stays valid: its certificate was issued. */
export function acmeOrderStatus(
  order: Order,
  { expiresAt }: Pick<AcmeOrder, 'expiresAt'>,
  authorizations: readonly Authorization[],
  now: number,
): AcmeOrderStatus {
  if (order.currentCertificateId !== null) return 'valid';
  if (order.status === 'canceled' || order.status === 'rejected') return 'invalid';
  if (!awaitsCsr(order)) return 'processing';
  if (expiresAt <= now) return 'invalid';
  const statuses = authorizations.map((one) => authorizationStatus(one, now));
  if (statuses.every((status) => status === 'valid')) return 'ready';
  return statuses.every((status) => status === 'valid' || status === 'pending') ? 'pending' : 'invalid';
}

/** Clients look at what has ended for a while. */
export const KEEP_ENDED_MS = 7 * DAY_MS;

/** Bounds what an ACME account can have open: each costs a row, and questions to third-party servers. */
export const MAX_PENDING_AUTHORIZATIONS = 300;
