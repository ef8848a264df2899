// Repairs what a clock that was ahead has left in the delivery queue: leases and retries further ahead than they can have
// been set, and lanes that are due long after events they could send. They become due at once. All lanes are examined, a
// bounded number at a time: the lane of a busy account is due while events in it are not.
import { isBreakerOpen, isInOrderLeased, maxRetryDelay } from '../../domain/callbacks/delivery.ts';
import type { Clock } from '../../domain/clock.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';

const LANES_AT_ONCE = 200;
/** Bounds one run; the next continues where it stopped. */
const MAX_PAGES = 20;

export function repairSchedules(store: Store, now: Clock, schedule: readonly number[]): () => Promise<void> {
  const maxDelayMs = maxRetryDelay(schedule);
  let after: AccountId | undefined;

  const repair = (accountId: AccountId): Promise<void> =>
    store.transaction(async (tx) => {
      const lane = await tx.callbackLanes.tryLock(accountId);
      if (!lane) return;
      const at = now();
      await tx.deliveryQueue.repair(accountId, at, maxDelayMs);
      const isOpen = isBreakerOpen(lane, at);
      await tx.callbackLanes.save({
        ...lane,
        degradedSince: Math.min(lane.degradedSince, at),
        openUntil: isOpen ? lane.openUntil : 0,
        inOrderUntil: isInOrderLeased(lane, at) ? lane.inOrderUntil : 0,
        notBefore: isOpen ? lane.openUntil : at,
      });
    });

  return async () => {
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const { stray, nextAfter } = await store.callbackLanes.stray({ after, limit: LANES_AT_ONCE }, now(), maxDelayMs);
      for (const accountId of stray) await repair(accountId);
      after = nextAfter;
      if (after === undefined) return;
    }
  };
}
