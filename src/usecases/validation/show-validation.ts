// What the holder of an order has to publish for each name, what has been seen so far, and, on request, what the outside
// world answers right now. A look proves nothing, and changes nothing but the allowance of looks.

import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, OrderId } from '../../domain/ids.ts';
import { type Challenge, shortfallOf } from '../../domain/validation/challenge.ts';
import { type CheckResult, type Finding, PASSED } from '../../domain/validation/check-result.ts';
import type { Waiting } from '../../domain/validation/ports.ts';
import { mapLimit } from '../../kernel/concurrency.ts';
import { CHECK_LIMITS_MS, challengesOf, notProvable, unprovenOf, type ValidationTools, within } from './check-names.ts';
import { limitChecks } from './limit-checks.ts';
import { notWaiting } from './pending-certificates.ts';
import { provenAmong } from './proven-names.ts';

export interface NameState {
  readonly name: string;
  /** Null where nothing is to be published: a value belongs to a certificate that waits. */
  readonly challenge: Challenge | null;
  readonly isVerified: boolean;
  /** Without a time when it can be told without looking. */
  readonly finding: (Omit<Finding, 'at'> & { readonly at: number | null }) | null;
}

export interface ValidationState {
  readonly names: readonly NameState[];
  /** Null when nothing waits. */
  readonly waiting: Pick<Waiting, 'dueAt' | 'expiresAt'> | null;
}

export interface NameCheck {
  readonly name: string;
  /** Null where nothing is to be published. */
  readonly challenge: Challenge | null;
  readonly control: CheckResult;
  readonly caa: CheckResult;
}

export interface ShowValidation {
  readonly state: (order: Order) => Promise<ValidationState>;
  readonly check: (accountId: AccountId, orderId: OrderId) => Promise<readonly NameCheck[]>;
}

const AT_ONCE = 8;

export function showValidation(tools: ValidationTools): ShowValidation {
  const { store, products, now } = tools;

  async function namesOf(order: Order): Promise<readonly string[]> {
    const { accountId, pendingCertificateId: id } = order;
    const pending = id === null ? undefined : await store.certificates.find(accountId, id);
    return pending?.names ?? order.names;
  }

  async function provenOf(order: Order, names: readonly string[]): Promise<Map<string, readonly string[]>> {
    const product = products.get(order.productId);
    return product ? await provenAmong(tools, store, order.accountId, names, product, now()) : new Map();
  }

  const challengesFor = (order: Order, names: readonly string[]): Map<string, Challenge> =>
    challengesOf(tools, {
      accountId: order.accountId,
      product: products.get(order.productId),
      names,
      dcv: order,
      certificateId: order.pendingCertificateId ?? '',
    });

  return {
    async state(order) {
      const { accountId, pendingCertificateId: id } = order;
      const waiting = id === null ? undefined : await store.waiting.find(accountId, id);
      const names = await namesOf(order);
      // Of what is issued everything was verified, and of what ended before that nothing counts.
      const isIssued = !waiting && order.currentCertificateId !== null;
      const provenBy = waiting ? await provenOf(order, names) : new Map();
      const unproven = new Set(isIssued ? [] : unprovenOf({ names, provenBy }));
      const challenges = challengesFor(order, names);
      return {
        names: names.map((name) => {
          const challenge = challenges.get(name) ?? null;
          const finding = waiting?.findings[name] ?? null;
          const isShown = isIssued ? challenge?.method === 'dns-persist' : waiting && unproven.has(name);
          const isSeen = challenge?.method === 'dns-persist' && waiting !== undefined && waiting.tries > 0;
          const isVerified = !unproven.has(name) || (isSeen && finding?.of !== 'control');
          return {
            name,
            challenge: isShown ? challenge : null,
            isVerified,
            finding:
              isVerified || !challenge || !isNothing(finding)
                ? finding
                : (shortfall(challenge, order, now()) ?? finding),
          };
        }),
        waiting: waiting ?? null,
      };
    },

    async check(accountId, orderId) {
      const order = await store.orders.find(accountId, orderId);
      if (!order) throw new Refusal('order_not_found');
      // A value belongs to a certificate that waits; a persistent record to the account.
      const isOver = order.currentCertificateId === null || order.dcvMethod !== 'dns-persist';
      if (order.pendingCertificateId === null && isOver) throw notWaiting(order);
      await limitChecks(tools, order);
      const names = await namesOf(order);
      const challenges = challengesFor(order, names);
      const provenBy = await provenOf(order, names);
      const inTime = within(CHECK_LIMITS_MS.onRequest);
      const controlNow = (challenge: Challenge | null) =>
        challenge
          ? inTime((signal) => tools.checks.control(challenge, { accountId, signal }), challenge.method)
          : notProvable(order);
      return await mapLimit(AT_ONCE, names, async (name) => {
        const challenge = challenges.get(name) ?? null;
        const methods = provenBy.get(name) ?? (challenge ? [challenge.method] : []);
        // A proof that is kept need not be shown again; a persistent record is asked each time.
        const isKept = provenBy.has(name) && challenge?.method !== 'dns-persist';
        const [control, caa] = await Promise.all([
          isKept ? PASSED : controlNow(challenge),
          inTime((signal) => tools.checks.caa(name, methods, { accountId, signal })),
        ]);
        return { name, challenge: isKept ? null : challenge, control, caa };
      });
    },
  };
}

/** Nothing was published yet that could be told about. */
const isNothing = (finding: Finding | null): boolean => finding === null || finding.problem === 'no_record';

function shortfall(challenge: Challenge, order: Order, now: number): NameState['finding'] {
  const reason = shortfallOf(challenge, order, now);
  return reason && { at: null, of: 'control', problem: 'unauthorized', reason };
}
