// Issuances whose signer never came back: what they had prepared is voided, and their orders are free again, wait again or
// are rejected. A serial number that was written down stays taken, and revocable: perhaps a signature exists somewhere.

import { type Order, requireTransition } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';

const BATCH = 100;

/**
 * A reissue leaves the order as it was. A first certificate that waited for proof waits again; one that was to be issued
 * at once was promised to nobody, and its order ends.
 */
function afterLoss(order: Order): Order {
  if (order.status !== 'issuing') return order;
  const status = order.pendingCertificateId === null ? 'rejected' : 'domain_verifing';
  requireTransition(order.status, status);
  return { ...order, status };
}

/** Only leases that have run out are touched, never a live instance's work. Returns how many there were. */
export async function voidLostIssuances(store: Store, now: Clock, newId: NewId): Promise<number> {
  let voided = 0;
  for (;;) {
    const overdue = await store.orders.overdue(now(), BATCH);
    for (const { accountId, orderId } of overdue) {
      await store.transaction(async (tx) => {
        const found = await tx.orders.findForUpdate(accountId, orderId);
        // Its signer may have finished, or another instance been faster, since the list was made.
        if (!found?.signing || found.signing.until > now()) return;
        await tx.certificates.void(found.signing.certificateId, newId());
        const after = afterLoss(found.order);
        await tx.orders.save(after);
        if (after.status === 'rejected') {
          const { certificateId } = found.signing;
          const rejected = { action: 'order:rejected', orderStatus: after.status, createdAt: now() } as const;
          await tx.outbox.add({ id: newId(), accountId, orderId, certificateId, ...rejected });
        }
        voided += 1;
      });
    }
    if (overdue.length < BATCH) return voided;
  }
}
