// Idempotency keys of reissues, with the answer each was given.
import type { IdempotencyKeys } from '../../../domain/issuance/ports.ts';
import type { Db } from '../engine/schema.ts';

export const idempotencyKeysIn = (db: Db): IdempotencyKeys => ({
  async find(accountId, orderId, key, since) {
    const row = await db
      .selectFrom('idempotency_key')
      .select(['request_hash', 'certificate_id'])
      .where('account_id', '=', accountId)
      .where('order_id', '=', orderId)
      .where('key', '=', key)
      .where('created_at', '>', since)
      .executeTakeFirst();
    return row && { requestHash: row.request_hash, certificateId: row.certificate_id };
  },

  async put(accountId, orderId, key, { requestHash, certificateId, at }) {
    const entry = { request_hash: requestHash, certificate_id: certificateId, created_at: at };
    await db
      .insertInto('idempotency_key')
      .values({ account_id: accountId, order_id: orderId, key, ...entry })
      .onConflict((conflict) => conflict.columns(['account_id', 'order_id', 'key']).doUpdateSet(entry))
      .execute();
  },

  async deleteBefore(before, limit) {
    const old = await db
      .selectFrom('idempotency_key')
      .select(['account_id', 'order_id', 'key'])
      .where('created_at', '<', before)
      .orderBy('created_at')
      .limit(limit)
      .execute();
    for (const { account_id, order_id, key } of old) {
      await db
        .deleteFrom('idempotency_key')
        .where('account_id', '=', account_id)
        .where('order_id', '=', order_id)
        .where('key', '=', key)
        // It may have been used again meanwhile.
        .where('created_at', '<', before)
        .execute();
    }
    return old.length;
  },
});
