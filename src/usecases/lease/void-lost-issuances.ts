// Voids issuances whose signer is lost, and frees their orders. The serial number stays taken and revocable: a signature
// may exist somewhere.

import { type Order, requireTransition } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import { isSignerAlive, type Signing } from '../../domain/issuance/ports.ts';
import type { Repositories, Store } from '../../domain/store.ts';

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

interface VoidTools {
  readonly now: Clock;
  readonly newId: NewId;
}

/** Call under the order's lock. Returns the order as it is afterwards. */
export async function voidSigning(
  { now, newId }: VoidTools,
  tx: Repositories,
  { order, signing: { certificateId } }: { readonly order: Order; readonly signing: Signing },
): Promise<Order> {
  const { id: orderId, accountId } = order;
  await tx.signings.void(orderId, newId());
  const after = afterLostSigner(order);
  await tx.orders.save(after);
  if (after.status === 'rejected') {
    const rejected = { action: 'order:rejected', orderStatus: after.status, createdAt: now() } as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, certificateId, ...rejected });
  }
  return { ...after, revision: after.revision + 1 };
}

/** Touches leases of lost signers only, never the work of a live instance. Returns how many issuances were voided. */
export async function voidLostIssuances(store: Store, now: Clock, newId: NewId): Promise<number> {
  let voided = 0;
  for (;;) {
    const lost = await store.signings.overdue(store.sharedNow(), BATCH);
    for (const { accountId, orderId } of lost) {
      await store.transaction(async (tx) => {
        const found = await tx.orders.findForUpdate(accountId, orderId);
        // The list was read unlocked: the signer may have finished, or another instance may have voided it.
        if (!found?.signing || isSignerAlive(found.signing, tx.sharedNow())) return;
        await voidSigning({ now, newId }, tx, { order: found.order, signing: found.signing });
        voided += 1;
      });
    }
    if (lost.length < BATCH) return voided;
  }
}
