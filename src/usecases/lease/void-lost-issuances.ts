// Voids issuances whose signer is lost, and frees their orders. The serial number stays taken and revocable: a signature
// may exist somewhere.

import type { PreparedCertificate } from '../../domain/certificate/certificate.ts';
import { isBeingPlaced, type Order, requireTransition } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import { isSignerAlive, type Signing } from '../../domain/issuance/ports.ts';
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

interface VoidTools {
  readonly now: Clock;
  readonly newId: NewId;
}

/** Call under the order's lock. */
export async function voidSigning(
  tools: VoidTools,
  tx: Repositories,
  { order, signing }: { readonly order: Order; readonly signing: Signing },
): Promise<void> {
  await tx.signings.void(order.id, tools.newId());
  await afterSigning(tools, tx, { order, signing, why: 'its placement was interrupted' });
}

/** Call under the order's lock, for what was certainly not signed: its serial number is forgotten. */
export async function discardSigning(
  tools: VoidTools,
  tx: Repositories,
  unsigned: { readonly order: Order; readonly signing: Signing; readonly why: string },
): Promise<void> {
  await tx.signings.discard(unsigned.order.id);
  await afterSigning(tools, tx, unsigned);
}

/**
 * Ends the lease of an issuance whose key did not sign, so that its order is free at once. Its serial number is forgotten
 * only if there is certainly no signature; it is never sent to the key again.
 */
export async function giveUpSigning(
  { store, ...tools }: VoidTools & { readonly store: Store },
  { accountId, orderId, id }: PreparedCertificate,
  isUnsigned: boolean,
): Promise<void> {
  await store.transaction(async (tx) => {
    const found = await tx.orders.findForUpdate(accountId, orderId);
    // Its lease was lost, and it is voided already.
    if (found?.signing?.certificateId !== id) return;
    const given = { order: found.order, signing: found.signing };
    if (isUnsigned) await discardSigning(tools, tx, { ...given, why: 'the token of its issuer did not answer' });
    else await voidSigning(tools, tx, given);
  });
}

async function afterSigning(
  tools: VoidTools,
  tx: Repositories,
  { order, signing, why }: { readonly order: Order; readonly signing: Signing; readonly why: string },
): Promise<void> {
  const { id, accountId, alternativeId, status } = order;
  await tx.orders.save(afterLostSigner(order));
  if (!isBeingPlaced(order)) return;
  await tx.orders.releaseAlternative(accountId, id);
  const details = { certificate_id: signing.certificateId, was: status, alternative_order_id: alternativeId };
  await auditLog(tools)(tx, byService(accountId), 'order:lapsed', id, { ...details, why });
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
