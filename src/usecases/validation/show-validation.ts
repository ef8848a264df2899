// Shows what the applicant must publish for each name of an order, the results so far, and, on request, the result of a
// check right now. Such a check records no proof; it only uses up the rate limit.

import { awaitsCsr, type Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, OrderId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { type Challenge, shortfallOf } from '../../domain/validation/challenge.ts';
import { type CheckResult, corroborate, type NameFinding, PASSED } from '../../domain/validation/check-result.ts';
import { mapLimit } from '../../kernel/concurrency.ts';
import {
  CHECK_LIMITS_MS,
  challengesOf,
  checkDeadline,
  NAMES_AT_ONCE,
  notProvable,
  unprovenOf,
  type ValidationTools,
} from './check-names.ts';
import { type CheckOnRequest, limitChecks } from './limit-checks.ts';
import { notWaiting } from './pending-certificates.ts';
import { provenMethods } from './proven-names.ts';

export interface NameState {
  readonly name: string;
  /** Also of a proven name: clients read it later. Null if the order's method cannot prove the name, or the order ended. */
  readonly challenge: Challenge | null;
  readonly isVerified: boolean;
  /** `at` is null for a finding that needed no check. */
  readonly finding: (Omit<NameFinding, 'at'> & { readonly at: number | null }) | null;
}

export interface ValidationState {
  readonly names: readonly NameState[];
  /** `dueAt` is null for an order that waits for its CSR: nothing is checked before the client asks for it. */
  readonly waiting: { readonly dueAt: number | null; readonly expiresAt: number } | null;
}

export interface NameCheck {
  readonly name: string;
  /** Null where nothing needs to be published. */
  readonly challenge: Challenge | null;
  readonly control: CheckResult;
  /** What each perspective saw of control, the primary one first; empty where none was asked. */
  readonly perspectives: readonly CheckResult[];
  readonly caa: CheckResult;
}

export interface ShowValidation {
  readonly state: (order: Order) => Promise<ValidationState>;
  readonly check: (accountId: AccountId, orderId: OrderId) => Promise<readonly NameCheck[]>;
}

const NOTHING_PROVEN: ReadonlyMap<string, readonly string[]> = new Map();

export function showValidation(tools: ValidationTools & CheckOnRequest): ShowValidation {
  const { store, products, now } = tools;

  async function namesOf(order: Order): Promise<readonly string[]> {
    const { accountId, pendingCertificateId: id } = order;
    const pending = id === null ? undefined : await store.certificates.find(accountId, id);
    return pending?.names ?? order.names;
  }

  async function provenOf({ accountId, productId }: Order, names: readonly string[]) {
    const product = products.get(productId);
    return product ? await provenMethods(tools, store, { accountId, names, product, now: now() }) : NOTHING_PROVEN;
  }

  /** The values belong to a certificate: the waiting one, or the last. */
  function challengesFor(order: Order, names: readonly string[]): Map<string, Challenge> {
    const { accountId, pendingCertificateId, currentCertificateId } = order;
    const certificateId = pendingCertificateId ?? currentCertificateId;
    if (certificateId === null) return new Map();
    return challengesOf(tools, { accountId, product: products.get(order.productId), names, dcv: order, certificateId });
  }

  return {
    async state(order) {
      if (awaitsCsr(order)) return await authorizedState(store, order);
      const { accountId, pendingCertificateId: id } = order;
      const waiting = id === null ? undefined : await store.waiting.find(accountId, id);
      const names = await namesOf(order);
      // All names of an issued certificate were verified. An order that ended without one shows nothing as verified.
      const isIssued = !waiting && order.currentCertificateId !== null;
      const provenBy = waiting ? await provenOf(order, names) : NOTHING_PROVEN;
      const unproven = new Set(isIssued ? [] : unprovenOf({ names, provenBy }));
      const challenges = challengesFor(order, names);
      return {
        names: names.map((name) => {
          const challenge = challenges.get(name) ?? null;
          const finding = waiting?.findings[name] ?? null;
          const isPersist = challenge?.method === 'dns-persist';
          const isChecked = isPersist && waiting !== undefined && waiting.tries > 0;
          const isVerified = !unproven.has(name) || (isChecked && finding?.of !== 'control');
          const shortfall =
            challenge && !isVerified && isUnpublished(finding) ? shortfallFinding(challenge, order, now()) : null;
          return { name, challenge, isVerified, finding: shortfall ?? finding };
        }),
        waiting: waiting ?? null,
      };
    },

    async check(accountId, orderId) {
      using _slot = await tools.acquireSlot('domain_check', accountId);
      const order = await store.orders.find(accountId, orderId);
      if (!order) throw new Refusal('order_not_found');
      // Without a waiting certificate only a persistent record, which belongs to the account, can be checked.
      const hasPersistRecord = order.currentCertificateId !== null && order.dcvMethod === 'dns-persist';
      if (order.pendingCertificateId === null && !hasPersistRecord) throw notWaiting(order);
      await limitChecks(tools, order);
      const names = await namesOf(order);
      const challenges = challengesFor(order, names);
      const provenBy = await provenOf(order, names);
      using deadline = checkDeadline(CHECK_LIMITS_MS.onRequest);
      const product = products.get(order.productId);
      // Every perspective is heard out, though the decision may be clear earlier: its answer is what was asked for.
      const viewsOf = async (challenge: Challenge | null): Promise<readonly CheckResult[]> =>
        challenge && product
          ? await Promise.all(
              tools.checks.controlFrom.map((check) =>
                deadline.run((signal) => check(challenge, { accountId, product, signal }), challenge.method),
              ),
            )
          : [];
      return await mapLimit(NAMES_AT_ONCE, names, async (name) => {
        const challenge = challenges.get(name) ?? null;
        const methods = provenBy.get(name) ?? (challenge ? [challenge.method] : []);
        // Stored proofs are reused; persistent records are checked each time.
        const isProven = provenBy.has(name) && challenge?.method !== 'dns-persist';
        const [perspectives, caa] = await Promise.all([
          isProven ? [] : viewsOf(challenge),
          deadline.run((signal) => tools.checks.caa(name, methods, { accountId, signal })),
        ]);
        const control = isProven
          ? PASSED
          : perspectives.length > 0
            ? corroborate(perspectives)
            : notProvable(name, order);
        return { name, challenge: isProven ? null : challenge, control, perspectives, caa };
      });
    },
  };
}

/** Of an order that waits for its CSR: its names are proven over ACME, by what the challenges there ask for. */
async function authorizedState(
  { acmeOrders, authorizations }: Pick<Repositories, 'acmeOrders' | 'authorizations'>,
  { id, accountId, names }: Order,
): Promise<ValidationState> {
  const valid = (await authorizations.ofOrder(id)).filter(({ state }) => state === 'valid').map(({ name }) => name);
  const acme = await acmeOrders.find(accountId, id);
  return {
    names: names.map((name) => ({ name, challenge: null, isVerified: valid.includes(name), finding: null })),
    waiting: acme ? { dueAt: null, expiresAt: acme.expiresAt } : null,
  };
}

/** Nothing is published yet, as far as checks know. */
const isUnpublished = (finding: NameFinding | null): boolean => finding === null || finding.problem === 'no_record';

function shortfallFinding(challenge: Challenge, order: Order, now: number): NameState['finding'] {
  const reason = shortfallOf(challenge, order, now);
  return reason && { at: null, of: 'control', problem: 'unauthorized', reason };
}
