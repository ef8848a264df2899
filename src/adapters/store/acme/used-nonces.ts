// Nonces that were used, until they expire. One statement decides who uses one first, among all instances.
import { NONCE_MS } from '../../../domain/acme/nonce.ts';
import type { UsedNonces } from '../../../domain/acme/ports.ts';
import { latestAhead } from '../../../domain/clock.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

const insert = prepared((db, { id, expiresAt }: { id: string; expiresAt: number }) =>
  db
    .insertInto('acme_used_nonce')
    .values({ id, expires_at: expiresAt })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id'),
);

export const usedNoncesIn = (db: Db): UsedNonces => ({
  async spend({ id, expiresAt }) {
    return (await insert(db, { id, expiresAt })).length === 1;
  },

  async deleteExpired(now, limit) {
    let deleted = 0;
    // From a clock that was ahead: no nonce lasts so long.
    for (const [is, end] of [['<=', now] as const, ['>', latestAhead(now, NONCE_MS)] as const]) {
      const due = db
        .selectFrom('acme_used_nonce')
        .select('id')
        .where('expires_at', is, end)
        .limit(limit - deleted);
      deleted += (await db.deleteFrom('acme_used_nonce').where('id', 'in', due).returning('id').execute()).length;
    }
    return deleted;
  },
});
