// Cancel what waits: an order without its first certificate ends, and a reissue that is pending is given up, with the
// earlier certificate as it was. What has been issued is not canceled but revoked.
import type { Actor } from '../../domain/access/credential.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { NewId, OrderId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { stopWaiting } from '../validation/pending-certificates.ts';

/** The order as it is afterwards. */
export type CancelOrder = (by: Actor, orderId: OrderId) => Promise<Order>;

export function cancelOrder(store: Store, now: Clock, newId: NewId): CancelOrder {
  return async (by, orderId) =>
    await store.transaction(async (tx) => {
      const found = await tx.orders.findForUpdate(by.accountId, orderId);
      if (!found) throw new Refusal('order_not_found');
      const { order, signing } = found;
      // It is being signed at this moment: what comes of it decides.
      if (signing && signing.until > now()) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
      // Its signer is lost: the serial number stays taken, whatever becomes of the order.
      if (signing) await tx.certificates.void(signing.certificateId, newId());
      const canceled = await stopWaiting(tx, order, 'canceled');
      await tx.audit.append({
        ...{ id: newId(), at: now(), ...by, action: 'order:canceled', subject: order.id },
        details: { certificate_id: order.pendingCertificateId, was: order.status },
      });
      return canceled;
    });
}
