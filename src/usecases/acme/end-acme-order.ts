// Ends an ACME order whose CSR has not arrived: a validation failed, an authorization was deactivated, or its time is over.
// It becomes `canceled`, which frees the certificate that it was to replace. No event: events name a certificate, and the
// order never had one (ADR 0069).
import { BYTES_PER_CERTIFICATE } from '../../domain/access/quota.ts';
import type { StoredProblem } from '../../domain/acme/stored-problem.ts';
import { awaitsCsr, type Order } from '../../domain/certificate/order.ts';
import type { Repositories } from '../../domain/store.ts';
import { byService } from '../access/audit.ts';
import { endPending } from '../lease/end-pending.ts';
import type { AcmeOrderTools } from './tools.ts';

/** An order and its names stay for ever, and count in the quota also if no certificate came of it. */
const BYTES_PER_NAME = 1024;
const storedBytesOf = ({ names }: Order): number => BYTES_PER_CERTIFICATE + names.length * BYTES_PER_NAME;

/** Call under the order's lock. Does nothing for an order that has its CSR, or has ended. */
export async function endAcmeOrder(
  { now, newId, audit }: Pick<AcmeOrderTools, 'now' | 'newId' | 'audit'>,
  tx: Repositories,
  order: Order,
  problem: StoredProblem,
): Promise<void> {
  if (!awaitsCsr(order)) return;
  await tx.acmeOrders.end(order.id, problem);
  await tx.accounts.addStored(order.accountId, storedBytesOf(order));
  await endPending(tx, order, 'canceled', { reason: 'validation_lapsed', at: now(), newId });
  const details = { was: order.status, reason: problem.type, why: problem.detail.en };
  await audit(tx, byService(order.accountId), 'order:lapsed', order.id, details);
}

const BATCH = 100;

const EXPIRED: StoredProblem = {
  type: 'malformed',
  detail: {
    en: 'The order was not finalized in time. Place a new one.',
    zh: '订单未在期限内完成，请重新下单。',
  },
};

/** Ends orders whose time is over. Returns how many. */
export async function endExpiredOrders(tools: AcmeOrderTools, stopping?: AbortSignal): Promise<number> {
  const { store } = tools;
  let ended = 0;
  while (!stopping?.aborted) {
    const expired = await store.acmeOrders.expired(store.sharedNow(), BATCH);
    for (const { accountId, orderId } of expired) {
      await store.transaction(async (tx) => {
        const found = await tx.orders.findForUpdate(accountId, orderId);
        if (found) await endAcmeOrder(tools, tx, found.order, EXPIRED);
        // Of an order that got its CSR in the moment before, and for one that lost its row.
        if (!found || !awaitsCsr(found.order)) await tx.acmeOrders.end(orderId);
      });
      ended += 1;
    }
    if (expired.length < BATCH) break;
  }
  return ended;
}
