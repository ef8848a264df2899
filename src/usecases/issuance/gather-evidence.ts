// What an issuance needs to know before anything is locked, because finding out takes too long for a transaction. Whoever
// then finds that an order has moved on looks again.

import type { Product } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import type { CurrentCertificate } from '../../domain/issuance/ports.ts';
import { planReissue } from '../../domain/issuance/reissue.ts';
import type { ReissuePlan, ReissueRequest } from '../../domain/issuance/request.ts';
import {
  CHECK_LIMITS_MS,
  type CheckResults,
  checkNames,
  isClear,
  type NamesToCheck,
  NOTHING_CHECKED,
  needsInstruction,
} from '../validation/check-names.ts';
import { once } from './key-policy.ts';
import { mayNeedKeys, NO_KEYS, type ObtainedKeys, obtainKeys } from './obtain-keys.ts';
import { contextOf, currentOf, earlierAnswer } from './reissue-context.ts';
import type { ReissueCall, ReissueTools } from './tools.ts';

/** What the outside world says of the names, and keys that have to be made. */
export interface Ahead {
  readonly looked: CheckResults;
  readonly keys: ObtainedKeys;
}

const NOTHING_AHEAD: Ahead = { looked: NOTHING_CHECKED, keys: NO_KEYS };

/** Only for a request that would be served: every refusal comes before the first question to the outside. */
export async function lookAhead(tools: ReissueTools, call: ReissueCall): Promise<Ahead> {
  const { store, now } = tools;
  const { request } = call;
  const accountId = call.caller.account.id;
  const order = await store.orders.find(accountId, call.orderId);
  if (!order || (await earlierAnswer(store, call, now())) !== undefined) return NOTHING_AHEAD;
  const current = await currentOf(store, order);
  const context = await contextOf(tools, store, order, current, request, now());
  const plan = planReissue(request, context);
  return await aheadOf(tools, { order, product: context.product, current, request, plan, provenBy: context.provenBy });
}

export interface Planned extends Pick<NamesToCheck, 'provenBy'> {
  readonly order: Pick<Order, 'id' | 'accountId'>;
  readonly product: Product;
  /** Null before there is one. */
  readonly current: CurrentCertificate | null;
  readonly request: ReissueRequest;
  readonly plan: ReissuePlan;
}

/** Keys are made last: they are for nothing if the certificate has to wait. */
export async function aheadOf(tools: ReissueTools, planned: Planned): Promise<Ahead> {
  const { order, product, current, request, plan, provenBy } = planned;
  const { names, needsValidation: unproven, dcv } = plan;
  if (needsInstruction(unproven, dcv)) return NOTHING_AHEAD;
  const { accountId } = order;
  const looked = await checkNames(tools, {
    accountId,
    product,
    names,
    provenBy,
    dcv,
    limitMs: CHECK_LIMITS_MS.issuing,
  });
  if (!mayNeedKeys(request) || !isClear(looked, { names, unproven })) return { looked, keys: NO_KEYS };
  return { looked, keys: await obtainKeys(tools, order, product, current, request, plan) };
}

/** A plan is made twice, and most of what it costs is reading the CSR and looking for weaknesses of its key. */
export function readingKeysOnce(tools: ReissueTools): ReissueTools {
  const strong = new WeakSet<PublicKey>();
  return {
    ...tools,
    readCsr: once(tools.readCsr),
    requireStrongKey(key) {
      if (strong.has(key)) return;
      tools.requireStrongKey(key);
      strong.add(key);
    },
  };
}
