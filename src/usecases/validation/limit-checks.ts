// Rate limit on the checks that callers request for an order: each one queries third-party servers.

import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Store } from '../../domain/store.ts';
import type { AcquireSlot } from '../access/in-flight.ts';

const CHECK_RATE: Rate = { burst: 5, everyMs: 6_000 };

/** What checks that a caller waits for need besides. */
export interface CheckOnRequest {
  /** `domain_check`. */
  readonly acquireSlot: AcquireSlot;
}

/** Throws `request_too_fast`. dcv-completed and dcv-check share the quota. */
export async function limitChecks({ store }: { store: Store }, { id }: Order): Promise<void> {
  const waitMs = await store.transaction((tx) => tx.rateLimits.take(`domain-check ${id}`, CHECK_RATE, tx.sharedNow()));
  if (waitMs > 0) throw new Refusal('request_too_fast', { retryAfterSeconds: Math.ceil(waitMs / 1000) });
}
