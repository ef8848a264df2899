// Checks callback delivery: recent failures, failing receivers, and a stale queue.

import type { Deliveries } from '../../domain/callbacks/ports.ts';
import { DAY_MS, HOUR_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';

const RECENT_MS = 7 * DAY_MS;
const MAX_COUNTED = 10_000;
const STALE_MS = HOUR_MS;
const REMEDY =
  'See reseal callback deliveries ACCOUNT --state failed. Once the receiver works, run reseal callback replay.';

export async function checkCallbacks(deliveries: Deliveries, now: number): Promise<Diagnostic> {
  const check = 'callbacks';
  const failed = await deliveries.failedSince(now - RECENT_MS, MAX_COUNTED);
  const { pending, oldestPendingAt, degradedLanes } = await deliveries.queueFacts();
  const waited = oldestPendingAt === null ? 0 : now - oldestPendingAt;
  const facts = [
    ...(failed > 0 ? [`${failed} were given up in the last seven days`] : []),
    ...(degradedLanes > 0 ? [`${degradedLanes} accounts have a receiver that keeps failing`] : []),
    ...(waited > STALE_MS ? [`the oldest of ${pending} pending is ${Math.round(waited / HOUR_MS)} h old`] : []),
  ];
  if (facts.length > 0) return { check, state: 'warning', text: facts.join('; '), remedy: REMEDY };
  return { check, state: 'ok', text: `${pending} pending` };
}
