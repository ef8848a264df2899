// What is wrong with the clocks that work on a store, and what wrong ones have left in it.
import { SECOND_MS } from '../../kernel/durations.ts';

export interface StrayTimes {
  readonly table: string;
  readonly column: string;
  /** Counted up to a bound. */
  readonly count: number;
}

export interface ClockFacts {
  /** How far this machine's clock is ahead of the database's; negative if it is behind. */
  readonly aheadMs: number;
  readonly instances: readonly { readonly name: string; readonly clockAheadMs: number }[];
  /** Leases and next attempts that a clock which was ahead has set, and that are not repaired yet. */
  readonly stray: readonly StrayTimes[];
  /** The last time that a process has noted in the store, by its own clock. */
  readonly lastUsedAt: number;
}

/** Validity periods and one-time codes tolerate a few seconds. */
const NOTICEABLE_MS = 2 * SECOND_MS;

export const isNoticeable = (ms: number): boolean => Math.abs(ms) > NOTICEABLE_MS;

/** How far the clocks of the instances differ. */
export function instanceSkewMs({ instances }: Pick<ClockFacts, 'instances'>): number {
  const ahead = instances.map(({ clockAheadMs }) => clockAheadMs);
  return ahead.length === 0 ? 0 : Math.max(...ahead) - Math.min(...ahead);
}

export const strayCount = ({ stray }: Pick<ClockFacts, 'stray'>): number =>
  stray.reduce((sum, { count }) => sum + count, 0);

const seconds = (ms: number): number => Math.round(ms / SECOND_MS);

/** For the operator; none if all clocks agree and none was wrong. */
export function clockFindings(facts: ClockFacts, now: number): string[] {
  const { aheadMs, instances, stray, lastUsedAt } = facts;
  const findings: string[] = [];
  if (isNoticeable(aheadMs)) {
    const side = aheadMs > 0 ? 'ahead of' : 'behind';
    findings.push(`this machine’s clock is ${Math.abs(seconds(aheadMs))} s ${side} the database’s`);
  }
  const skewMs = instanceSkewMs(facts);
  if (isNoticeable(skewMs)) {
    const list = instances.map(({ name, clockAheadMs }) => `${name}: ${seconds(clockAheadMs)} s`).join('; ');
    findings.push(`the clocks of the instances differ by ${seconds(skewMs)} s (ahead of the database: ${list})`);
  }
  if (isNoticeable(Math.max(0, lastUsedAt - now))) {
    findings.push(`the clock went back: the store was last used at ${new Date(lastUsedAt).toISOString()}`);
  }
  if (stray.length > 0) {
    const list = stray.map(({ table, column, count }) => `${count} in ${table}.${column}`).join(', ');
    findings.push(`a clock that was ahead has left ${strayCount(facts)} stray times, which do not count: ${list}`);
  }
  return findings;
}
