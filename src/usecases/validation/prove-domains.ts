// Validates waiting certificates: checks their names, records proofs, and issues once all checks pass. Runs when a
// caller reports that the records are published, and on schedule with backoff. Workers take a lease on a certificate
// first, so that instances share the work and pick up what a dead one left.

import { requireActive } from '../../domain/access/account.ts';
import { isUsableAccount } from '../../domain/acme/account.ts';
import type { AcmeOrder } from '../../domain/acme/acme-order.ts';
import type { Product } from '../../domain/catalog/products.ts';
import type { CancellationReason, PendingCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, OrderId } from '../../domain/ids.ts';
import { proofKey } from '../../domain/validation/challenge.ts';
import { CHECK_LEASE_MS, HELD_CHECK_MS, jitteredBackoff, pastCache } from '../../domain/validation/check-result.ts';
import type { WaitingCertificate } from '../../domain/validation/ports.ts';
import { byService } from '../access/audit.ts';
import {
  CHECK_LIMITS_MS,
  type CheckResults,
  cachedFor,
  challengesOf,
  checkNames,
  findingsOf,
  isClear,
  NOTHING_CHECKED,
  unprovenOf,
  type ValidationTools,
} from './check-names.ts';
import { type CheckOnRequest, limitChecks } from './limit-checks.ts';
import { lapse, notWaiting } from './pending-certificates.ts';
import { provenMethods, recordedMethod } from './proven-names.ts';
import { workOff } from './work-off.ts';

export interface ProveDomains {
  /** Checks the certificate that the order waits for. */
  readonly prove: (accountId: AccountId, orderId: OrderId) => Promise<void>;
  /** Checks due certificates until none is left. Returns how many it checked. */
  readonly proveDue: (stopping?: AbortSignal) => Promise<number>;
}

/**
 * Issues a certificate whose names are validated. `impossible`: it can never be issued as requested. `later`: not now,
 * perhaps after the next check. A port, because issuance is above validation.
 */
export type IssuePending = (
  record: PendingCertificate,
  product: Product,
  results: CheckResults,
) => Promise<PendingOutcome>;
export type PendingOutcome = 'issued' | 'later' | { readonly impossible: CancellationReason };

interface ProveTools extends ValidationTools, CheckOnRequest {
  readonly issue: IssuePending;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
  /** For metrics and the log. */
  readonly onChecked: OnChecked;
}

export type OnChecked = (waiting: WaitingCertificate, check: FinishedCheck) => void;
export type CheckOutcome = 'issued' | 'waits' | 'given_up' | 'held';
interface FinishedCheck {
  readonly method: string | null;
  readonly results: CheckResults;
  readonly outcome: CheckOutcome;
  readonly ms: number;
}

interface PendingIssuance {
  readonly order: Order;
  readonly record: PendingCertificate;
  readonly product: Product | undefined;
  readonly isSuspended: boolean;
}

export function proveDomains(tools: ProveTools): ProveDomains {
  const { store } = tools;
  const { sharedNow } = store;
  return {
    async prove(accountId, orderId) {
      using _slot = await tools.acquireSlot('domain_check', accountId);
      const order = await store.orders.find(accountId, orderId);
      if (!order) throw new Refusal('order_not_found');
      const account = await store.accounts.find(accountId);
      if (account) requireActive(account);
      const certificateId = order.pendingCertificateId;
      const waiting = certificateId === null ? undefined : await store.waiting.find(accountId, certificateId);
      if (!waiting) throw notWaiting(order);
      await limitChecks(tools, order);
      // A request resets the backoff: the applicant is working on the records.
      const claimed = { ...waiting, tries: 0, dueAt: sharedNow() + CHECK_LEASE_MS };
      await store.waiting.update(claimed);
      await proveWaiting(tools, claimed, CHECK_LIMITS_MS.onRequest);
    },

    proveDue: (stopping) =>
      workOff(
        {
          claim: (most, except) => store.waiting.claim(sharedNow(), sharedNow() + CHECK_LEASE_MS, most, except),
          putBack: (waiting) => store.waiting.update({ ...waiting, dueAt: sharedNow() }, waiting.dueAt),
          run: (waiting) => proveOrReschedule(tools, waiting, stopping),
        },
        stopping,
      ),
  };
}

/** Never throws: an error reschedules this certificate with backoff and does not stop the others. */
async function proveOrReschedule(
  tools: ProveTools,
  waiting: WaitingCertificate,
  stopping?: AbortSignal,
): Promise<void> {
  try {
    await proveWaiting(tools, waiting, CHECK_LIMITS_MS.bySchedule, stopping);
  } catch (error) {
    tools.onError(error);
    await reschedule(tools, waiting).catch(tools.onError);
  }
}

async function proveWaiting(
  tools: ProveTools,
  waiting: WaitingCertificate,
  limitMs: number,
  stopping?: AbortSignal,
): Promise<void> {
  const pending = await findPending(tools, waiting);
  if (!pending) return;
  const { order, record, product, isSuspended } = pending;
  const begun = performance.now();
  const report = (outcome: CheckOutcome, results = NOTHING_CHECKED) => {
    const ms = Math.round(performance.now() - begun);
    tools.onChecked(waiting, { method: order.dcvMethod, results, outcome, ms });
  };
  const at = tools.now();
  // Irreversible, so by the clock that the instances share.
  const sharedAt = tools.store.sharedNow();
  if (sharedAt >= waiting.expiresAt || sharedAt >= order.termEndsAt) {
    await giveUp(tools, waiting, sharedAt >= order.termEndsAt ? 'expiration_passed' : 'validation_lapsed');
    return report('given_up');
  }
  if (isSuspended) {
    await hold(tools, waiting);
    return report('held');
  }
  // The operator withdrew the product, and may offer it again.
  if (!product) return;

  const { accountId } = waiting;
  const { names, id: certificateId } = record;
  const provenBy = await provenMethods(tools, tools.store, { accountId, names, product, now: at });
  // Of the certificate that was ordered over ACME: a reissue of its order is not asked for by the ACME account.
  const acmeOrder = await tools.store.acmeOrders.findByCertificate(accountId, certificateId);
  // The operator disabled the ACME account, or its binding, while the certificate waited.
  if (acmeOrder && !(await isStillEntitled(tools, acmeOrder))) {
    await giveUp(tools, waiting, 'validation_lapsed');
    return report('given_up');
  }
  const acmeAccount = acmeOrder?.acmeAccountUrl;
  const request = { accountId, acmeAccount, product, names, provenBy, dcv: order, certificateId, limitMs, stopping };
  const results = await checkNames(tools, request);
  await recordProofs(tools, { order, record, product }, results);
  const isProven = isClear(results, { names, unproven: unprovenOf(request) });
  const outcome = isProven ? await tools.issue(record, product, results) : 'later';
  if (outcome === 'later') await reschedule(tools, waiting, results);
  if (typeof outcome === 'object') await giveUp(tools, waiting, outcome.impossible);
  report(outcome === 'issued' ? 'issued' : outcome === 'later' ? 'waits' : 'given_up', results);
}

async function isStillEntitled({ store, now }: ProveTools, { acmeAccountId }: AcmeOrder): Promise<boolean> {
  const bound = await store.acmeAccounts.find(acmeAccountId);
  return bound !== undefined && isUsableAccount(bound, now());
}

/** Returns undefined if there is nothing to do now. */
async function findPending(
  { store, products }: ProveTools,
  { accountId, orderId, certificateId }: WaitingCertificate,
): Promise<PendingIssuance | undefined> {
  const order = await store.orders.find(accountId, orderId);
  const record = await store.certificates.find(accountId, certificateId);
  // Otherwise it was just issued or canceled: its row is gone, or soon will be.
  if (!order || record?.state !== 'pending' || order.pendingCertificateId !== certificateId) return undefined;
  const account = await store.accounts.find(accountId);
  return { order, record, product: products.get(order.productId), isSuspended: account?.suspendedAt !== null };
}

/** Persistent records are not stored as proofs: they are checked before every issuance. */
async function recordProofs(
  tools: ProveTools,
  { order, record, product }: Omit<PendingIssuance, 'isSuspended'> & { readonly product: Product },
  { control }: CheckResults,
): Promise<void> {
  const { dcvMethod: method, dcvScope: scope, accountId } = order;
  const proven = [...control].flatMap(([name, { isOk }]) => (isOk ? [name] : []));
  if (method === null || method === 'dns-persist' || proven.length === 0) return;
  const challenges = challengesOf(tools, { accountId, product, names: proven, dcv: order, certificateId: record.id });
  const at = tools.now();
  await tools.store.transaction(async (tx) => {
    for (const [name, challenge] of challenges) {
      const key = proofKey(challenge, scope, tools.registrableDomain);
      await tx.proofs.record(accountId, key, recordedMethod(method, product, control.get(name)), at);
      await tools.audit(tx, byService(accountId), 'name:validated', name, { method, scope, order_id: order.id });
    }
  });
}

async function reschedule(
  { store, now, random }: ProveTools,
  waiting: WaitingCertificate,
  results?: CheckResults,
): Promise<void> {
  const findings = results ? findingsOf(results, now()) : waiting.findings;
  const delay = pastCache(jitteredBackoff(waiting.tries, random()), results ? cachedFor(findings) : 0);
  // Not after `expiresAt`: expiry is noticed when the certificate is due.
  const dueAt = Math.min(store.sharedNow() + delay, waiting.expiresAt);
  // No-op if the method was changed during the check: results of the old method do not apply to the new one.
  await store.waiting.update({ ...waiting, tries: waiting.tries + 1, dueAt, findings }, waiting.dueAt);
}

async function hold({ store }: ProveTools, waiting: WaitingCertificate): Promise<void> {
  const dueAt = Math.min(store.sharedNow() + HELD_CHECK_MS, waiting.expiresAt);
  await store.waiting.update({ ...waiting, dueAt }, waiting.dueAt);
}

async function giveUp(tools: ProveTools, waiting: WaitingCertificate, reason: CancellationReason): Promise<void> {
  const { accountId, orderId, certificateId } = waiting;
  await tools.store.transaction(async (tx) => {
    const found = await tx.orders.findForUpdate(accountId, orderId);
    if (!found || found.signing || found.order.pendingCertificateId !== certificateId) return;
    await lapse(tools, tx, { order: found.order, certificateId, reason });
  });
}
