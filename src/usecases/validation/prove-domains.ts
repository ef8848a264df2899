// Certificates that wait for proof: look at their names, remember what is proven, and issue once nothing is missing. It
// happens when somebody says that the records are there, and by itself at growing intervals. Whoever takes one up
// moves it into the future first, so that instances share the work and what one leaves behind another picks up.

import type { Product } from '../../domain/catalog/products.ts';
import type { CertificateRecord, Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, OrderId } from '../../domain/ids.ts';
import { proofOf } from '../../domain/validation/challenge.ts';
import { waitAfter } from '../../domain/validation/check-result.ts';
import type { Waiting } from '../../domain/validation/ports.ts';
import {
  CHECK_LIMITS_MS,
  type CheckResults,
  challengesOf,
  checkNames,
  findingsOf,
  isClear,
  unprovenOf,
  type ValidationTools,
} from './check-names.ts';
import { limitChecks } from './limit-checks.ts';
import { lapse, notWaiting } from './pending-certificates.ts';
import { provenAmong } from './proven-names.ts';

export interface ProveDomains {
  /** Looks at the certificate that the order waits for. */
  readonly now: (accountId: AccountId, orderId: OrderId) => Promise<void>;
  /** Looks at those that are due, until none is. Returns how many there were. */
  readonly due: (stopping?: AbortSignal) => Promise<number>;
}

/** Longer than a look at a hundred names takes: who has not finished by then is taken for dead. */
const CLAIM_MS = 120_000;
/** A look is waiting for others nearly all the time. No more are taken up than are looked at, or claims would run out. */
const AT_ONCE = 16;
/** One account's names that nobody answers for leave room for the others'. */
const PER_ACCOUNT = 8;
const CROWDED_MS = 30_000;
/** So that those who began together do not ask together for ever. */
const JITTER = 0.2;

/**
 * Issues a certificate whose names are validated. `moot`: it can never be issued as it was asked for. `later`: not now,
 * and perhaps after the next check. A port, because issuing is above validation.
 */
export type IssuePending = (
  record: CertificateRecord,
  product: Product,
  looked: CheckResults,
) => Promise<PendingOutcome>;
export type PendingOutcome = 'issued' | 'later' | { readonly impossible: string };

export interface ProveTools extends ValidationTools {
  readonly issue: IssuePending;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
}

interface Case {
  readonly order: Order;
  readonly record: CertificateRecord;
  readonly product: Product | undefined;
}

export function proveDomains(tools: ProveTools): ProveDomains {
  const { store, now } = tools;
  return {
    async now(accountId, orderId) {
      const order = await store.orders.find(accountId, orderId);
      if (!order) throw new Refusal('order_not_found');
      const certificateId = order.pendingCertificateId;
      const waiting = certificateId === null ? undefined : await store.waiting.find(accountId, certificateId);
      if (!waiting) throw notWaiting(order);
      await limitChecks(tools, order);
      // From the beginning: somebody is at work on it.
      const claimed = { ...waiting, tries: 0, dueAt: now() + CLAIM_MS };
      await store.waiting.update(claimed);
      await prove(tools, claimed, CHECK_LIMITS_MS.onRequest);
    },

    async due(stopping) {
      const underWay = new Map<Promise<void>, string>();
      const isCrowded = (accountId: AccountId) =>
        [...underWay.values()].filter((one) => one === accountId).length >= PER_ACCOUNT;
      let looked = 0;
      for (;;) {
        const room = stopping?.aborted ? 0 : AT_ONCE - underWay.size;
        const claimed = room > 0 ? await store.waiting.claim(now(), now() + CLAIM_MS, room) : [];
        for (const waiting of claimed) {
          if (isCrowded(waiting.accountId)) {
            await store.waiting.update({ ...waiting, dueAt: now() + CROWDED_MS }, waiting.dueAt);
            continue;
          }
          const look = proveOrTell(tools, waiting, stopping).finally(() => underWay.delete(look));
          underWay.set(look, waiting.accountId);
          looked += 1;
        }
        if (claimed.length > 0 && claimed.length === room) continue;
        if (underWay.size === 0) return looked;
        await Promise.race(underWay.keys());
      }
    },
  };
}

/** What is wrong with one keeps no other from its turn; it is tried again later and later. */
async function proveOrTell(tools: ProveTools, waiting: Waiting, stopping?: AbortSignal): Promise<void> {
  try {
    await prove(tools, waiting, CHECK_LIMITS_MS.bySchedule, stopping);
  } catch (error) {
    tools.onError(error);
    await again(tools, waiting).catch(tools.onError);
  }
}

async function prove(tools: ProveTools, waiting: Waiting, limitMs: number, stopping?: AbortSignal): Promise<void> {
  const found = await caseOf(tools, waiting);
  if (!found) return;
  const { order, record, product } = found;
  const at = tools.now();
  if (at >= waiting.expiresAt || at >= order.termEndsAt) return await giveUp(tools, waiting, 'it waited too long');
  // The operator has taken it away, and may bring it back.
  if (!product) return;

  const { accountId } = waiting;
  const { names, id: certificateId } = record;
  const provenBy = await provenAmong(tools, tools.store, accountId, names, product, at);
  const look = { accountId, product, names, provenBy, dcv: order, certificateId, limitMs, stopping };
  const unproven = unprovenOf(look);
  const looked = await checkNames(tools, look);
  await keepProofs(tools, found, unproven, looked);
  if (!isClear(looked, { names, unproven })) return await again(tools, waiting, looked);
  const outcome = await tools.issue(record, product, looked);
  if (outcome === 'later') await again(tools, waiting, looked);
  if (typeof outcome === 'object') await giveUp(tools, waiting, outcome.impossible);
}

/** Undefined when there is nothing to be done about it now. */
async function caseOf({ store, products }: ProveTools, waiting: Waiting): Promise<Case | undefined> {
  const { accountId, orderId, certificateId } = waiting;
  const order = await store.orders.find(accountId, orderId);
  const record = await store.certificates.find(accountId, certificateId);
  // Being signed at this moment, or just issued or given up: then its row is gone, or will be.
  if (!order || record?.state !== 'pending' || order.pendingCertificateId !== certificateId) return undefined;
  return { order, record, product: products.get(order.productId) };
}

/** What a persistent record says is good for this one look, and not kept. */
async function keepProofs(
  tools: ProveTools,
  { order, record, product }: Case,
  unproven: readonly string[],
  { control }: CheckResults,
) {
  const { dcvMethod: method, accountId } = order;
  const proven = unproven.filter((name) => control.get(name)?.isOk);
  if (method === null || method === 'dns-persist' || proven.length === 0) return;
  const challenges = challengesOf(tools, { accountId, product, names: proven, dcv: order, certificateId: record.id });
  const { newId } = tools;
  const at = tools.now();
  await tools.store.transaction(async (tx) => {
    for (const name of proven) {
      const kept = proofOf(challenges.get(name)!, order.dcvScope, tools.registrableDomain);
      await tx.proofs.record(accountId, kept, method, at);
      await tx.audit.append({
        ...{ id: newId(), at, accountId, actor: 'service', action: 'name:validated', subject: name, requestId: null },
        details: { method, scope: order.dcvScope, order_id: order.id },
      });
    }
  });
}

async function again({ store, now, random }: ProveTools, waiting: Waiting, looked?: CheckResults): Promise<void> {
  const at = now();
  const wait = waitAfter(waiting.tries) * (1 - JITTER + 2 * JITTER * random());
  // Never later than its end, which is also found by being due.
  const dueAt = Math.min(Math.round(at + wait), waiting.expiresAt);
  const after = {
    ...waiting,
    tries: waiting.tries + 1,
    dueAt,
    findings: looked ? findingsOf(looked, at) : waiting.findings,
  };
  // Unless the method was changed while we looked: what was seen then is no answer to what is asked now.
  await store.waiting.update(after, waiting.dueAt);
}

async function giveUp({ store, now, newId }: ProveTools, waiting: Waiting, why: string): Promise<void> {
  const { accountId, orderId, certificateId } = waiting;
  await store.transaction(async (tx) => {
    const found = await tx.orders.findForUpdate(accountId, orderId);
    if (!found || found.signing || found.order.pendingCertificateId !== certificateId) return;
    await lapse(tx, found.order, certificateId, why, now(), newId);
  });
}
