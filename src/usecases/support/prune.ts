// Retention: deletes rows that have outlived their purpose, in small transactions, so that requests are not held up.
// docs/operations.md says of every table whether and when it shrinks.
import type { Repositories, Store } from '../../domain/store.ts';

export interface Retention {
  /** Of the main table, for the log. */
  readonly table: string;
  /** Deletes rows that are older than that, at most `limit`. Returns how many. */
  readonly remove: (tx: Repositories, before: number, limit: number) => Promise<number>;
}

export const RETENTION = {
  deliveries: { table: 'outbox', remove: (tx, before, limit) => tx.deliveries.deleteSettled(before, limit) },
  audit: { table: 'audit', remove: (tx, before, limit) => tx.audit.deleteBefore(before, limit) },
  idempotency: {
    table: 'idempotency_key',
    remove: (tx, before, limit) => tx.idempotencyKeys.deleteBefore(before, limit),
  },
  placements: { table: 'placement_key', remove: (tx, before, limit) => tx.placementKeys.deleteBefore(before, limit) },
  lintResults: { table: 'lint_result', remove: (tx, before, limit) => tx.lintResults.deleteBefore(before, limit) },
  rateLimits: { table: 'rate_limit', remove: (tx, before, limit) => tx.rateLimits.deleteFull(before, limit) },
  grants: { table: 'signing_grant', remove: (tx, before, limit) => tx.signingGrants.deleteExpired(before, limit) },
  accessTokens: { table: 'access_token', remove: (tx, before, limit) => tx.accessTokens.deleteExpired(before, limit) },
  sessions: { table: 'console_session', remove: (tx, before, limit) => tx.sessions.deleteExpired(before, limit) },
  loginLinks: { table: 'console_link', remove: (tx, before, limit) => tx.loginLinks.deleteExpired(before, limit) },
  usedNonces: { table: 'acme_used_nonce', remove: (tx, before, limit) => tx.usedNonces.deleteExpired(before, limit) },
  acmeOrders: { table: 'acme_order', remove: (tx, before, limit) => tx.acmeOrders.deleteKeptUntil(before, limit) },
  authorizations: {
    table: 'acme_authorization',
    remove: (tx, before, limit) => tx.authorizations.deleteExpired(before, limit),
  },
} as const satisfies Record<string, Retention>;

const BATCH = 500;
/** Bounds one run, so that the service can stop in between; the next run continues. */
const MAX_BATCHES = 100;

/** Returns how many rows were deleted. */
export async function prune(
  store: Store,
  { remove }: Retention,
  before: number,
  stopping?: AbortSignal,
): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_BATCHES && !stopping?.aborted; batch += 1) {
    const deleted = await store.transaction((tx) => remove(tx, before, BATCH));
    total += deleted;
    if (deleted < BATCH) break;
  }
  return total;
}
