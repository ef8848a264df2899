// The chores of retention: what is deleted, and how long it is kept.
import type { Config } from '../config/config.ts';
import { KEEP_ENDED_MS } from '../domain/acme/acme-order.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../kernel/durations.ts';
import { prune, RETENTION } from '../usecases/support/prune.ts';
import type { App } from './app.ts';
import type { Chore } from './background.ts';

/** Longer than clocks of instances may differ. */
const SKEW_MS = HOUR_MS;
/** Grants hold secrets: they go soon after they have expired. */
const EVERY_MS: Readonly<Record<keyof typeof RETENTION, number>> = {
  deliveries: MINUTE_MS,
  audit: 10 * MINUTE_MS,
  idempotency: 10 * MINUTE_MS,
  placements: 10 * MINUTE_MS,
  lintResults: 10 * MINUTE_MS,
  rateLimits: 10 * MINUTE_MS,
  grants: 10 * SECOND_MS,
  accessTokens: MINUTE_MS,
  sessions: MINUTE_MS,
  loginLinks: MINUTE_MS,
  // A run deletes 50,000 at most: more than a service can be asked for in that time.
  usedNonces: 10 * SECOND_MS,
  acmeOrders: 10 * MINUTE_MS,
  authorizations: 10 * MINUTE_MS,
};

export function retentionChores({ store, log }: Pick<App, 'store' | 'log'>, config: Config): Chore[] {
  const keepMs: Readonly<Record<keyof typeof RETENTION, number>> = {
    deliveries: config.callbacks.retentionMs,
    audit: config.retention.auditMs,
    idempotency: config.retention.idempotencyMs,
    placements: config.retention.idempotencyMs,
    // As long as the audit entry beside it.
    lintResults: config.retention.auditMs,
    rateLimits: SKEW_MS,
    grants: 0,
    accessTokens: 0,
    sessions: 0,
    loginLinks: 0,
    usedNonces: 0,
    acmeOrders: 0,
    authorizations: KEEP_ENDED_MS,
  };
  return (Object.keys(RETENTION) as (keyof typeof RETENTION)[]).map((name) => ({
    name: `prune_${RETENTION[name].table}`,
    everyMs: EVERY_MS[name],
    async run(stopping) {
      const rows = await prune(store, RETENTION[name], store.sharedNow() - keepMs[name], stopping);
      if (rows > 0) log({ event: 'pruned', table: RETENTION[name].table, rows });
    },
  }));
}
