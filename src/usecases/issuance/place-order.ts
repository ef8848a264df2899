// Places an order. When every name is validated, its first certificate is issued before the answer; otherwise the order
// waits for validation. Says what is particular to a first certificate in the flow of every issuance (issuance-flow.ts).
import { type Actor, isOperator } from '../../domain/access/credential.ts';
import { requireStorage } from '../../domain/access/quota.ts';
import { type Product, productNotFound, requestedProduct } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { NO_KEY } from '../../domain/certificate/public-key.ts';
import { NO_FIELDS, type SubjectFields } from '../../domain/certificate/subject.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId } from '../../domain/ids.ts';
import { mentionedNames } from '../../domain/issuance/names.ts';
import {
  newOrder,
  planPlacement,
  requireAlternativeId,
  requireMonths,
  requireSubject,
  withDefaults,
} from '../../domain/issuance/placement.ts';
import type { CertificateRequest, PlacementRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import { needsInstruction } from '../validation/check-names.ts';
import { beginWaiting, requireRoom } from '../validation/pending-certificates.ts';
import { methodsOf, provenNames, provenUntil, VOUCHED } from '../validation/proven-names.ts';
import { type Draft, decidedAt } from './draft.ts';
import type { Idempotency } from './idempotency.ts';
import { type IssuanceSteps, issue } from './issuance-flow.ts';
import { wantedCertificate } from './issue-certificate.ts';
import { type KeyReader, keyPolicy, withKeysReadOnce } from './key-policy.ts';
import { cloudKeyToBe, mayNeedKeys } from './obtain-keys.ts';
import { type PlacedOrder, placeOnce, takeKey } from './place-once.ts';
import type { IssuanceTools } from './tools.ts';

export interface PlaceOrderCall {
  readonly accountId: AccountId;
  /** Its id, or one of its numbers. */
  readonly productId: string;
  /** One of its numbers, for clients that send it beside; 0 counts as left out. */
  readonly payProductId?: number | undefined;
  readonly alternativeId: string | null;
  /** Of the order's term, and so of the certificate. Left out: the product's term. */
  readonly validityMonths?: number | undefined;
  readonly idempotency?: Idempotency | null;
  readonly request: PlacementRequest;
  /** What the operator vouches for about the holder, beside the name. */
  readonly subject?: SubjectFields;
  /** As in Actor. */
  readonly actor: string;
  readonly requestId?: string | null;
  /** The operator vouches for the names: they are recorded as validated, and marked so in the audit log. */
  readonly vouchesForNames: boolean;
}

export type PlaceOrder = (call: PlaceOrderCall) => Promise<PlacedOrder>;

export function placeOrder(tools: IssuanceTools): PlaceOrder {
  const { products, newId, now } = tools;
  return async (call) => {
    const { accountId, alternativeId, idempotency = null } = call;
    // The operator's own orders are bounded by the command that places them.
    using _slot = isOperator(call.actor) ? null : await tools.acquireSlot('placement', accountId);
    if (alternativeId !== null) requireAlternativeId(alternativeId);
    return await placeOnce(tools, { accountId, alternativeId, idempotency }, async () => {
      const product = requestedProduct(products, call.productId, call.payProductId);
      if (!product) throw productNotFound(products, { en: 'There is no such product.', zh: '没有此产品。' });
      const months = call.validityMonths === undefined ? undefined : requireMonths(call.validityMonths, product);
      const subject = requireSubject(call.subject ?? NO_FIELDS, product);
      const order = newOrder({ id: newId(), accountId, alternativeId, subject }, product, now(), months);
      const placing = { product, order, request: withDefaults(call.request, product), certificateId: newId() };
      return await withKeysReadOnce(tools, { accountId, request: placing.request }, (reader) =>
        issue(tools, async () => stepsOf(tools, call, { ...placing, reader })),
      );
    });
  };
}

function stepsOf(
  tools: IssuanceTools,
  call: PlaceOrderCall,
  { product, order, request, certificateId, reader }: Omit<Placing, 'vouched'>,
): IssuanceSteps<PlacedOrder> {
  const { audit, now } = tools;
  const { accountId, actor, requestId = null, alternativeId, idempotency = null } = call;
  const by: Actor = { accountId, actor, requestId };
  const placed = { orderId: order.id, certificateId };
  const names = { accountId, alternativeId, idempotency };
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
    decide: (db) => decide(tools, db, call, { product, order, request, certificateId, vouched, reader }),
    lock: async () => ({ order: null, isBusy: false }),

    async enqueue(tx, draft, results) {
      await recordVouched(tx);
      await tx.orders.insert({
        ...plannedOrder(draft),
        status: 'domain_verifing',
        pendingCertificateId: certificateId,
      });
      await takeKey(tx, names, { ...placed, at: now() });
      await beginWaiting(tx, { ...draft.wanted, pendingSince: draft.wanted.createdAt }, tools, results);
      await audit(tx, by, 'order:placed', order.id, details);
      return placed;
    },

    planned: plannedOrder,
    async begin(tx, draft) {
      await recordVouched(tx);
      const planned = plannedOrder(draft);
      await tx.orders.insert(planned);
      await takeKey(tx, names, { ...placed, at: now() });
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
  readonly request: CertificateRequest;
  readonly certificateId: CertificateId;
  /** Names that the operator vouches for with this order. */
  readonly vouched: readonly string[];
  readonly reader: KeyReader;
}

/** Reads what the rules depend on, and applies them. Throws every refusal of a placement. */
async function decide(
  tools: IssuanceTools,
  db: Repositories,
  { accountId, vouchesForNames, actor }: PlaceOrderCall,
  { product, order, request, certificateId, vouched, reader }: Placing,
): Promise<Draft> {
  const now = tools.now();
  const account = await db.accounts.find(accountId);
  if (!account) throw new Refusal('account_not_found');
  const names = mentionedNames(request, product.kind, []);
  const proofs = await provenNames(tools, db, { accountId, names, product, now });
  for (const name of vouched) proofs.set(name, { methods: [VOUCHED], until: Infinity });
  const plan = planPlacement(request, {
    ...{ now, order, product, previous: null, readCsr: reader.readCsr },
    // An operator at the keyboard of the service vouches for the holder's name.
    isVouchedFor: vouchesForNames || isOperator(actor),
    validatedNames: proofs,
    requireAcceptedKey: await keyPolicy(tools, db, { accountId, request, reusedKey: null, keepsKeyOf: null, reader }),
    cloudKey: cloudKeyToBe(request, NO_KEY, product),
    issuers: { choose: tools.authority.issuerFor, served: tools.authority.served },
    perspectives: tools.perspectives,
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
      unblockedKey: request.keySource === 'caller' ? plan.publicKey : null,
      cloudKeyId: null,
      revokes: [],
      idempotency: null,
    },
  };
}
