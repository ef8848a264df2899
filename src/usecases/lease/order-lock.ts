// Work under the row lock of an order. While a signer holds the lease of an order, the order is busy: the outcome of the
// signature comes first, then everything else.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CertificateRecord } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, NewId, OrderId } from '../../domain/ids.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { voidLostIssuances } from './void-lost-issuances.ts';

export type LockOutcome<T> = { readonly kind: 'done'; readonly value: T } | { readonly kind: 'busy' };

/** Locks the order and runs `work`, or returns `busy` without running it while the order is being signed. */
export async function withOrderLock<T>(
  tx: Repositories,
  ref: { readonly accountId: AccountId; readonly orderId: OrderId },
  work: (order: Order) => Promise<T>,
): Promise<LockOutcome<T>> {
  const found = await tx.orders.findForUpdate(ref.accountId, ref.orderId);
  if (!found) throw new Error(`certificate without its order ${ref.orderId}`);
  if (found.signing) return { kind: 'busy' };
  return { kind: 'done', value: await work(found.order) };
}

export interface LockTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
}

/** A certificate and its order, read under the order's lock. */
export interface LockedCertificate {
  readonly certificate: CertificateRecord;
  readonly order: Order;
}

/** Runs `work` under the lock of the certificate's order, and waits while it is being signed. Refuses with `cert_not_found`. */
export async function withCertificateLock<T>(
  tools: LockTools,
  accountId: AccountId,
  certificateId: CertificateId,
  work: (tx: Repositories, locked: LockedCertificate) => Promise<T>,
): Promise<T> {
  const { orderId } = await certificateIn(tools.store, accountId, certificateId);
  return await retryWhileSigning(tools, (tx) =>
    withOrderLock(tx, { accountId, orderId }, async (order) =>
      work(tx, { order, certificate: await certificateIn(tx, accountId, certificateId) }),
    ),
  );
}

async function certificateIn(tx: Repositories, accountId: AccountId, id: CertificateId): Promise<CertificateRecord> {
  const found = await tx.certificates.find(accountId, id);
  if (!found) throw new Refusal('cert_not_found');
  return found;
}

const PAUSE_MS = 20;
// Longer than a signer's lease, so that a caller waiting behind a lost signer is served, not refused.
const MAX_TRIES = 750;

async function retryWhileSigning<T>(
  { store, now, newId }: LockTools,
  attempt: (tx: Repositories) => Promise<LockOutcome<T>>,
): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const outcome = await store.transaction(attempt);
    if (outcome.kind === 'done') return outcome.value;
    await voidLostIssuances(store, now, newId);
    await sleep(PAUSE_MS);
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}
