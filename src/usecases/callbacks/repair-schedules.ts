// What a clock that was far ahead has left behind: events and lanes that wait for a day nobody meant. They are looked for
// now and then, and are due at once.
import { longestWait } from '../../domain/callbacks/delivery.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Store } from '../../domain/store.ts';

const LANES_AT_ONCE = 100;
const EVENTS_AT_ONCE = 1_000;

export async function repairSchedules(store: Store, now: Clock, schedule: readonly number[]): Promise<void> {
  const after = now() + longestWait(schedule);
  for (const accountId of await store.callbackLanes.farFuture(after, LANES_AT_ONCE)) {
    await store.transaction(async (tx) => {
      const lane = await tx.callbackLanes.take(accountId);
      if (!lane) return;
      await tx.deliveryQueue.bringBack(accountId, after, now(), EVENTS_AT_ONCE);
      await tx.callbackLanes.save({ ...lane, closedUntil: 0, inOrderUntil: 0, notBefore: now() });
    });
  }
}
