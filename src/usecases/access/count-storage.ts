// Keeps `storedBytes` of accounts up to date, in small transactions. Lags by minutes on purpose: an id is made before its
// row is committed, and by the clock of its instance, so the newest rows may still be joined by older ones.
import type { Clock } from '../../domain/clock.ts';
import { firstIdAt } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { MINUTE_MS } from '../../kernel/durations.ts';

/** Longer than a request takes, and than clocks of instances should differ. */
const SETTLED_MS = 5 * MINUTE_MS;
const BATCH = 2_000;
/** Bounds one run; the next continues. */
const MAX_BATCHES = 50;

/** Returns how many certificates it counted. */
export async function countStorage(store: Store, now: Clock, stopping?: AbortSignal): Promise<number> {
  const before = firstIdAt(now() - SETTLED_MS);
  let total = 0;
  for (let batch = 0; batch < MAX_BATCHES && !stopping?.aborted; batch += 1) {
    const counted = await store.transaction((tx) => tx.accounts.countStored(before, BATCH));
    total += counted;
    if (counted < BATCH) break;
  }
  return total;
}
