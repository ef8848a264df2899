// A certificate begins to wait, and stops waiting without having been issued.

import type { CertificateRecord, Order } from '../../domain/certificate/order.ts';
import { requireTransition } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId, NewId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { waitAfter } from '../../domain/validation/check-result.ts';
import { type CheckResults, findingsOf, NOTHING_CHECKED } from './check-names.ts';

/** In the transaction that answers its id, or promises to. */
export async function beginWaiting(
  tx: Repositories,
  record: CertificateRecord,
  pendingMs: number,
  looked: CheckResults = NOTHING_CHECKED,
): Promise<void> {
  const { id: certificateId, accountId, orderId, createdAt } = record;
  await tx.certificates.insert(record);
  await tx.waiting.insert({
    certificateId,
    accountId,
    orderId,
    dueAt: createdAt + waitAfter(0),
    tries: looked === NOTHING_CHECKED ? 0 : 1,
    expiresAt: createdAt + pendingMs,
    findings: findingsOf(looked, createdAt),
  });
}

/** The order afterwards: a reissue leaves it as it was before, a first certificate takes it along. */
export async function stopWaiting(tx: Repositories, order: Order, first: 'canceled' | 'rejected'): Promise<Order> {
  const { accountId, pendingCertificateId } = order;
  const status = order.status === 'reissuing' ? 'issued' : first;
  requireTransition(order.status, status);
  if (pendingCertificateId !== null) {
    await tx.certificates.cancel(accountId, pendingCertificateId);
    await tx.waiting.delete(accountId, pendingCertificateId);
  }
  const after: Order = { ...order, status, pendingCertificateId: null };
  await tx.orders.save(after);
  return after;
}

/** It waited too long, or can never be issued as it was asked for. */
export async function lapse(
  tx: Repositories,
  order: Order,
  certificateId: CertificateId,
  why: string,
  at: number,
  newId: NewId,
): Promise<void> {
  const { id: orderId, accountId } = order;
  const { status: orderStatus } = await stopWaiting(tx, order, 'rejected');
  if (orderStatus === 'rejected') {
    const action = 'order:rejected' as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, orderStatus, certificateId, action, createdAt: at });
  }
  await tx.audit.append({
    ...{ id: newId(), at, accountId, actor: 'service', action: 'order:lapsed', subject: orderId, requestId: null },
    details: { certificate_id: certificateId, was: order.status, why },
  });
}

export const notWaiting = ({ status }: Order): Refusal =>
  new Refusal('order_state_conflict', {
    reason: {
      en: `The order is ${status}; nothing of it waits for domain validation.`,
      zh: `订单状态为 ${status}，没有等待域名验证的证书。`,
    },
    details: { status },
  });
