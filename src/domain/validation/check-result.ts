// Results of domain checks, corroboration between network perspectives, and the backoff of repeated checks. Pure.
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';
import type { FailureReason } from '../egress/outbound.ts';

/** Why a check failed. A closed list; the applicant can act on each but `resolver_unreachable`, which is ours to mend. */
export const CHECK_PROBLEMS = [
  'no_record',
  'wrong_value',
  'malformed',
  'unauthorized',
  'dns_failure',
  'resolver_unreachable',
  'http_failure',
  'private_address',
  'caa_forbidden',
  'perspectives_differ',
] as const;
export type CheckProblem = (typeof CHECK_PROBLEMS)[number];

interface CheckedAnswer {
  /** Until when the resolver may give the same answer again without asking, whatever is published or deleted. */
  readonly cachedUntil?: number;
}
export interface FailedCheck extends CheckedAnswer {
  readonly isOk: false;
  readonly problem: CheckProblem;
  readonly reason: Localized;
  /** Why a server could not be asked, if that is the problem. */
  readonly failure?: FailureReason;
}
export interface PassedCheck extends CheckedAnswer {
  readonly isOk: true;
  /** Seen on a network that only an operator's rule lets us ask: it proves nothing under public trust. */
  readonly isPrivate?: boolean;
}
export type CheckResult = PassedCheck | FailedCheck;

export const PASSED: CheckResult = { isOk: true };
export const failed = (problem: CheckProblem, en: string, zh: string): FailedCheck => ({
  isOk: false,
  problem,
  reason: { en, zh },
});

/** The last failed check of a name, as the order shows it. */
export interface NameFinding extends CheckedAnswer {
  readonly at: number;
  /** Which check failed: control of the name, or CAA. */
  readonly of: 'control' | 'caa';
  readonly problem: CheckProblem;
  readonly reason: Localized;
}

/**
 * Multi-perspective corroboration. The first, primary perspective must pass. With two or more others, one of them may
 * fail: a single resolver that is down or spoofed can neither block nor forge a proof.
 */
export function corroborate(views: readonly CheckResult[]): CheckResult {
  const [primary, ...others] = views;
  if (!primary) throw new Error('no perspective was asked');
  if (!primary.isOk) return primary;
  const against = others.filter((view): view is FailedCheck => !view.isOk);
  const isPrivate = views.some((view) => view.isOk && view.isPrivate);
  if (against.length <= (others.length >= 2 ? 1 : 0)) return isPrivate ? { ...primary, isPrivate } : primary;
  const [first] = against;
  // No perspective contradicts.
  if (first && against.every(({ problem }) => problem === 'resolver_unreachable')) return first;
  return failed(
    'perspectives_differ',
    `${against.length} of ${others.length} other resolvers do not see it yet: ${first?.reason.en ?? ''}`,
    `其他 ${others.length} 个解析器中有 ${against.length} 个尚未看到：${first?.reason.zh ?? ''}`,
  );
}

const FIRST_DELAY_MS = 15 * SECOND_MS;
const MAX_DELAY_MS = 4 * HOUR_MS;
const MAX_DOUBLINGS = 20;
/** ±20 %, which spreads out certificates that were ordered together. */
const JITTER = 0.2;
/** Longer than checking a hundred names takes; a worker that has not finished by then is presumed dead. */
export const CHECK_LEASE_MS = 2 * MINUTE_MS;
/** A suspended account is looked at again after this time; resuming it makes its certificates due. */
export const HELD_CHECK_MS = HOUR_MS;

/** Exponential backoff between the checks of a waiting certificate, in milliseconds. */
export const checkBackoff = (tries: number): number =>
  Math.min(FIRST_DELAY_MS * 2 ** Math.min(tries, MAX_DOUBLINGS), MAX_DELAY_MS);

/** `random` is from 0 to 1. */
export const jitteredBackoff = (tries: number, random: number): number =>
  Math.round(checkBackoff(tries) * (1 - JITTER + 2 * JITTER * random));

/** Asking again while the resolver repeats its answer would tell nothing. Bounded, because another answer may come first. */
export const pastCache = (delayMs: number, cachedMs: number): number =>
  Math.max(delayMs, Math.min(cachedMs + CACHE_MARGIN_MS, CHECK_LEASE_MS));
const CACHE_MARGIN_MS = SECOND_MS;

export const MAX_CHECK_DELAY_MS = MAX_DELAY_MS * (1 + JITTER);

/** How far ahead the next check of a certificate can be that was checked so often: backoff, or the lease of a check. */
export const maxCheckDelay = (tries: number): number => Math.max(CHECK_LEASE_MS, jitteredBackoff(tries, 1));
