// Pending certificates: enqueue, lapse.

import type { Account } from '../../domain/access/account.ts';
import { type Quotas, quotasOf, requireRoomToWait } from '../../domain/access/quota.ts';
import type { CancellationReason, PendingCertificate } from '../../domain/certificate/certificate.ts';
import { awaitsCsr, type Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { checkBackoff, pastCache } from '../../domain/validation/check-result.ts';
import { byService } from '../access/audit.ts';
import { stopWaiting } from '../lease/end-pending.ts';
import { type CheckResults, cachedFor, findingsOf, NOTHING_CHECKED, type ValidationTools } from './check-names.ts';

export interface WaitingLimits {
  /** How long a certificate may wait for validation. */
  readonly pendingMs: number;
  /** Of accounts without quotas of their own. */
  readonly quotas: Quotas;
}

/**
 * Call in the transaction that returns the certificate's id to the caller, or records it for a later answer. Throws
 * `quota_exceeded`.
 */
export async function beginWaiting(
  tx: Repositories,
  record: PendingCertificate,
  { pendingMs, quotas }: WaitingLimits,
  results: CheckResults = NOTHING_CHECKED,
): Promise<void> {
  // Locked, so that of two that begin to wait at once each counts the other.
  await requireRoom(tx, await tx.accounts.findForUpdate(record.accountId), quotas);
  await insertWaiting(tx, record, { pendingMs, results });
}

/** For a certificate whose order has waited before, and so has its room. */
export async function insertWaiting(
  tx: Repositories,
  record: PendingCertificate,
  { pendingMs, results }: Pick<WaitingLimits, 'pendingMs'> & { readonly results: CheckResults },
): Promise<void> {
  const { id: certificateId, accountId, orderId, createdAt } = record;
  await tx.certificates.insert(record);
  const findings = findingsOf(results, createdAt);
  await tx.waiting.insert({
    certificateId,
    accountId,
    orderId,
    dueAt: tx.sharedNow() + pastCache(checkBackoff(0), cachedFor(findings)),
    tries: results === NOTHING_CHECKED ? 0 : 1,
    expiresAt: createdAt + pendingMs,
    findings,
  });
}

/** Throws `quota_exceeded` if no further certificate of the account may wait. */
export async function requireRoom(
  { waiting }: Pick<Repositories, 'waiting'>,
  account: Pick<Account, 'id' | 'quotas'> | undefined,
  defaults: Quotas,
): Promise<void> {
  if (!account) throw new Refusal('account_not_found');
  const { openOrders } = quotasOf(account, defaults);
  requireRoomToWait(await waiting.count(account.id, openOrders), openOrders);
}

interface LapsedCertificate {
  readonly order: Order;
  readonly certificateId: CertificateId;
  readonly reason: CancellationReason;
}

/** Ends a pending certificate that expired, or that can never be issued as requested. */
export async function lapse(
  { now, newId, audit }: Pick<ValidationTools, 'now' | 'newId' | 'audit'>,
  tx: Repositories,
  { order, certificateId, reason }: LapsedCertificate,
): Promise<void> {
  const { id: orderId, accountId } = order;
  const { status: orderStatus } = await stopWaiting(tx, order, 'rejected', { reason, at: now(), newId });
  if (orderStatus === 'rejected') {
    const action = 'order:rejected' as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, orderStatus, certificateId, action, createdAt: now() });
  }
  const details = { certificate_id: certificateId, was: order.status, reason };
  await audit(tx, byService(accountId), 'order:lapsed', orderId, details);
}

export const notWaiting = (order: Order): Refusal =>
  new Refusal('order_state_conflict', {
    reason: awaitsCsr(order)
      ? {
          en: 'The order was placed over ACME, and its client proves the names there. Cancel it, or wait for its client.',
          zh: '该订单通过 ACME 提交，由其客户端在 ACME 中验证域名。请取消订单，或等待其客户端。',
        }
      : {
          en: `The order is ${order.status}; nothing of it waits for domain validation.`,
          zh: `订单状态为 ${order.status}，没有等待域名验证的证书。`,
        },
    details: { status: order.status },
  });
