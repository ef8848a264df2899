// Work under the row lock of an order. While a signer holds the lease of an order, the order is busy: the outcome of the
// signature comes first, then everything else. Except for a compromised key: the revocation takes the order from a signer
// that does not finish at once, which loses its lease and signs nothing that counts.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CertificateRecord } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, NewId, OrderId } from '../../domain/ids.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { voidLostIssuances, voidSigning } from './void-lost-issuances.ts';

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

/** How often signers may still be waited for, before orders are taken from them. Several locks may share it. */
export interface Patience {
  tries: number;
}

export interface CertificateToLock {
  readonly accountId: AccountId;
  readonly certificateId: CertificateId;
  /** Left out, the outcome of the signature is waited for. */
  readonly patience?: Patience | undefined;
}

/** Runs `work` under the lock of the certificate's order, and waits while it is being signed. Refuses with `cert_not_found`. */
export async function withCertificateLock<T>(
  tools: LockTools,
  { accountId, certificateId, patience }: CertificateToLock,
  work: (tx: Repositories, locked: LockedCertificate) => Promise<T>,
): Promise<T> {
  const { orderId } = await certificateIn(tools.store, accountId, certificateId);
  return await retryWhileSigning(tools, patience, async (tx, takesOver) => {
    if (takesOver) await voidSigner(tools, tx, { accountId, orderId });
    return await withOrderLock(tx, { accountId, orderId }, async (order) =>
      work(tx, { order, certificate: await certificateIn(tx, accountId, certificateId) }),
    );
  });
}

async function voidSigner(
  tools: LockTools,
  tx: Repositories,
  { accountId, orderId }: { readonly accountId: AccountId; readonly orderId: OrderId },
): Promise<void> {
  const found = await tx.orders.findForUpdate(accountId, orderId);
  if (found?.signing) await voidSigning(tools, tx, { order: found.order, signing: found.signing });
}

async function certificateIn(tx: Repositories, accountId: AccountId, id: CertificateId): Promise<CertificateRecord> {
  const found = await tx.certificates.find(accountId, id);
  if (!found) throw new Refusal('cert_not_found');
  return found;
}

const PAUSE_MS = 20;
// Longer than a signer's lease, so that a caller waiting behind a lost signer is served, not refused.
const MAX_TRIES = 750;
/** A second: a live signer needs milliseconds. */
export const briefPatience = (): Patience => ({ tries: 50 });

async function retryWhileSigning<T>(
  { store, now, newId }: LockTools,
  patience: Patience | undefined,
  attempt: (tx: Repositories, takesOver: boolean) => Promise<LockOutcome<T>>,
): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const outcome = await store.transaction((tx) => attempt(tx, patience !== undefined && patience.tries <= 0));
    if (outcome.kind === 'done') return outcome.value;
    await voidLostIssuances(store, now, newId);
    if (patience) patience.tries -= 1;
    await sleep(PAUSE_MS);
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}
