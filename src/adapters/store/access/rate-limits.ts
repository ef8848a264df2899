// Token buckets, shared by all instances on the store. A bucket is one timestamp, when it will be full again. Taking a
// token is one statement, which advances the timestamp unless that exceeds the burst (GCRA).
import { sql } from 'kysely';
import { latestAhead } from '../../../domain/clock.ts';
import type { RateLimits } from '../../../domain/rate.ts';
import { MINUTE_MS } from '../../../kernel/durations.ts';
import type { Db } from '../engine/schema.ts';

/** Longer than for leases: a limit that is lifted too early does more harm than one that holds for minutes. */
const TOLERANCE_MS = 10 * MINUTE_MS;

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
    if (fullAt <= latestAhead(latest, 0, TOLERANCE_MS)) return Math.max(1, fullAt + everyMs - latest);
    // Written under a slower rate or by a clock that was ahead: clamped to an empty bucket at the current rate.
    await db
      .updateTable('rate_limit')
      .set({ full_at: latest })
      .where('key', '=', key)
      .where('full_at', '>', latest)
      .execute();
    return everyMs;
  },

  async deleteFull(before, limit) {
    const full = db
      .selectFrom('rate_limit')
      .select('key')
      .where('full_at', '<', before)
      .orderBy('full_at')
      .limit(limit);
    // Repeats the condition: a token may have been taken meanwhile.
    const rows = db.deleteFrom('rate_limit').where('key', 'in', full).where('full_at', '<', before).returning('key');
    return (await rows.execute()).length;
  },
});
