// How an event travels: which states its delivery has, what holds it back, when a failed attempt is repeated, and when
// a receiver that keeps failing is left alone for a while. Pure: clock and chance are arguments.

import type { OrderStatus } from '../certificate/order.ts';
import type { FailureReason, Outcome } from '../egress/outbound.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { CallbackAction, CallbackSettings } from './callback.ts';

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'suppressed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Why an event is suppressed; the last is of a database that an earlier version wrote. */
export const SUPPRESSION_REASONS = ['not_configured', 'disabled', 'action_not_enabled', 'before_delivery'] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

/** Why an event failed: its attempts were used up, or its receiver was down for so long that it had none left. */
export type GivenUpReason = 'attempts_used_up' | 'receiver_down';

export interface Delivery {
  /** Travels as `webhook-id`. */
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly certificateId: CertificateId;
  readonly orderStatus: OrderStatus;
  readonly action: CallbackAction;
  readonly createdAt: number;
  readonly state: DeliveryState;
  readonly reason: SuppressionReason | GivenUpReason | null;
  readonly attempts: number;
  /** Null unless it waits for a repetition. */
  readonly nextAttemptAt: number | null;
  readonly settledAt: number | null;
}

export type AttemptReason = FailureReason | 'private_address';

export interface DeliveryAttempt {
  readonly number: number;
  readonly at: number;
  readonly ms: number;
  readonly httpStatus: number | null;
  readonly reason: AttemptReason | null;
  readonly excerpt: string | null;
}

/** What the settings of this moment hold back, if anything. */
export function heldBack(settings: CallbackSettings | undefined, action: CallbackAction): SuppressionReason | null {
  if (!settings) return 'not_configured';
  if (settings.isDisabled) return 'disabled';
  if (settings.enabledActions && !settings.enabledActions.includes(action)) return 'action_not_enabled';
  return null;
}

export const isDelivered = (outcome: Outcome): boolean => outcome.kind === 'answered' && outcome.status === 200;

const HOUR_MS = 3_600_000;
const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;
/** Each give or take a fifth. */
const JITTER = 0.2;

export const varied = (ms: number, chance: number): number => Math.round(ms * (1 - JITTER + 2 * JITTER * chance));

/**
 * How long after its `tries`th failure an event is tried again; null after the last. A receiver may ask for more time
 * than that, within a day, and never for less.
 */
export function retryDelay(
  schedule: readonly number[],
  tries: number,
  chance: number,
  retryAfterMs: number | null,
): number | null {
  const wait = schedule[tries - 1];
  if (wait === undefined) return null;
  return Math.max(varied(wait, chance), Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
}

const SECONDS = /^\d{1,9}$/;
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** The header in both of its forms; null for what is neither, or in the past. */
export function retryAfterOf(headers: Readonly<Record<string, string>>, now: number): number | null {
  const text = headers['retry-after']?.trim() ?? '';
  const ms = SECONDS.test(text) ? Number(text) * 1_000 : HTTP_DATE.test(text) ? Date.parse(text) - now : Number.NaN;
  return ms > 0 ? ms : null;
}

/** Nothing waits for longer, unless a clock was wrong when it began to. */
export const longestWait = (schedule: readonly number[]): number =>
  Math.max(...schedule.map((ms) => varied(ms, 1)), MAX_RETRY_AFTER_MS) + HOUR_MS;

/** After so long an event is given up even if its lane was closed for most of it. */
export const longestTrying = (schedule: readonly number[]): number =>
  schedule.reduce((sum, ms) => sum + varied(ms, 1), HOUR_MS);

export interface Lane {
  readonly accountId: AccountId;
  readonly failures: number;
  readonly trips: number;
  readonly closedUntil: number;
  /** When it was first closed; means nothing while it is well. */
  readonly ailingSince: number;
  readonly inOrderUntil: number;
}

/** Events begun before then spent the whole schedule behind a closed lane; null while it was not closed for so long. */
export function givenUpBefore(lane: Lane, now: number, longestMs: number): number | null {
  const before = now - longestMs;
  return isAiling(lane) && lane.ailingSince < before ? before : null;
}

/** By how much the clocks of instances may differ before one of them counts as wrong. */
const MAX_SKEW_MS = 600_000;

/** Much longer than an attempt may last: who has not finished by then is dead, or must act as if. */
export const LEASE_MS = 60_000;
/** A lease that ends later than any could was made by a clock that was wrong. */
export const isInOrderTaken = ({ inOrderUntil }: Lane, now: number): boolean =>
  inOrderUntil > now && inOrderUntil <= now + LEASE_MS + MAX_SKEW_MS;

export const FAILURES_TO_CLOSE = 8;
const MAX_CLOSED_MS = HOUR_MS;

/** A closing that ends later than any could was made by a clock that was wrong. */
export const isClosed = ({ closedUntil }: Lane, now: number): boolean =>
  closedUntil > now && closedUntil <= now + MAX_CLOSED_MS + MAX_SKEW_MS;

/** While a lane is ailing one attempt at a time finds out whether its receiver is back. */
export const isAiling = ({ trips }: Lane): boolean => trips > 0;

/**
 * Closed after several failures in a row, and longer after each trial that fails. What was under way when it was closed
 * says nothing new: a receiver that is down for a minute fails everything it was being sent.
 */
export function afterFailure(
  lane: Lane,
  startedAt: number,
  now: number,
  schedule: readonly number[],
  retryAfterMs = 0,
): Lane {
  const failures = lane.failures + 1;
  if (failures < FAILURES_TO_CLOSE || startedAt < lane.closedUntil) return { ...lane, failures };
  const pause = schedule[Math.min(lane.trips, schedule.length - 1)] ?? MAX_CLOSED_MS;
  const ailingSince = lane.trips === 0 ? now : lane.ailingSince;
  return {
    ...lane,
    failures,
    ailingSince,
    trips: lane.trips + 1,
    closedUntil: now + Math.min(Math.max(pause, retryAfterMs), MAX_CLOSED_MS),
  };
}
