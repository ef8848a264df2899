// Repairs what a clock that was far ahead has left: events and lanes scheduled further ahead than any retry can be. They
// become due at once.
import { maxRetryDelay } from '../../domain/callbacks/delivery.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Store } from '../../domain/store.ts';

const MAX_LANES = 100;
const MAX_EVENTS = 1_000;

export async function repairSchedules(store: Store, now: Clock, schedule: readonly number[]): Promise<void> {
  const after = now() + maxRetryDelay(schedule);
  for (const accountId of await store.callbackLanes.farFuture(after, MAX_LANES)) {
    await store.transaction(async (tx) => {
      const lane = await tx.callbackLanes.tryLock(accountId);
      if (!lane) return;
      await tx.deliveryQueue.rescheduleFarFuture(accountId, after, now(), MAX_EVENTS);
      await tx.callbackLanes.save({ ...lane, openUntil: 0, inOrderUntil: 0, notBefore: now() });
    });
  }
}
