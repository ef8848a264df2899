// Places an order once, although it is asked for twice: by the customer's own id for it, or by an idempotency key. While
// another order is being placed under one of them, its outcome comes first: it keeps the id and the key, or its signer is
// lost, which frees both (ADR 0045). Of two orders placed at once the store refuses the second.
import { setTimeout as sleep } from 'node:timers/promises';
import { isBeingPlaced } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, OrderId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { voidLostIssuances } from '../lease/void-lost-issuances.ts';
import { IDEMPOTENCY_MS, type Idempotency } from './idempotency.ts';
import type { IssuanceTools } from './tools.ts';

export interface PlacedOrder {
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
}

export interface PlacementNames {
  readonly accountId: AccountId;
  readonly alternativeId: string | null;
  readonly idempotency: Idempotency | null;
}

/** Another placement has taken the idempotency key since it was looked for. */
class KeyTaken extends Error {}

/** Call in the transaction that stores the order. */
export async function takeKey(
  tx: Repositories,
  { accountId, idempotency }: PlacementNames,
  placed: PlacedOrder & { readonly at: number },
): Promise<void> {
  if (!idempotency) return;
  const entry = { ...placed, requestHash: idempotency.requestHash };
  if (await tx.placementKeys.take(accountId, idempotency.key, entry, placed.at - IDEMPOTENCY_MS)) return;
  throw new KeyTaken();
}

const PAUSE_MS = 20;
/** Together longer than a signer's lease: a caller that repeats an interrupted placement is served, not refused. */
const MAX_TRIES = 750;

/** Answers as before to a known key, and refuses an id that an order has, before names are checked and keys are made. */
export async function placeOnce(
  tools: Pick<IssuanceTools, 'store' | 'now' | 'newId'>,
  names: PlacementNames,
  place: () => Promise<PlacedOrder>,
): Promise<PlacedOrder> {
  const { store, now, newId } = tools;
  if (names.alternativeId === null && names.idempotency === null) return await place();
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const find = (db: Repositories) => findEarlier(db, names, now());
    // In a transaction: readers outside of one may not see yet what another has just written.
    const earlier = tries === 0 ? await find(store) : await store.transaction(find);
    if (earlier === 'none') {
      try {
        return await place();
      } catch (error) {
        if (error instanceof KeyTaken) continue;
        if (error instanceof Refusal && error.code === 'duplicate_alternative_order_id') continue;
        throw error;
      }
    }
    if (earlier !== 'in progress') return earlier;
    await voidLostIssuances(store, now, newId);
    await sleep(PAUSE_MS);
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}

async function findEarlier(
  { placementKeys, orders }: Pick<Repositories, 'placementKeys' | 'orders'>,
  { accountId, alternativeId, idempotency }: PlacementNames,
  now: number,
): Promise<PlacedOrder | 'in progress' | 'none'> {
  const entry = idempotency && (await placementKeys.find(accountId, idempotency.key, now - IDEMPOTENCY_MS));
  if (entry) {
    if (entry.requestHash !== idempotency.requestHash) throw new Refusal('idempotency_key_reused');
    const order = await orders.find(accountId, entry.orderId);
    return order && isBeingPlaced(order) ? 'in progress' : entry;
  }
  const existing = alternativeId === null ? undefined : await orders.findByAlternative(accountId, alternativeId);
  if (!existing) return 'none';
  if (isBeingPlaced(existing)) return 'in progress';
  throw new Refusal('duplicate_alternative_order_id', { details: { order_id: existing.id } });
}
