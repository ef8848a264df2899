// Facts about the whole store, for metrics: how much waits, since when, and what expires. Counts are bounded and read
// through partial or small indexes, so that a scrape costs the same however large the store is.
import { sql } from 'kysely';
import { timeOf } from '../../../domain/ids.ts';
import type { FactsReader } from '../../../domain/support/ports.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db } from '../engine/schema.ts';

const MAX_COUNTED = 100_000;

const count = sql<number>`cast(count(*) as bigint)`.as('count');

export const factsIn = (db: Db, engine: Pick<Engine, 'sizeBytes' | 'walBytes'>): FactsReader => ({
  async waiting() {
    const rows = db.selectFrom('waiting_certificate').select('due_at').where('due_at', '>', 0).limit(MAX_COUNTED);
    const counted = await db.selectFrom(rows.as('counted')).select(count).executeTakeFirstOrThrow();
    // Ids carry the time at which the certificate was requested.
    const oldest = await db
      .selectFrom('waiting_certificate')
      .select('certificate_id')
      .where('certificate_id', '>', '')
      .orderBy('certificate_id')
      .limit(1)
      .executeTakeFirst();
    return { count: counted.count, oldestAt: (oldest && timeOf(oldest.certificate_id)) ?? null };
  },

  async overdueRevocations(now) {
    const due = db.selectFrom('revocation').where('revoked_at', 'is', null).where('due_at', '<=', now);
    const rows = due.select('due_at').orderBy('due_at').limit(MAX_COUNTED);
    const counted = await db.selectFrom(rows.as('counted')).select(count).executeTakeFirstOrThrow();
    const oldest = await due.select('due_at').orderBy('due_at').limit(1).executeTakeFirst();
    return { count: counted.count, oldestAt: oldest?.due_at ?? null };
  },

  async responderExpiry(issuerId) {
    const row = await db
      .selectFrom('ocsp_responder')
      .select('not_after')
      .where('issuer_id', '=', issuerId)
      .where('certificate', 'is not', null)
      .orderBy('not_after', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row?.not_after;
  },

  sizeBytes: () => engine.sizeBytes(db),
  walBytes: () => engine.walBytes(),
});
