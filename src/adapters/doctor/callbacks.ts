// Do callbacks arrive? What was given up lately, and what has been waiting for long, are for somebody to look at.

import type { Deliveries } from '../../domain/callbacks/ports.ts';
import { DAY_MS, HOUR_MS } from '../../kernel/durations.ts';
import type { Finding } from '../../kernel/problem.ts';

const LATELY_MS = 7 * DAY_MS;
const MAX_COUNTED = 10_000;
const LONG_MS = HOUR_MS;
const REMEDY =
  'See reseal callback deliveries ACCOUNT --state failed; when the receiver is well, reseal callback replay.';

export async function checkCallbacks(deliveries: Deliveries, now: number): Promise<Finding> {
  const check = 'callbacks';
  const failed = await deliveries.failedSince(now - LATELY_MS, MAX_COUNTED);
  const { pending, oldestPendingAt, degradedLanes } = await deliveries.queueFacts();
  const waited = oldestPendingAt === null ? 0 : now - oldestPendingAt;
  const facts = [
    ...(failed > 0 ? [`${failed} were given up in the last seven days`] : []),
    ...(degradedLanes > 0 ? [`${degradedLanes} accounts have a receiver that keeps failing`] : []),
    ...(waited > LONG_MS ? [`the oldest of ${pending} waits for ${Math.round(waited / LONG_MS)} h`] : []),
  ];
  if (facts.length > 0) return { check, state: 'warning', text: facts.join('; '), remedy: REMEDY };
  return { check, state: 'ok', text: pending === 0 ? 'none waits' : `${pending} wait to be delivered` };
}
