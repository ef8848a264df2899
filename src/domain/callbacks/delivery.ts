// Delivery rules: states, suppression, retry schedule with jitter, and the circuit breaker of each account's lane.
// Pure: time and randomness are arguments.

import { DAY_MS, HOUR_MS } from '../../kernel/durations.ts';
import type { OrderStatus } from '../certificate/order.ts';
import { isAhead, latestAhead } from '../clock.ts';
import { FAILURE_REASONS, type Outcome } from '../egress/outbound.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import { actionsOf, type CallbackAction, type CallbackSettings } from './callback.ts';

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'suppressed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** `held`: the account is suspended, and its events wait. */
export const LANE_STATES = ['healthy', 'degraded', 'closed', 'held'] as const;
export type LaneState = (typeof LANE_STATES)[number];

/** `before_delivery`: written by a version that did not deliver yet. */
export const SUPPRESSION_REASONS = ['not_configured', 'disabled', 'action_not_enabled', 'before_delivery'] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

/** `receiver_down`: the breaker was open for so long that the retry window ended before the attempts did. */
export const GIVEN_UP_REASONS = ['attempts_used_up', 'receiver_down'] as const;
export type GivenUpReason = (typeof GIVEN_UP_REASONS)[number];

export interface Delivery {
  /** Sent as `webhook-id`. */
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
  readonly orderStatus: OrderStatus;
  readonly action: CallbackAction;
  /** As it is sent, byte for byte. */
  readonly body: string;
  readonly createdAt: number;
  readonly state: DeliveryState;
  readonly reason: SuppressionReason | GivenUpReason | null;
  readonly attempts: number;
  /** Null unless a retry is scheduled. */
  readonly nextAttemptAt: number | null;
  readonly settledAt: number | null;
}

export const ATTEMPT_REASONS = [...FAILURE_REASONS, 'private_address'] as const;
export type AttemptReason = (typeof ATTEMPT_REASONS)[number];

export interface DeliveryAttempt {
  readonly number: number;
  readonly at: number;
  readonly ms: number;
  readonly httpStatus: number | null;
  readonly reason: AttemptReason | null;
  readonly excerpt: string | null;
}

/** Why the current settings suppress an event; null if they do not. An action that is not enabled stays so after a pause. */
export function suppressionReason(
  settings: CallbackSettings | undefined,
  action: CallbackAction,
): SuppressionReason | null {
  if (!settings) return 'not_configured';
  if (!actionsOf(settings).includes(action)) return 'action_not_enabled';
  if (settings.isDisabled) return 'disabled';
  return null;
}

export const isDelivered = (outcome: Outcome): boolean => outcome.kind === 'answered' && outcome.status === 200;

const MAX_RETRY_AFTER_MS = DAY_MS;
/** ±20 %. */
const JITTER = 0.2;

/** `random` is from 0 to 1. */
const withJitter = (ms: number, random: number): number => Math.round(ms * (1 - JITTER + 2 * JITTER * random));

/**
 * Backoff after the `tries`th failure; null after the last. A receiver's Retry-After can lengthen it, up to a day, but
 * never shorten it.
 */
export function retryDelay(
  schedule: readonly number[],
  tries: number,
  random: number,
  retryAfterMs: number | null,
): number | null {
  const delay = schedule[tries - 1];
  if (delay === undefined) return null;
  return Math.max(withJitter(delay, random), Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
}

const SECONDS = /^\d{1,9}$/;
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Parses Retry-After, as seconds or HTTP-date; null if invalid or in the past. */
export function retryAfterOf(headers: Readonly<Record<string, string>>, now: number): number | null {
  const text = headers['retry-after']?.trim() ?? '';
  const ms = SECONDS.test(text) ? Number(text) * 1_000 : HTTP_DATE.test(text) ? Date.parse(text) - now : Number.NaN;
  return ms > 0 ? ms : null;
}

/** No event is scheduled further ahead. */
export const maxRetryDelay = (schedule: readonly number[]): number =>
  Math.max(...schedule.map((ms) => withJitter(ms, 1)), MAX_RETRY_AFTER_MS) + HOUR_MS;

/** After this time an event is given up, even if the breaker was open for most of it. */
export const retryWindow = (schedule: readonly number[]): number =>
  schedule.reduce((sum, ms) => sum + withJitter(ms, 1), HOUR_MS);

/** The queue of one account's events, with the circuit breaker of its receiver. */
export interface Lane {
  readonly accountId: AccountId;
  /** Consecutive failed attempts. */
  readonly failures: number;
  /** How often the breaker opened since the last success; it opens for longer each time. */
  readonly openCount: number;
  readonly openUntil: number;
  /** When the breaker first opened; meaningless unless degraded. */
  readonly degradedSince: number;
  /** Lease of the one event of a replayed range that is being sent; ranges are sent in order. */
  readonly inOrderUntil: number;
  /** Events of a replayed range are pending. */
  readonly hasInOrder: boolean;
  /** The account is suspended: its events wait. */
  readonly isHeld: boolean;
}

/** While a lane is degraded, one attempt at a time probes whether its receiver is back (half-open breaker). */
export const isDegraded = ({ openCount }: Pick<Lane, 'openCount'>): boolean => openCount > 0;

/** Events begun earlier have spent their whole retry window in a degraded lane; null if it is not degraded that long. */
export function giveUpCutoff(lane: Lane, now: number, windowMs: number): number | null {
  const cutoff = now - windowMs;
  return isDegraded(lane) && lane.degradedSince < cutoff ? cutoff : null;
}

/** Much longer than an attempt takes: an instance that has not finished by then is dead, or must act as if it were. */
export const DELIVERY_LEASE_MS = 60_000;
export const isInOrderLeased = ({ inOrderUntil }: Lane, now: number): boolean =>
  isAhead(inOrderUntil, now, DELIVERY_LEASE_MS);

/** A lane that failed to be claimed is due again after this time, and one that just waits for a slot sooner. */
export const FAULTY_LANE_MS = 60_000;

/** A held lane is looked at again after this time; the end of the suspension makes it due earlier. */
export const HELD_LANE_MS = HOUR_MS;

export const FAILURES_TO_OPEN = 8;
export const MAX_OPEN_MS = HOUR_MS;

/** A breaker that first opened in the future was opened by a clock that was ahead, whenever it closes. */
export const isBreakerOpen = (
  { openUntil, degradedSince }: Pick<Lane, 'openUntil' | 'degradedSince'>,
  now: number,
): boolean => isAhead(openUntil, now, MAX_OPEN_MS) && degradedSince <= latestAhead(now, 0);

interface LaneFailure {
  readonly startedAt: number;
  readonly now: number;
  readonly schedule: readonly number[];
  readonly retryAfterMs?: number | null;
}

/**
 * Opens the breaker after several consecutive failures, and for longer after each failed probe. Attempts that started
 * before it opened do not extend it: a short outage fails everything in flight.
 */
export function afterFailure(lane: Lane, { startedAt, now, schedule, retryAfterMs }: LaneFailure): Lane {
  const failures = lane.failures + 1;
  if (failures < FAILURES_TO_OPEN || startedAt < lane.openUntil) return { ...lane, failures };
  const pause = schedule[Math.min(lane.openCount, schedule.length - 1)] ?? MAX_OPEN_MS;
  return {
    ...lane,
    failures,
    degradedSince: isDegraded(lane) ? lane.degradedSince : now,
    openCount: lane.openCount + 1,
    openUntil: now + Math.min(Math.max(pause, retryAfterMs ?? 0), MAX_OPEN_MS),
  };
}
