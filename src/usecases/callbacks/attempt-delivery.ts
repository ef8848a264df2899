// Makes one attempt to deliver an event, and records it: delivered, retry, or given up. Outcome and lane are written in
// one transaction, and only if the lease still holds.

import {
  type AttemptReason,
  afterFailure,
  type DeliveryAttempt,
  giveUpCutoff,
  isDegraded,
  isDelivered,
  isInOrderLeased,
  retryAfterOf,
  retryDelay,
  retryWindow,
} from '../../domain/callbacks/delivery.ts';
import type { LeasedAttempt, PendingEvent } from '../../domain/callbacks/ports.ts';
import { excerptOf } from '../../domain/callbacks/report.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CallOut, OutboundPolicy, Outcome } from '../../domain/egress/outbound.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import type { ClaimedDelivery } from './claim-deliveries.ts';
import type { DispatcherTurns } from './dispatcher-turns.ts';
import { callbackHeaders } from './sign-callback.ts';

/** For metrics and the log. */
export interface DeliveryObserver {
  attempted(event: PendingEvent, attempt: DeliveryAttempt, outcome: AttemptOutcome): void;
  /** Milliseconds from the event, or from its resending, to the first attempt. */
  firstAttempt(ms: number): void;
  gaveUp(event: PendingEvent, attempts: number): void;
}
type AttemptOutcome = 'delivered' | 'status_3xx' | 'status_4xx' | 'status_5xx' | 'status_other' | AttemptReason;

export interface AttemptTools {
  readonly store: Store;
  readonly now: Clock;
  /** From 0 to 1, for the jitter. */
  readonly random: () => number;
  readonly callOut: CallOut;
  readonly policyFor: (accountId: AccountId) => OutboundPolicy;
  readonly schedule: readonly number[];
  readonly observer: DeliveryObserver;
  /** When what has ended is recorded. */
  readonly turns: DispatcherTurns;
}

const MAX_GIVEN_UP = 100;

/** Resolves when the outcome is durable. Calls `onEnd` as soon as the connection has ended. */
type AttemptDelivery = (claimed: ClaimedDelivery, signal: AbortSignal, onEnd: () => void) => Promise<void>;

export function attemptDelivery(tools: AttemptTools): AttemptDelivery {
  const { store, now, random, callOut, policyFor, schedule, observer, turns } = tools;
  const windowMs = retryWindow(schedule);
  /** Delivered, to be recorded together. */
  let unrecorded: { readonly attempts: LeasedAttempt[]; readonly recorded: Promise<void> } | undefined;

  async function send({ event, settings, url }: ClaimedDelivery, at: number, signal: AbortSignal): Promise<Outcome> {
    const { accessKey, signingSecret, former } = settings;
    const { id, accountId, body } = event;
    const headers = callbackHeaders({ id, at, body, accessKey, signingSecret, former });
    const policy = policyFor(accountId);
    return await callOut({ url, method: 'POST', headers, body, policy, keptFor: accountId, signal });
  }

  async function recordFailure(leased: LeasedAttempt, outcome: Outcome): Promise<void> {
    const { event, attempt } = leased;
    const { accountId } = event;
    const at = now();
    const retryAfterMs = outcome.kind === 'answered' ? retryAfterOf(outcome.headers, at) : null;
    const delay = retryDelay(schedule, event.tries + 1, random(), retryAfterMs);
    const givenUp = await store.transaction(async ({ callbackLanes: lanes, deliveryQueue: queue }) => {
      const failure = { startedAt: attempt.at, now: at, schedule, retryAfterMs };
      const lane = afterFailure(await lanes.lock(accountId), failure);
      const cutoff = giveUpCutoff(lane, at, windowMs);
      const isOver = delay === null || (cutoff !== null && event.begunAt < cutoff);
      const isLeaseHeld = isOver
        ? await queue.markFailed(leased, at, delay === null ? 'attempts_used_up' : 'receiver_down')
        : await queue.scheduleRetry(leased, at + delay);
      if (!isLeaseHeld) return [];
      const inOrderUntil = event.inOrder ? 0 : lane.inOrderUntil;
      const includeInOrder = !isInOrderLeased({ ...lane, inOrderUntil }, at);
      const old =
        cutoff === null
          ? []
          : await queue.failBegunBefore(accountId, cutoff, { now: at, includeInOrder, limit: MAX_GIVEN_UP });
      await lanes.save({ ...lane, inOrderUntil, notBefore: isDegraded(lane) ? lane.openUntil : 0 });
      return [...(isOver ? [{ ...event, attempts: attempt.number }] : []), ...old];
    });
    for (const one of givenUp) observer.gaveUp(one, one.attempts);
  }

  /** Attempts that end before the next turn share a transaction: a bounded number is in flight. */
  function recordDelivered(leased: LeasedAttempt): Promise<void> {
    unrecorded ??= { attempts: [], recorded: turns.next('record').then(record) };
    // The next event of a range waits for it.
    if (leased.event.inOrder) turns.hasten('claim');
    unrecorded.attempts.push(leased);
    return unrecorded.recorded;
  }

  async function record(): Promise<void> {
    const { attempts = [] } = unrecorded ?? {};
    unrecorded = undefined;
    for (const { event, attempt } of attempts) observer.attempted(event, attempt, 'delivered');
    await store.transaction(async (tx) => {
      const at = now();
      const held = await tx.deliveryQueue.markDelivered(attempts, at);
      await tx.callbackLanes.reset([...new Set(held.map(({ event }) => event.accountId))], at);
    });
  }

  return async (claimed, signal, onEnd) => {
    const { event, token, settings } = claimed;
    const startedAt = now();
    const started = performance.now();
    if (event.attempts === 0) observer.firstAttempt(Math.max(0, startedAt - event.begunAt));
    const outcome = await send(claimed, startedAt, signal).finally(onEnd);
    if (outcome.kind === 'failed' && outcome.reason === 'canceled') {
      await store.transaction((tx) => tx.deliveryQueue.release(event, token, now()));
      return;
    }
    const attempt: DeliveryAttempt = {
      number: event.attempts + 1,
      at: startedAt,
      ms: Math.round(performance.now() - started),
      httpStatus: outcome.kind === 'answered' ? outcome.status : null,
      reason: outcome.kind === 'failed' ? outcome.reason : outcome.kind === 'private' ? 'private_address' : null,
      excerpt: outcome.kind === 'answered' && !outcome.isPrivate ? excerptOf(outcome.body, settings.accessKey) : null,
    };
    const leased = { event, token, attempt };
    if (isDelivered(outcome)) return await recordDelivered(leased);
    observer.attempted(event, attempt, failureOf(outcome));
    await recordFailure(leased, outcome);
  };
}

function failureOf(outcome: Outcome): Exclude<AttemptOutcome, 'delivered'> {
  if (outcome.kind === 'private') return 'private_address';
  if (outcome.kind === 'failed') return outcome.reason;
  const hundreds = Math.floor(outcome.status / 100);
  return hundreds >= 3 && hundreds <= 5 ? (`status_${hundreds as 3 | 4 | 5}xx` as const) : 'status_other';
}
