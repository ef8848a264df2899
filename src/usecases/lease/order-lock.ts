// Acts on an order under its row lock. An order that is being signed is left alone until its signer has finished or
// lost its lease: the outcome of the signature decides first.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Order } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId, OrderId } from '../../domain/ids.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { voidLostIssuances } from './void-lost-issuances.ts';

export type Attempt<T> = { readonly kind: 'done'; readonly value: T } | { readonly kind: 'busy' };

/** The order under its lock, unless it is being signed for at this moment: then what comes of that decides first. */
export async function withOrder<T>(
  tx: Repositories,
  ref: { readonly accountId: AccountId; readonly orderId: OrderId },
  work: (order: Order) => Promise<T>,
): Promise<Attempt<T>> {
  const found = await tx.orders.findForUpdate(ref.accountId, ref.orderId);
  if (!found) throw new Error(`certificate without its order ${ref.orderId}`);
  if (found.signing) return { kind: 'busy' };
  return { kind: 'done', value: await work(found.order) };
}

const PAUSE_MS = 20;
// Longer than the lease of a signer: whoever waits behind one that is lost is served, not refused.
const MAX_TRIES = 750;

/** Again, as long as the order is being signed for. */
export async function retryWhileSigning<T>(
  { store, now, newId }: { readonly store: Store; readonly now: Clock; readonly newId: NewId },
  attempt: (tx: Repositories) => Promise<Attempt<T>>,
): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const outcome = await store.transaction(attempt);
    if (outcome.kind === 'done') return outcome.value;
    await voidLostIssuances(store, now, newId);
    await sleep(PAUSE_MS);
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}
