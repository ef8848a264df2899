// Pending certificates: enqueue, cancel, lapse.

import type { Cancellation, CancellationReason, PendingCertificate } from '../../domain/certificate/certificate.ts';
import type { Order, OrderStatus } from '../../domain/certificate/order.ts';
import { requireTransition } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId, NewId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { checkBackoff } from '../../domain/validation/check-result.ts';
import { byService } from '../access/audit.ts';
import { type CheckResults, findingsOf, NOTHING_CHECKED, type ValidationTools } from './check-names.ts';

/** Call in the transaction that returns the certificate's id to the caller, or records it for a later answer. */
export async function beginWaiting(
  tx: Repositories,
  record: PendingCertificate,
  pendingMs: number,
  results: CheckResults = NOTHING_CHECKED,
): Promise<void> {
  const { id: certificateId, accountId, orderId, createdAt } = record;
  await tx.certificates.insert(record);
  await tx.waiting.insert({
    certificateId,
    accountId,
    orderId,
    dueAt: tx.sharedNow() + checkBackoff(0),
    tries: results === NOTHING_CHECKED ? 0 : 1,
    expiresAt: createdAt + pendingMs,
    findings: findingsOf(results, createdAt),
  });
}

type Ending = Cancellation & { readonly newId: NewId };

/** Returns the order afterwards: a reissue returns to `issued`, a first certificate ends the order as `first`. */
export async function stopWaiting(
  tx: Repositories,
  order: Order,
  first: 'canceled' | 'rejected',
  ending: Ending,
): Promise<Order> {
  return await endPending(tx, order, order.status === 'reissuing' ? 'issued' : first, ending);
}

/** Cancels what is pending, and tells the account of a reissue that ends without a certificate. */
export async function endPending(
  tx: Repositories,
  order: Order,
  status: OrderStatus,
  { reason, at, newId }: Ending,
): Promise<Order> {
  const { id: orderId, accountId, pendingCertificateId: certificateId } = order;
  requireTransition(order.status, status);
  if (certificateId !== null) {
    await tx.certificates.cancel({ accountId, orderId, certificateId }, { reason, at });
    await tx.waiting.delete(accountId, certificateId);
  }
  const after: Order = { ...order, status, pendingCertificateId: null };
  await tx.orders.save(after);
  if (order.status === 'reissuing' && certificateId !== null) {
    const event = { action: 'order:reissue_canceled', orderStatus: status, createdAt: at } as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, certificateId, ...event });
  }
  return after;
}

interface LapsedCertificate {
  readonly order: Order;
  readonly certificateId: CertificateId;
  readonly reason: CancellationReason;
}

/** Ends a pending certificate that expired, or that can never be issued as requested. */
export async function lapse(
  { now, newId, audit }: Pick<ValidationTools, 'now' | 'newId' | 'audit'>,
  tx: Repositories,
  { order, certificateId, reason }: LapsedCertificate,
): Promise<void> {
  const { id: orderId, accountId } = order;
  const { status: orderStatus } = await stopWaiting(tx, order, 'rejected', { reason, at: now(), newId });
  if (orderStatus === 'rejected') {
    const action = 'order:rejected' as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, orderStatus, certificateId, action, createdAt: now() });
  }
  const details = { certificate_id: certificateId, was: order.status, reason };
  await audit(tx, byService(accountId), 'order:lapsed', orderId, details);
}

export const notWaiting = ({ status }: Order): Refusal =>
  new Refusal('order_state_conflict', {
    reason: {
      en: `The order is ${status}; nothing of it waits for domain validation.`,
      zh: `订单状态为 ${status}，没有等待域名验证的证书。`,
    },
    details: { status },
  });
