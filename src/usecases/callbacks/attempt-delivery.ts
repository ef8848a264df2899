// One attempt to deliver an event, and what is written down about it: delivered, to be repeated, or given up. The outcome
// and the state of the lane are one transaction, and only whoever still has the lease writes.

import {
  type AttemptReason,
  afterFailure,
  type DeliveryAttempt,
  givenUpBefore,
  isAiling,
  isDelivered,
  isInOrderTaken,
  longestTrying,
  retryAfterOf,
  retryDelay,
} from '../../domain/callbacks/delivery.ts';
import type { Attempted, WaitingEvent } from '../../domain/callbacks/ports.ts';
import { excerptOf } from '../../domain/callbacks/report.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CallOut, OutboundPolicy, Outcome } from '../../domain/egress/outbound.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import type { Claimed } from './claim-deliveries.ts';
import { callbackHeaders } from './sign-callback.ts';

/** What somebody may want to count, or to be told. */
export interface DeliveryWatch {
  attempted(outcome: AttemptOutcome): void;
  /** From the moment an event came into being, or was asked for, to its first attempt. */
  firstAttempt(ms: number): void;
  gaveUp(event: WaitingEvent, attempts: number): void;
}
export type AttemptOutcome = 'delivered' | 'status_3xx' | 'status_4xx' | 'status_5xx' | 'status_other' | AttemptReason;

export interface AttemptTools {
  readonly store: Store;
  readonly now: Clock;
  /** From 0 to 1. */
  readonly chance: () => number;
  readonly callOut: CallOut;
  readonly policyFor: (accountId: AccountId) => OutboundPolicy;
  readonly schedule: readonly number[];
  readonly watch: DeliveryWatch;
}

const GIVEN_UP_AT_ONCE = 100;

/** `onEnd` comes as soon as the receiver is left alone, and is waited for; in the end the outcome is durable. */
export type AttemptDelivery = (claimed: Claimed, signal: AbortSignal, onEnd: () => Promise<void>) => Promise<void>;

export function attemptDelivery(tools: AttemptTools): AttemptDelivery {
  const { store, now, chance, callOut, policyFor, schedule, watch } = tools;
  const longestMs = longestTrying(schedule);

  async function send({ event, settings, url }: Claimed, at: number, signal: AbortSignal): Promise<Outcome> {
    const { accessKey, signingSecret, former } = settings;
    const { id, body } = event;
    const headers = callbackHeaders({ id, at, body, accessKey, signingSecret, former });
    return await callOut({ url, method: 'POST', headers, body, policy: policyFor(event.accountId), signal });
  }

  async function fail(attempted: Attempted, outcome: Outcome): Promise<void> {
    const { event, attempt } = attempted;
    const { accountId } = event;
    const at = now();
    const retryAfter = outcome.kind === 'answered' ? retryAfterOf(outcome.headers, at) : null;
    const wait = retryDelay(schedule, event.tries + 1, chance(), retryAfter);
    const given = await store.transaction(async (tx) => {
      const lane = afterFailure(await tx.callbackLanes.wait(accountId), attempt.at, at, schedule, retryAfter ?? 0);
      const { deliveryQueue: queue } = tx;
      const before = givenUpBefore(lane, at, longestMs);
      const isOver = wait === null || (before !== null && event.begunAt < before);
      const isOurs = isOver
        ? await queue.gaveUp(attempted, at, wait === null ? 'attempts_used_up' : 'receiver_down')
        : await queue.retryAt(attempted, at + wait);
      if (!isOurs) return [];
      const inOrderUntil = event.inOrder ? 0 : lane.inOrderUntil;
      const isInOrderToo = !isInOrderTaken({ ...lane, inOrderUntil }, at);
      const old =
        before === null ? [] : await queue.giveUpBegunBefore(accountId, before, at, isInOrderToo, GIVEN_UP_AT_ONCE);
      await tx.callbackLanes.save({ ...lane, inOrderUntil, notBefore: isAiling(lane) ? lane.closedUntil : 0 });
      return [...(isOver ? [{ ...event, attempts: attempt.number }] : []), ...old];
    });
    for (const one of given) watch.gaveUp(one, one.attempts);
  }

  return async (claimed, signal, onEnd) => {
    const { event, token, settings } = claimed;
    const startedAt = now();
    const begun = performance.now();
    if (event.attempts === 0) watch.firstAttempt(Math.max(0, startedAt - event.begunAt));
    const outcome = await send(claimed, startedAt, signal).finally(onEnd);
    if (outcome.kind === 'failed' && outcome.reason === 'canceled') {
      await store.transaction((tx) => tx.deliveryQueue.release(event, token, now()));
      return;
    }
    watch.attempted(outcomeOf(outcome));
    const attempt: DeliveryAttempt = {
      number: event.attempts + 1,
      at: startedAt,
      ms: Math.round(performance.now() - begun),
      httpStatus: outcome.kind === 'answered' ? outcome.status : null,
      reason: outcome.kind === 'failed' ? outcome.reason : outcome.kind === 'private' ? 'private_address' : null,
      excerpt: outcome.kind === 'answered' && !outcome.isPrivate ? excerptOf(outcome.body, settings.accessKey) : null,
    };
    const attempted = { event, token, attempt };
    if (!isDelivered(outcome)) return await fail(attempted, outcome);
    await store.transaction(async (tx) => {
      const at = now();
      if (await tx.deliveryQueue.delivered(attempted, at)) await tx.callbackLanes.reset(event.accountId, at);
    });
  };
}

function outcomeOf(outcome: Outcome): AttemptOutcome {
  if (outcome.kind === 'private') return 'private_address';
  if (outcome.kind === 'failed') return outcome.reason;
  if (isDelivered(outcome)) return 'delivered';
  const hundreds = Math.floor(outcome.status / 100);
  return hundreds >= 3 && hundreds <= 5 ? (`status_${hundreds as 3 | 4 | 5}xx` as const) : 'status_other';
}
