// Ends what an order has pending without a certificate: on request, because it lapsed, or because the order ended.
import type { Cancellation } from '../../domain/certificate/certificate.ts';
import { awaitsCsr, type Order, type OrderStatus, requireTransition } from '../../domain/certificate/order.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';

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
  if (awaitsCsr(order)) await tx.acmeOrders.end(orderId);
  const after: Order = { ...order, status, pendingCertificateId: null };
  await tx.orders.save(after);
  if (order.status === 'reissuing' && certificateId !== null) {
    const event = { action: 'order:reissue_canceled', orderStatus: status, createdAt: at } as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, certificateId, ...event });
  }
  return after;
}
