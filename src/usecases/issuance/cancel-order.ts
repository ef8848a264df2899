// Cancels what waits for validation: an order without its first certificate ends; a pending reissue is dropped, and the
// earlier certificate stays. An issued certificate is revoked instead.
import type { Actor } from '../../domain/access/credential.ts';
import { isCancelable, type Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import { isSignerAlive } from '../../domain/issuance/ports.ts';
import { stopWaiting } from '../lease/end-pending.ts';
import type { IssuanceTools } from './tools.ts';

/** Returns the order as it is afterwards. */
export type CancelOrder = (by: Actor, orderId: OrderId) => Promise<Order>;

export function cancelOrder({ store, now, newId, audit }: IssuanceTools): CancelOrder {
  return async (by, orderId) =>
    await store.transaction(async (tx) => {
      const found = await tx.orders.findForUpdate(by.accountId, orderId);
      if (!found) throw new Refusal('order_not_found');
      const { order, signing } = found;
      // It is being signed: the outcome decides.
      if (signing && isSignerAlive(signing, tx.sharedNow()))
        throw new Refusal('service_busy', { retryAfterSeconds: 1 });
      // The signer is lost: its serial number stays taken, whatever becomes of the order.
      if (signing) await tx.signings.void(orderId, newId());
      if (!isCancelable(order)) throw new Refusal('cancel_not_allowed', { details: { status: order.status } });
      const canceled = await stopWaiting(tx, order, 'canceled', { reason: 'requested', at: now(), newId });
      const details = { certificate_id: order.pendingCertificateId, was: order.status };
      await audit(tx, by, 'order:canceled', order.id, details);
      return canceled;
    });
}
