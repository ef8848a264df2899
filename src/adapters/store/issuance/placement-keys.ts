// Idempotency keys of placements, with the order and the certificate that each was answered with.
import { sql } from 'kysely';
import type { PlacementKeys } from '../../../domain/issuance/ports.ts';
import type { Db } from '../engine/schema.ts';

/** A certificate keeps the id it was answered with, so a voided one under the key's id was never answered (ADR 0045). */
const isInterrupted = sql<boolean>`coalesce((select state from certificate
  where certificate.id = placement_key.certificate_id), '') = 'voided'`;

export const placementKeysIn = (db: Db): PlacementKeys => ({
  async find(accountId, key, since) {
    const row = await db
      .selectFrom('placement_key')
      .select(['request_hash', 'order_id', 'certificate_id'])
      .where('account_id', '=', accountId)
      .where('key', '=', key)
      .where('created_at', '>', since)
      .where(sql<boolean>`not ${isInterrupted}`)
      .executeTakeFirst();
    return row && { requestHash: row.request_hash, orderId: row.order_id, certificateId: row.certificate_id };
  },

  async take(accountId, key, { requestHash, orderId, certificateId, at }, since) {
    const entry = { request_hash: requestHash, order_id: orderId, certificate_id: certificateId, created_at: at };
    const taken = await db
      .insertInto('placement_key')
      .values({ account_id: accountId, key, ...entry })
      .onConflict((conflict) =>
        conflict
          .columns(['account_id', 'key'])
          .doUpdateSet(entry)
          .where((is) => is.or([is('placement_key.created_at', '<=', since), isInterrupted])),
      )
      .returning('order_id')
      .executeTakeFirst();
    return taken !== undefined;
  },

  async deleteBefore(before, limit) {
    const old = await db
      .selectFrom('placement_key')
      .select(['account_id', 'key'])
      .where('created_at', '<', before)
      .orderBy('created_at')
      .limit(limit)
      .execute();
    for (const { account_id, key } of old) {
      await db
        .deleteFrom('placement_key')
        .where('account_id', '=', account_id)
        .where('key', '=', key)
        // It may have been used again meanwhile.
        .where('created_at', '<', before)
        .execute();
    }
    return old.length;
  },
});
