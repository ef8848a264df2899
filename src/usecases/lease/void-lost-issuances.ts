// Voids issuances whose signer let its lease expire, and frees their orders. The serial number stays taken and revocable:
// a signature may exist somewhere.

import { type Order, requireTransition } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';

const BATCH = 100;

/**
 * A reissue leaves the order unchanged. A first certificate that was pending validation becomes pending again. Otherwise
 * no answer was sent to the caller, and the order is rejected.
 */
function afterLostSigner(order: Order): Order {
  if (order.status !== 'issuing') return order;
  const status = order.pendingCertificateId === null ? 'rejected' : 'domain_verifing';
  requireTransition(order.status, status);
  return { ...order, status };
}

/** Touches expired leases only, never the work of a live instance. Returns how many issuances were voided. */
export async function voidLostIssuances(store: Store, now: Clock, newId: NewId): Promise<number> {
  let voided = 0;
  for (;;) {
    const overdue = await store.signings.overdue(now(), BATCH);
    for (const { accountId, orderId } of overdue) {
      await store.transaction(async (tx) => {
        const found = await tx.orders.findForUpdate(accountId, orderId);
        // The list was read unlocked: the signer may have finished, or another instance may have voided it.
        if (!found?.signing || found.signing.until > now()) return;
        const { certificateId } = found.signing;
        await tx.signings.void(orderId, newId());
        const after = afterLostSigner(found.order);
        await tx.orders.save(after);
        if (after.status === 'rejected') {
          const rejected = { action: 'order:rejected', orderStatus: after.status, createdAt: now() } as const;
          await tx.outbox.add({ id: newId(), accountId, orderId, certificateId, ...rejected });
        }
        voided += 1;
      });
    }
    if (overdue.length < BATCH) return voided;
  }
}
