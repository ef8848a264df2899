// What revoking a certificate means, in a transaction that holds the lock of its order: it is marked once, its serial
// numbers go to where lists and OCSP look, the event and the audit row are written, and an order that is left without
// any valid certificate ends. When it may happen, and for which reason, is decided by the callers.
import type { Actor } from '../../domain/access/credential.ts';
import type {
  CertificateRecord,
  Order,
  Revocation,
  RevocationCause,
  RevocationReason,
} from '../../domain/certificate/order.ts';
import { requireTransition } from '../../domain/certificate/order.ts';
import type { NewId } from '../../domain/ids.ts';
import { type ListRef, serialsOf } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';

export interface RevocationAct {
  readonly reason: RevocationReason;
  readonly cause: RevocationCause;
  readonly at: number;
  readonly by: Pick<Actor, 'actor' | 'requestId'>;
}

/** Nobody's hand: its time had come. */
export const SERVICE: RevocationAct['by'] = { actor: 'service', requestId: null };

/** The lists that have something new to show; none when it was revoked before. */
export async function applyRevocation(
  tx: Repositories,
  newId: NewId,
  certificate: CertificateRecord,
  order: Order,
  { reason, cause, at, by }: RevocationAct,
): Promise<ListRef[]> {
  const { id: certificateId, accountId, orderId, preparation } = certificate;
  if (!preparation || !(await tx.revocations.applyRevocation(certificateId, { reason, cause, at }))) return [];
  const { notAfter } = preparation;
  const serials = serialsOf(certificate);
  for (const one of serials) {
    await tx.revokedSerials.insert({ ...one, certificateId, reason, revokedAt: at, notAfter });
  }
  const wasValid = certificate.state === 'issued' && notAfter >= at;
  const orderStatus = wasValid ? await statusAfter(tx, order, at) : order.status;
  await tx.audit.append({
    ...{ id: newId(), at, accountId, ...by, action: 'certificate:revoked', subject: certificateId },
    details: { order_id: orderId, reason, cause, serial_numbers: serials.map(({ serial }) => serial).join(' ') },
  });
  // Of a serial number that was voided nobody has ever heard: there is nobody to tell.
  if (certificate.state === 'issued') {
    await tx.outbox.add({
      ...{ id: newId(), accountId, orderId, orderStatus, certificateId, action: 'order:revoked', createdAt: at },
    });
  }
  return serials;
}

/** ADR 0007: an order ends when its last valid certificate is revoked, and a reissue that waits ends with it. */
async function statusAfter(tx: Repositories, order: Order, at: number): Promise<Order['status']> {
  const mayEnd = order.status === 'issued' || order.status === 'reissuing';
  if (!mayEnd || (await tx.certificates.hasUnrevoked(order.accountId, order.id, at))) return order.status;
  requireTransition(order.status, 'revoked');
  const { pendingCertificateId } = order;
  if (pendingCertificateId !== null) {
    await tx.certificates.cancel(order.accountId, pendingCertificateId);
    await tx.waiting.delete(order.accountId, pendingCertificateId);
  }
  await tx.orders.save({ ...order, status: 'revoked', pendingCertificateId: null });
  return 'revoked';
}

export const scheduledFor = (deed: Omit<RevocationAct, 'by'>): Revocation => ({
  reason: deed.reason,
  cause: deed.cause,
  causedById: null,
  dueAt: deed.at,
  revokedAt: null,
});
