// How often somebody may have the names of an order looked at: each look asks others' servers.

import type { Order } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Store } from '../../domain/store.ts';

/** Enough for a person at work, too little for a flood. */
const LOOK_RATE: Rate = { burst: 5, everyMs: 6_000 };

/** One allowance for all that is done on request. Refuses with `request_too_fast`. */
export async function limitChecks({ store, now }: { store: Store; now: Clock }, { id }: Order): Promise<void> {
  const waitMs = await store.transaction((tx) => tx.rateLimits.take(`domain-check ${id}`, LOOK_RATE, now()));
  if (waitMs > 0) throw new Refusal('request_too_fast', { retryAfterSeconds: Math.ceil(waitMs / 1000) });
}
