// What came of looking at a name, when several views of the world count as agreement, and when a waiting certificate is
// looked at again. Pure.
import { HOUR_MS, SECOND_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';

/** Why a check did not pass: a closed list, each something its reader can act on. */
export const CHECK_PROBLEMS = [
  'no_record',
  'wrong_value',
  'malformed',
  'unauthorized',
  'dns_failure',
  'http_failure',
  'private_address',
  'caa_forbidden',
  'perspectives_differ',
] as const;
export type CheckProblem = (typeof CHECK_PROBLEMS)[number];

export interface FailedCheck {
  readonly isOk: false;
  readonly problem: CheckProblem;
  readonly reason: Localized;
}
export type CheckResult = { readonly isOk: true } | FailedCheck;

export const PASSED: CheckResult = { isOk: true };
export const failed = (problem: CheckProblem, en: string, zh: string): FailedCheck => ({
  isOk: false,
  problem,
  reason: { en, zh },
});

/** What was last seen of a name that is not proven, as the order shows it. */
export interface Finding {
  readonly at: number;
  /** Whether the holder has not shown control, or CAA is in the way. */
  readonly of: 'control' | 'caa';
  readonly problem: CheckProblem;
  readonly reason: Localized;
}

/**
 * The first view is the primary one, which must agree. Of three or more one other may differ: a single resolver that is
 * down, or lied to, neither stops nor forges a proof.
 */
export function agreementOf(views: readonly CheckResult[]): CheckResult {
  const [primary, ...others] = views;
  if (!primary) throw new Error('nobody was asked');
  if (!primary.isOk) return primary;
  const against = others.filter((view) => !view.isOk);
  if (against.length <= (others.length >= 2 ? 1 : 0)) return primary;
  const [first] = against;
  return failed(
    'perspectives_differ',
    `${against.length} of ${others.length} other resolvers do not see it yet: ${first?.reason.en ?? ''}`,
    `其他 ${others.length} 个解析器中有 ${against.length} 个尚未看到：${first?.reason.zh ?? ''}`,
  );
}

const FIRST_WAIT_MS = 15 * SECOND_MS;
const LONGEST_WAIT_MS = 4 * HOUR_MS;
const DOUBLINGS = 20;

/** After how long to look again: soon while somebody is at work on it, seldom when nobody is. */
export const waitAfter = (tries: number): number =>
  Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries, DOUBLINGS), LONGEST_WAIT_MS);
