// Answers of clients to challenges, and their validation. The answer is durable before it is acknowledged; then this
// process validates it, or, if it is busy or dies, the background work of any. One challenge decides an authorization, and
// one failed authorization its order.
import { acmeActor } from '../../domain/acme/account.ts';
import {
  type Authorization,
  authorizationStatus,
  factsOf,
  type PendingAuthorization,
  seenOf,
} from '../../domain/acme/authorization.ts';
import { challengesFor } from '../../domain/acme/challenge.ts';
import { identifierOf } from '../../domain/acme/new-order.ts';
import { AcmeProblem } from '../../domain/acme/problem.ts';
import { awaitsCsr } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Repositories } from '../../domain/store.ts';
import { CHECK_LEASE_MS } from '../../domain/validation/check-result.ts';
import { ACME_METHODS, type AcmeMethod } from '../../domain/validation/method.ts';
import { keyCounts } from '../../kernel/concurrency.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { byService } from '../access/audit.ts';
import { CHECK_LIMITS_MS } from '../validation/check-names.ts';
import { seenPrivately } from '../validation/proven-names.ts';
import { workOff } from '../validation/work-off.ts';
import { endAcmeOrder } from './end-acme-order.ts';
import type { AcmeCaller, AcmeOrderTools } from './tools.ts';
import type { ChallengeResult } from './validate-challenge.ts';

export interface AcmeAuthorizations {
  /** Throws `notFound`. */
  find(caller: AcmeCaller, id: string): Promise<Authorization>;
  /** Returns the authorization afterwards; unchanged if it was answered before or has ended. */
  answer(caller: AcmeCaller, id: string, method: AcmeMethod): Promise<Authorization>;
  /** Gives the authorization up, and with it what was proven by challenges for the name. */
  deactivate(caller: AcmeCaller, id: string): Promise<Authorization>;
  /** Validates answered challenges that are due until none is left. Returns how many. */
  validateDue(stopping?: AbortSignal): Promise<number>;
  /** Resolves once nothing is validated here any more. */
  close(): Promise<void>;
}

/** Each asks servers of the client's choosing, for seconds. What exceeds this is left to the background work. */
const AT_ONCE = 64;
/** Of one account. */
const PER_ACCOUNT = 16;
/** Of one ACME account and name: each asks third-party servers. */
const ANSWER_RATE: Rate = { burst: 20, everyMs: 30 * SECOND_MS };
/** After a failure that is ours, such as that no resolver answers. */
const RETRY_MS = 15 * SECOND_MS;

type Answered = PendingAuthorization & { readonly answered: NonNullable<PendingAuthorization['answered']> };
const isAnswered = (one: Authorization): one is Answered => one.state === 'pending' && one.answered !== null;

export function acmeAuthorizations(tools: AcmeOrderTools): AcmeAuthorizations {
  const { store, now } = tools;
  const { sharedNow } = store;
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const held = keyCounts();
  let taken = 0;

  async function find({ bound: { account } }: AcmeCaller, id: string): Promise<Authorization> {
    const found = await store.authorizations.find(account.id, id);
    if (found) return found;
    throw new AcmeProblem('notFound', { en: 'There is no such authorization.', zh: '没有此授权。' });
  }

  /** A place to validate here; null if all are taken, or those of the account. */
  function takeSlot(accountId: AccountId): Disposable | null {
    if (stopping.signal.aborted || taken >= AT_ONCE || held.count(accountId) >= PER_ACCOUNT) return null;
    taken += 1;
    const counted = held.add([accountId]);
    return {
      [Symbol.dispose]() {
        taken -= 1;
        counted[Symbol.dispose]();
      },
    };
  }

  function validateHere(authorization: Answered, slot: Disposable): void {
    const work = validateOrRelease(tools, authorization, stopping.signal).finally(() => {
      running.delete(work);
      slot[Symbol.dispose]();
    });
    running.add(work);
  }

  return {
    find,

    async answer(caller, id, method) {
      const found = await find(caller, id);
      const { accountId, orderId } = found;
      if (found.state !== 'pending' || found.answered || authorizationStatus(found, now()) !== 'pending') return found;
      const order = await store.orders.find(accountId, orderId);
      const product = order && tools.products.get(order.productId);
      if (!order || !awaitsCsr(order) || !product || !challengesFor(found.name, product).includes(method)) return found;
      using unlessBegun = new DisposableStack();
      const slot = unlessBegun.use(takeSlot(accountId));
      const dueAt = slot ? sharedNow() + CHECK_LEASE_MS : sharedNow();
      const answered: Answered = { ...found, answered: { method, dueAt } };
      const isSaved = await store.transaction(async (tx) => {
        const waitMs = await tx.rateLimits.take(
          `acme-answer ${found.acmeAccountId} ${found.name}`,
          ANSWER_RATE,
          tx.sharedNow(),
        );
        if (waitMs > 0) throw tooMany(waitMs);
        return await tx.authorizations.save(answered, seenOf(found));
      });
      if (!isSaved) return await find(caller, id);
      if (slot) {
        unlessBegun.move();
        validateHere(answered, slot);
      }
      return answered;
    },

    async deactivate(caller, id) {
      const before = await find(caller, id);
      const { accountId, orderId, name } = before;
      return await store.transaction(async (tx) => {
        const order = (await tx.orders.findForUpdate(accountId, orderId))?.order;
        const found = await tx.authorizations.find(before.acmeAccountId, id);
        if (!order || !found || (found.state !== 'pending' && found.state !== 'valid')) return found ?? before;
        const ended: Authorization = { ...factsOf(found), state: 'deactivated' };
        if (!(await tx.authorizations.save(ended, seenOf(found)))) {
          throw new Refusal('service_busy', { retryAfterSeconds: 1 });
        }
        await tx.proofs.forget(accountId, name, proofMethods(tools));
        await endAcmeOrder(tools, tx, order, {
          ...{ type: 'unauthorized', identifier: identifierOf(name) },
          detail: { en: 'An authorization of the order was deactivated.', zh: '该订单的一项授权已停用。' },
        });
        const by = acmeActor(caller.bound, caller.requestId);
        await tools.audit(tx, by, 'name:relinquished', name, { order_id: orderId });
        return ended;
      });
    },

    validateDue: (until) =>
      workOff<Authorization>(
        {
          claim: (most, except) => store.authorizations.claim(sharedNow(), sharedNow() + CHECK_LEASE_MS, most, except),
          async putBack(one) {
            if (isAnswered(one)) await release(store, one, sharedNow());
          },
          run: async (one) => (isAnswered(one) ? await validateOrRelease(tools, one, until) : undefined),
        },
        until,
      ),

    async close() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

/** Never throws. After an unexpected error the challenge is due again when its lease ends. */
async function validateOrRelease(tools: AcmeOrderTools, answered: Answered, stopping?: AbortSignal): Promise<void> {
  try {
    const result = await validate(tools, answered, stopping);
    const at = tools.store.sharedNow();
    // Aborted checks prove nothing, and fail nothing: another process takes it up.
    if (stopping?.aborted) await release(tools.store, answered, at);
    else if (result) await conclude(tools, answered, result);
    // The operator withdrew the product, and may offer it again.
    else await release(tools.store, answered, at + RETRY_MS);
  } catch (error) {
    tools.onError(error);
  }
}

async function validate(
  { store, products, validate: check }: AcmeOrderTools,
  { accountId, orderId, acmeAccountId, name, token, answered }: Answered,
  stopping?: AbortSignal,
): Promise<ChallengeResult | undefined> {
  const order = await store.orders.find(accountId, orderId);
  const product = order && products.get(order.productId);
  const bound = await store.acmeAccounts.find(acmeAccountId);
  const acme = await store.acmeOrders.find(accountId, orderId);
  if (!product || !bound || !acme) return undefined;
  return await check({
    ...{ accountId, acmeAccount: acme.acmeAccountUrl, product, name, type: answered.method, token },
    ...{ thumbprint: bound.account.thumbprint, limitMs: CHECK_LIMITS_MS.bySchedule, stopping },
  });
}

/** Records what was found, once: a process that lost its lease changes nothing. */
async function conclude(tools: AcmeOrderTools, answered: Answered, result: ChallengeResult): Promise<void> {
  const { store, now, audit } = tools;
  const { accountId, orderId, name } = answered;
  const { method } = answered.answered;
  if (!result.isOk && result.problem.type === 'serverInternal') {
    return await release(store, answered, store.sharedNow() + RETRY_MS);
  }
  await store.transaction(async (tx) => {
    const order = (await tx.orders.findForUpdate(accountId, orderId))?.order;
    if (!order) return;
    const at = now();
    const facts = factsOf(answered);
    if (result.isOk) {
      const valid: Authorization = { ...facts, state: 'valid', method, validatedAt: at };
      if (!(await tx.authorizations.save(valid, seenOf(answered)))) return;
      const { proof } = result.evidence;
      if (proof !== null) await tx.proofs.record(accountId, name, proof, at);
      const details = { method, scope: 'fqdn', order_id: orderId };
      await audit(tx, byService(accountId), 'name:validated', name, details);
      return;
    }
    const problem = { ...result.problem, identifier: identifierOf(name) };
    const invalid: Authorization = { ...facts, state: 'invalid', method, problem };
    if (await tx.authorizations.save(invalid, seenOf(answered))) await endAcmeOrder(tools, tx, order, problem);
  });
}

const release = async ({ authorizations }: Repositories, one: Answered, dueAt: number): Promise<void> => {
  await authorizations.save({ ...one, answered: { ...one.answered, dueAt } }, seenOf(one));
};

/** Under which a challenge may have been recorded, for whichever product. */
const proofMethods = ({ products }: Pick<AcmeOrderTools, 'products'>): string[] =>
  ACME_METHODS.flatMap((method) => [
    method,
    ...[...products.values()].map((product) => seenPrivately(method, product)),
  ]);

const tooMany = (waitMs: number): AcmeProblem =>
  new AcmeProblem(
    'rateLimited',
    {
      en: 'Challenges of this name were answered too often. Check what is published, and try again later.',
      zh: '该名称的质询应答过于频繁，请检查已发布的内容，稍后重试。',
    },
    { retryAfterSeconds: Math.ceil(waitMs / SECOND_MS) },
  );
