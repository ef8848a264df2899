// Place an order. When every name is proven its first certificate is issued before the answer; otherwise the order
// waits for domain validation. Written down first and finished in one transaction, like every issuance.
import { Refusal } from '../domain/errors.ts';
import { newOrder, planPlacement } from '../domain/placement.ts';
import { mentionedNames } from '../domain/reissue-names.ts';
import type { ReissueRequest } from '../domain/reissue-request.ts';
import { finishIssuance, LEASE_MS, pendingRecord, preparedRecord } from './issue-certificate.ts';
import type { ReissueTools } from './reissue-certificate.ts';
import { isKeyBlocked, once, soundKey } from './sound-key.ts';

export interface PlaceOrderCall {
  readonly accountId: string;
  readonly productId: string;
  readonly alternativeId: string | null;
  readonly request: ReissueRequest;
  /** A key id, or `cli` for the operator's own hand. */
  readonly actor: string;
  /** The operator vouches for the names: they are recorded as validated, and marked so in the audit. */
  readonly vouchesForNames: boolean;
}

export type PlaceOrder = (call: PlaceOrderCall) => Promise<{ orderId: string; certificateId: string }>;

const DAY_MS = 86_400_000;
/** The method under which names an operator vouched for are recorded. */
const VOUCHED = 'operator';

export function placeOrder(tools: ReissueTools): PlaceOrder {
  const { store, authority, products, now, newId } = tools;
  return async (call) => {
    const product = products.get(call.productId);
    if (!product) throw new Refusal('product_not_found');
    const { accountId, request, actor } = call;
    const [orderId, id] = [newId(), newId()];
    const at = now();
    const draft = newOrder(orderId, accountId, product, call.alternativeId, at);
    const audit = { actor, requestId: null };
    const placed = { ...audit, action: 'order:placed' as const, details: { product: product.id } };

    const prepared = await store.transaction(async (to) => {
      const names = mentionedNames(request, product.kind, []);
      if (call.vouchesForNames && product.kind === 'ssl') {
        for (const name of names) {
          await to.proofs.record(accountId, name, VOUCHED, at);
          await to.audit.append({
            id: newId(),
            at,
            accountId,
            action: 'name:validated',
            subject: name,
            ...audit,
            details: { method: VOUCHED },
          });
        }
      }
      const readCsr = once(tools.readCsr);
      const isBlocked = request.csr ? await isKeyBlocked(to, request.csr, readCsr) : false;
      const plan = planPlacement(request, draft, {
        now: at,
        product,
        validatedNames: await to.proofs.proven(accountId, names, at - product.reuseDays * DAY_MS),
        readCsr,
        requireSoundKey: soundKey(tools, product, isBlocked),
        issuers: { choose: authority.issuerFor, served: authority.served },
        registrableDomain: tools.registrableDomain,
      });
      const mustWait = plan.needsValidation.length > 0;
      const order = { ...draft, ...plan.dcv, commonName: plan.commonName, names: plan.names };
      const waiting = pendingRecord(id, at, order, request, plan);
      if (mustWait) {
        await to.orders.insert({ ...order, status: 'domain_verifing', pendingCertificateId: id });
        await to.certificates.insert(waiting);
        await to.audit.append({ id: newId(), at, accountId, subject: orderId, ...placed });
        return undefined;
      }
      const record = preparedRecord(tools, waiting, { ...plan, productId: product.id }, at);
      await to.orders.insert(order);
      await to.certificates.insert(record);
      await to.orders.beginSigning(orderId, { certificateId: id, until: at + LEASE_MS });
      return { order, record };
    });
    if (prepared)
      await finishIssuance(tools, prepared.record, {
        order: prepared.order,
        replaces: null,
        audit: placed,
        idempotency: null,
      });
    return { orderId, certificateId: id };
  };
}
