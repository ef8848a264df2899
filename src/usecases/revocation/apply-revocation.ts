// Applies a revocation in a transaction that holds the order's lock: marks the certificate once, records its serial
// numbers for CRLs and OCSP, writes the event and the audit row, and ends an order left without a valid certificate.
// Callers decide when to revoke, and for which reason.
import type { Actor } from '../../domain/access/credential.ts';
import type {
  RevocableCertificate,
  Revocation,
  RevocationCause,
  RevocationReason,
} from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { NewId } from '../../domain/ids.ts';
import { type CrlRef, serialsOf } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';
import { endPending } from '../lease/end-pending.ts';

/** A certificate that can be revoked, with its order under its lock. */
export interface LockedRevocable {
  readonly certificate: RevocableCertificate;
  readonly order: Order;
}

export interface RevocationAct {
  readonly reason: RevocationReason;
  readonly cause: RevocationCause;
  readonly at: number;
  /** When it took effect, if that was before it is recorded. */
  readonly revokedAt?: number | undefined;
  /** Who acted, for the audit log. */
  readonly by: Pick<Actor, 'actor' | 'requestId'>;
}

/** Returns the CRLs to publish; none when the certificate was revoked before. */
export async function applyRevocation(
  tx: Repositories,
  newId: NewId,
  { certificate, order }: LockedRevocable,
  { reason, cause, at, revokedAt = at, by: { actor, requestId } }: RevocationAct,
): Promise<CrlRef[]> {
  const { id: certificateId, accountId, orderId, preparation } = certificate;
  if (!(await tx.revocations.markRevoked(certificateId, { reason, cause, at: revokedAt }))) return [];
  const { notAfter } = preparation;
  const serials = serialsOf(certificate);
  for (const one of serials) {
    await tx.revokedSerials.insert({ ...one, certificateId, reason, revokedAt, notAfter });
  }
  const wasValid = certificate.state === 'issued' && notAfter >= at;
  const orderStatus = wasValid ? await statusAfter(tx, order, { at, newId }) : order.status;
  const audit = auditLog({ now: () => at, newId });
  await audit(tx, { accountId, actor, requestId }, 'certificate:revoked', certificateId, {
    ...{ order_id: orderId, reason, cause, serial_numbers: serials.map(({ serial }) => serial).join(' ') },
  });
  // A voided serial number was never announced to the customer, so its revocation is not either.
  if (certificate.state === 'issued') {
    await tx.outbox.add({
      ...{ id: newId(), accountId, orderId, orderStatus, certificateId, action: 'order:revoked', createdAt: at },
    });
  }
  return serials;
}

/** ADR 0007: an order ends when its last valid certificate is revoked, and its pending reissue is canceled with it. */
async function statusAfter(
  tx: Repositories,
  order: Order,
  { at, newId }: { readonly at: number; readonly newId: NewId },
): Promise<Order['status']> {
  const mayEnd = order.status === 'issued' || order.status === 'reissuing';
  if (!mayEnd || (await tx.certificates.hasUnrevoked(order.accountId, order.id, at))) return order.status;
  return (await endPending(tx, order, 'revoked', { reason: 'order_revoked', at, newId })).status;
}

/** The row to schedule before applyRevocation marks it, for a revocation that was not scheduled. */
export const dueNow = ({ reason, cause, at }: Omit<RevocationAct, 'by'>): Revocation => ({
  ...{ reason, cause, causedById: null, dueAt: at, revokedAt: null },
});
