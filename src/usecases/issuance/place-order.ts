// Place an order. When every name is proven its first certificate is issued before the answer; otherwise the order
// waits for domain validation. Written down first and finished in one transaction, like every issuance.

import type { Product } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { NO_KEY, type PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, OrderId } from '../../domain/ids.ts';
import { mentionedNames } from '../../domain/issuance/names.ts';
import {
  newOrder,
  type PlacementContext,
  planPlacement,
  requireAlternativeId,
} from '../../domain/issuance/placement.ts';
import type { ReissueRequest } from '../../domain/issuance/request.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { isClear, type NamesToCheck } from '../validation/check-names.ts';
import { beginWaiting } from '../validation/pending-certificates.ts';
import { provenAmong, VOUCHED } from '../validation/proven-names.ts';
import { type Ahead, aheadOf, readingKeysOnce } from './gather-evidence.ts';
import { finishIssuance, keepKeys, LEASE_MS, pendingRecord, preparedRecord } from './issue-certificate.ts';
import { isKeyBlocked, keyPolicy, once } from './key-policy.ts';
import { cloudKeyToBe, wipe } from './obtain-keys.ts';
import type { ReissueTools } from './tools.ts';

export interface PlaceOrderCall {
  readonly accountId: AccountId;
  readonly productId: string;
  readonly alternativeId: string | null;
  readonly request: ReissueRequest;
  /** A key id, or `cli` for the operator's own hand. */
  readonly actor: string;
  readonly requestId?: string | null;
  /** The operator vouches for the names: they are recorded as validated, and marked so in the audit. */
  readonly vouchesForNames: boolean;
}

export type PlaceOrder = (call: PlaceOrderCall) => Promise<{ orderId: OrderId; certificateId: CertificateId }>;

const OPERATOR = 'cli';

export function placeOrder(given: ReissueTools): PlaceOrder {
  const { store, products, now, newId } = given;
  return async (call) => {
    const tools = readingKeysOnce(given);
    const product = products.get(call.productId);
    if (!product) throw new Refusal('product_not_found');
    const { accountId, request, actor } = call;
    if (call.alternativeId !== null) await requireUntaken(store, accountId, call.alternativeId);
    const [orderId, id] = [newId(), newId()];
    const at = now();
    const draft = newOrder(orderId, accountId, product, call.alternativeId, at);
    const audit = { actor, requestId: call.requestId ?? null };
    const placed = { ...audit, action: 'order:placed' as const, details: { product: product.id } };
    const names = mentionedNames(request, product.kind, []);

    const { keys, looked } = await lookAhead(tools, call, product, draft, names);
    try {
      const prepared = await translateDuplicate(store, call, async (tx) => {
        if (call.vouchesForNames && product.kind === 'ssl') {
          for (const name of names) {
            await tx.proofs.record(accountId, name, VOUCHED, at);
            const details = { method: VOUCHED };
            await tx.audit.append({
              ...{ id: newId(), at, accountId, action: 'name:validated', subject: name, ...audit },
              details,
            });
          }
        }
        const context = await contextOf(tools, tx, call, product, names, at, keys.cloud?.publicKey);
        const plan = planPlacement(request, draft, context);
        const order = { ...draft, ...plan.dcv, commonName: plan.commonName, names: plan.names };
        const waits = !isClear(looked, { names: plan.names, unproven: plan.needsValidation });
        const waiting = pendingRecord(id, at, order, request, plan, waits);
        if (waits) {
          await tx.orders.insert({ ...order, status: 'domain_verifing', pendingCertificateId: id });
          await beginWaiting(tx, waiting, tools.pendingMs, looked);
          await tx.audit.append({ id: newId(), at, accountId, subject: orderId, ...placed });
          return undefined;
        }
        // The look took its time; the lease begins now.
        const preparedAt = now();
        const record = preparedRecord(tools, waiting, { ...plan, productId: product.id }, keys, preparedAt);
        await tx.orders.insert(order);
        await keepKeys(tx, keys);
        await tx.certificates.insert(record);
        await tx.orders.beginSigning(orderId, { certificateId: id, until: preparedAt + LEASE_MS });
        return { order, record };
      });
      if (prepared) {
        const { order, record } = prepared;
        await finishIssuance(tools, record, { order, replaces: null, audit: placed, idempotency: null });
      }
      return { orderId, certificateId: id };
    } finally {
      wipe(keys);
    }
  };
}

/** Asked and made before anything is written, for an order that might be issued at once. */
async function lookAhead(
  tools: ReissueTools,
  call: PlaceOrderCall,
  product: Product,
  order: Order,
  names: readonly string[],
): Promise<Ahead> {
  const { request, vouchesForNames } = call;
  const context = await contextOf(tools, tools.store, call, product, names, order.createdAt);
  const provenBy = vouchesForNames ? new Map(names.map((name) => [name, [VOUCHED]])) : context.provenBy;
  const plan = planPlacement(request, order, { ...context, validatedNames: new Set(provenBy.keys()) });
  return await aheadOf(tools, { order, product, current: null, request, plan, provenBy });
}

/** Of two orders under one name that are placed at once, the second is told about the first like any other. */
async function translateDuplicate<T>(
  store: Store,
  { accountId, alternativeId }: PlaceOrderCall,
  work: (tx: Repositories) => Promise<T>,
): Promise<T> {
  try {
    return await store.transaction(work);
  } catch (error) {
    const isTaken = error instanceof Refusal && error.code === 'duplicate_alternative_order_id';
    if (isTaken && alternativeId !== null) {
      // In a transaction: what another has just written is not for every reader yet.
      await store.transaction((tx) => requireUntaken(tx, accountId, alternativeId));
    }
    throw error;
  }
}

/** Told before anything is made; two at once are told apart by the store. */
async function requireUntaken({ orders }: Repositories, accountId: AccountId, alternativeId: string): Promise<void> {
  requireAlternativeId(alternativeId);
  const taken = await orders.findByAlternative(accountId, alternativeId);
  if (taken) throw new Refusal('duplicate_alternative_order_id', { details: { order_id: taken.id } });
}

async function contextOf(
  tools: ReissueTools,
  db: Repositories,
  { accountId, request, vouchesForNames, actor }: PlaceOrderCall,
  product: Product,
  names: readonly string[],
  now: number,
  cloudKey?: PublicKey,
): Promise<PlacementContext & Pick<NamesToCheck, 'provenBy'>> {
  const { authority, registrableDomain } = tools;
  const readCsr = once(tools.readCsr);
  const provenBy = await provenAmong(tools, db, accountId, names, product, now);
  const isBlocked = request.csr ? await isKeyBlocked(db, accountId, request.csr, readCsr) : false;
  return {
    now,
    product,
    // Whoever places an order at the keyboard of the service answers for the name of its holder.
    isVouchedFor: vouchesForNames || actor === OPERATOR,
    provenBy,
    validatedNames: new Set(provenBy.keys()),
    readCsr,
    requireAcceptedKey: keyPolicy(tools, product, isBlocked),
    cloudKey: cloudKey ?? cloudKeyToBe(request, NO_KEY, product),
    issuers: { choose: authority.issuerFor, served: authority.served },
    registrableDomain,
  };
}
