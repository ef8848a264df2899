// Token buckets, shared by every instance on the store. A bucket is one number, the moment at which it will be full
// again, and taking a token is one statement: it moves that moment, or finds that it lies too far ahead.
import { sql } from 'kysely';
import type { RateLimits } from '../../../domain/rate.ts';
import type { Db } from '../engine/schema.ts';

/** How far the clocks of instances may differ without one of them giving away what another has taken. */
const MAX_SKEW_MS = 600_000;

export const rateLimitsIn = (db: Db): RateLimits => ({
  async take(key, { burst, everyMs }, now) {
    const after = sql<number>`case when rate_limit.full_at > ${now} then rate_limit.full_at else ${now} end + ${everyMs}`;
    const latest = now + burst * everyMs;
    const taken = await db
      .insertInto('rate_limit')
      .values({ key, full_at: now + everyMs })
      .onConflict((conflict) =>
        conflict.column('key').doUpdateSet({ full_at: after }).where(sql<boolean>`${after} <= ${latest}`),
      )
      .returning('full_at')
      .executeTakeFirst();
    if (taken) return 0;
    const row = await db.selectFrom('rate_limit').select('full_at').where('key', '=', key).executeTakeFirst();
    const fullAt = row?.full_at ?? now;
    if (fullAt <= latest + MAX_SKEW_MS) return Math.max(1, fullAt + everyMs - latest);
    // Left by a slower rate, or by a clock that was far ahead: an empty bucket is refilled at the rate of today.
    await db
      .updateTable('rate_limit')
      .set({ full_at: latest })
      .where('key', '=', key)
      .where('full_at', '>', latest)
      .execute();
    return everyMs;
  },
});
