// Voids issuances whose signer let its lease expire, and frees their orders. The serial number stays taken and revocable:
// a signature may exist somewhere.

import { isBeingPlaced, type Order, requireTransition } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { auditLog, byService } from '../access/audit.ts';

const BATCH = 100;

/**
 * A reissue leaves the order unchanged. A first certificate that was pending validation becomes pending again. Otherwise
 * no answer was sent to the caller: the order ends without an event, and the customer's own id is free again (ADR 0045).
 */
function afterLostSigner(order: Order): Order {
  if (order.status !== 'issuing') return order;
  const status = isBeingPlaced(order) ? 'canceled' : 'domain_verifing';
  requireTransition(order.status, status);
  return { ...order, status };
}

/** Touches expired leases only, never the work of a live instance. Returns how many issuances were voided. */
export async function voidLostIssuances(store: Store, now: Clock, newId: NewId): Promise<number> {
  const audit = auditLog({ now, newId });
  async function release(tx: Repositories, order: Order, certificateId: string): Promise<void> {
    const { id, accountId, alternativeId, status } = order;
    await tx.orders.releaseAlternative(accountId, id);
    const details = { certificate_id: certificateId, was: status, alternative_order_id: alternativeId };
    await audit(tx, byService(accountId), 'order:lapsed', id, { ...details, why: 'its placement was interrupted' });
  }

  let voided = 0;
  for (;;) {
    const overdue = await store.signings.overdue(now(), BATCH);
    for (const { accountId, orderId } of overdue) {
      await store.transaction(async (tx) => {
        const found = await tx.orders.findForUpdate(accountId, orderId);
        // The list was read unlocked: the signer may have finished, or another instance may have voided it.
        if (!found?.signing || found.signing.until > now()) return;
        const { order, signing } = found;
        await tx.signings.void(orderId, newId());
        await tx.orders.save(afterLostSigner(order));
        if (isBeingPlaced(order)) await release(tx, order, signing.certificateId);
        voided += 1;
      });
    }
    if (overdue.length < BATCH) return voided;
  }
}
