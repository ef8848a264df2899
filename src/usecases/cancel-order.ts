// Cancel what waits: an order without its first certificate ends, and a reissue that is pending is given up, with the
// earlier certificate as it was. What has been issued is not canceled but revoked.
import type { Actor } from '../domain/credential.ts';
import { Refusal } from '../domain/errors.ts';
import type { NewId } from '../domain/ids.ts';
import { type Order, requireTransition } from '../domain/order.ts';
import type { Clock, Store } from '../domain/ports.ts';

/** The order as it is afterwards. */
export type CancelOrder = (by: Actor, orderId: string) => Promise<Order>;

export function cancelOrder(store: Store, now: Clock, newId: NewId): CancelOrder {
  return async (by, orderId) =>
    await store.transaction(async (to) => {
      const found = await to.orders.findForUpdate(by.accountId, orderId);
      if (!found) throw new Refusal('order_not_found');
      const { order, signing } = found;
      // It is being signed at this moment: what comes of it decides.
      if (signing && signing.until > now()) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
      const status = order.status === 'reissuing' ? 'issued' : 'canceled';
      requireTransition(order.status, status);
      const certificateId = order.pendingCertificateId;
      if (certificateId !== null) await to.certificates.cancel(by.accountId, certificateId);
      const canceled: Order = { ...order, status, pendingCertificateId: null };
      await to.orders.save(canceled);
      await to.audit.append({
        ...{ id: newId(), at: now(), ...by, action: 'order:canceled', subject: order.id },
        details: { certificate_id: certificateId, was: order.status },
      });
      return canceled;
    });
}
