// Places an order. When every name is validated, its first certificate is issued before the answer; otherwise the order
// waits for validation. Says what is particular to a first certificate in the flow of every issuance (issuance-flow.ts).
import { setTimeout as sleep } from 'node:timers/promises';
import { type Actor, isOperator } from '../../domain/access/credential.ts';
import { requireStorage } from '../../domain/access/quota.ts';
import { type Product, productNotFound } from '../../domain/catalog/products.ts';
import { isBeingPlaced, type Order } from '../../domain/certificate/order.ts';
import { NO_KEY } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, OrderId } from '../../domain/ids.ts';
import { mentionedNames } from '../../domain/issuance/names.ts';
import { newOrder, planPlacement, requireAlternativeId } from '../../domain/issuance/placement.ts';
import type { CertificateRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import { voidLostIssuances } from '../lease/void-lost-issuances.ts';
import { needsInstruction } from '../validation/check-names.ts';
import { beginWaiting, requireRoom } from '../validation/pending-certificates.ts';
import { methodsOf, provenNames, provenUntil, VOUCHED } from '../validation/proven-names.ts';
import { type Draft, decidedAt } from './draft.ts';
import { type IssuanceSteps, issue } from './issuance-flow.ts';
import { wantedCertificate } from './issue-certificate.ts';
import { keyPolicy, withKeysReadOnce } from './key-policy.ts';
import { cloudKeyToBe, mayNeedKeys } from './obtain-keys.ts';
import type { IssuanceTools } from './tools.ts';

export interface PlaceOrderCall {
  readonly accountId: AccountId;
  readonly productId: string;
  readonly alternativeId: string | null;
  readonly request: CertificateRequest;
  /** As in Actor. */
  readonly actor: string;
  readonly requestId?: string | null;
  /** The operator vouches for the names: they are recorded as validated, and marked so in the audit log. */
  readonly vouchesForNames: boolean;
}

export interface PlacedOrder {
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
}

export type PlaceOrder = (call: PlaceOrderCall) => Promise<PlacedOrder>;

export function placeOrder(tools: IssuanceTools): PlaceOrder {
  const { products, newId, now } = tools;
  return async (call) => {
    const { accountId, alternativeId } = call;
    // The operator's own orders are bounded by the command that places them.
    using _slot = isOperator(call.actor) ? null : await tools.acquireSlot('placement', accountId);
    const product = products.get(call.productId);
    if (!product) throw productNotFound(products, { en: 'There is no such product.', zh: '没有此产品。' });
    const order = newOrder({ id: newId(), accountId, alternativeId }, product, now());
    const certificateId = newId();
    const place = () =>
      withKeysReadOnce(tools, call, (once) =>
        issue(once, async () => stepsOf(once, call, { product, order, certificateId })),
      );
    return alternativeId === null ? await place() : await placeUnused(tools, { accountId, alternativeId }, place);
  };
}

const PAUSE_MS = 20;
/** Together longer than a signer's lease: a caller that repeats an interrupted placement is served, not refused. */
const MAX_TRIES = 750;

/**
 * Refuses an id that an order has, before names are checked and keys are made. While another order is being placed under
 * it, its outcome comes first: it takes the id, or its signer is lost, which frees it (ADR 0045). Of two orders placed at
 * once the store refuses the second.
 */
async function placeUnused<T>(
  { store, now, newId }: Pick<IssuanceTools, 'store' | 'now' | 'newId'>,
  { accountId, alternativeId }: { readonly accountId: AccountId; readonly alternativeId: string },
  place: () => Promise<T>,
): Promise<T> {
  requireAlternativeId(alternativeId);
  const find = ({ orders }: Repositories) => orders.findByAlternative(accountId, alternativeId);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    // In a transaction: readers outside of one may not see yet what another has just written.
    const existing = tries === 0 ? await find(store) : await store.transaction(find);
    if (!existing) {
      try {
        return await place();
      } catch (error) {
        if (error instanceof Refusal && error.code === 'duplicate_alternative_order_id') continue;
        throw error;
      }
    }
    if (!isBeingPlaced(existing))
      throw new Refusal('duplicate_alternative_order_id', { details: { order_id: existing.id } });
    await voidLostIssuances(store, now, newId);
    await sleep(PAUSE_MS);
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}

function stepsOf(
  tools: IssuanceTools,
  call: PlaceOrderCall,
  { product, order, certificateId }: Omit<Placing, 'vouched'>,
): IssuanceSteps<PlacedOrder> {
  const { audit, now } = tools;
  const { request, accountId, actor, requestId = null } = call;
  const by: Actor = { accountId, actor, requestId };
  const placed = { orderId: order.id, certificateId };
  const details = { product: product.id, certificate_id: certificateId };
  const vouched = call.vouchesForNames && product.kind === 'ssl' ? mentionedNames(request, product.kind, []) : [];

  async function recordVouched(tx: Repositories): Promise<void> {
    for (const name of vouched) {
      await tx.proofs.record(accountId, name, VOUCHED, now());
      await audit(tx, by, 'name:validated', name, { method: VOUCHED, order_id: order.id });
    }
  }

  return {
    needsEvidence: product.kind === 'ssl' || mayNeedKeys(request),
    decide: (db) => decide(tools, db, call, { product, order, certificateId, vouched }),
    lock: async () => ({ order: null, isBusy: false }),

    async enqueue(tx, draft, results) {
      await recordVouched(tx);
      await tx.orders.insert({
        ...plannedOrder(draft),
        status: 'domain_verifing',
        pendingCertificateId: certificateId,
      });
      await beginWaiting(tx, { ...draft.wanted, pendingSince: draft.wanted.createdAt }, tools, results);
      await audit(tx, by, 'order:placed', order.id, details);
      return placed;
    },

    planned: plannedOrder,
    async begin(tx, draft) {
      await recordVouched(tx);
      const planned = plannedOrder(draft);
      await tx.orders.insert(planned);
      return planned;
    },

    finish: () => ({ by, action: 'order:placed', details, idempotency: null }),
    issued: () => placed,
  };
}

const plannedOrder = ({ order, plan }: Draft): Order => ({
  ...order,
  ...plan.dcv,
  commonName: plan.commonName,
  names: plan.names,
});

interface Placing {
  readonly product: Product;
  readonly order: Order;
  readonly certificateId: CertificateId;
  /** Names that the operator vouches for with this order. */
  readonly vouched: readonly string[];
}

/** Reads what the rules depend on, and applies them. Throws every refusal of a placement. */
async function decide(
  tools: IssuanceTools,
  db: Repositories,
  { accountId, request, vouchesForNames, actor }: PlaceOrderCall,
  { product, order, certificateId, vouched }: Placing,
): Promise<Draft> {
  const now = tools.now();
  const account = await db.accounts.find(accountId);
  if (!account) throw new Refusal('account_not_found');
  const names = mentionedNames(request, product.kind, []);
  const proofs = await provenNames(tools, db, { accountId, names, product, now });
  for (const name of vouched) proofs.set(name, { methods: [VOUCHED], until: Infinity });
  const plan = planPlacement(request, {
    ...{ now, order, product, previous: null, readCsr: tools.readCsr },
    // An operator at the keyboard of the service vouches for the holder's name.
    isVouchedFor: vouchesForNames || isOperator(actor),
    validatedNames: new Set(proofs.keys()),
    requireAcceptedKey: await keyPolicy(tools, db, { accountId, product, request, reusedKey: null, keepsKeyOf: null }),
    cloudKey: cloudKeyToBe(request, NO_KEY, product),
    issuers: { choose: tools.authority.issuerFor, served: tools.authority.served },
    registrableDomain: tools.registrableDomain,
  });
  requireStorage(account, tools.quotas);
  // Before anything is written: an account at its quota must cost the others nothing. beginWaiting checks it for good.
  if (needsInstruction(plan.needsValidation, plan.dcv)) await requireRoom(db, account, tools.quotas);
  return {
    ...{ order, product, request, previous: null, plan },
    provenBy: methodsOf(proofs),
    wanted: wantedCertificate({ id: certificateId, at: now, order, cloudKeyId: null }, request, plan),
    basis: {
      decided: decidedAt(now, order, plan),
      revision: null,
      provenUntil: provenUntil(proofs, plan.names),
      issuerId: plan.issuerId,
      unblockedKey: request.keySource === 'caller' ? plan.publicKey.fingerprint : null,
      cloudKeyId: null,
      revokes: [],
      idempotency: null,
    },
  };
}
