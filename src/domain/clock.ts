// Time, and what a clock that was wrong leaves behind. A lease, or the time of a next attempt, that lies further ahead
// than it can have been set was written by a clock that was ahead, and is void: nothing waits for it. Facts are never void.
import { SECOND_MS } from '../kernel/durations.ts';

/** Milliseconds since 1970, UTC. */
export type Clock = () => number;

/** Difference between clocks that counts as none. Processes of one store share a clock (`Store.sharedNow`). */
export const CLOCK_TOLERANCE_MS = 30 * SECOND_MS;

/** No right clock sets a time later than this, if it sets it at most `lengthMs` ahead. */
export const latestAhead = (now: number, lengthMs: number, toleranceMs = CLOCK_TOLERANCE_MS): number =>
  now + lengthMs + toleranceMs;

/** Whether a lease of at most `lengthMs` holds, or a next attempt at most so far ahead is yet to come. */
export const isAhead = (time: number, now: number, lengthMs: number): boolean =>
  time > now && time <= latestAhead(now, lengthMs);

/** A lock or a rate, which must not be dropped: its end, at most `lengthMs` from now. */
export const clampedAhead = (time: number, now: number, lengthMs: number): number =>
  time > latestAhead(now, lengthMs) ? now + lengthMs : time;
