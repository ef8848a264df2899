// Table revocation: scheduled and applied revocations. Callers hold the order's lock; `revoked_at is null` in each update
// makes sure that a revocation is applied only once.
import { sql } from 'kysely';
import type { AccountId, CertificateId, OrderId } from '../../../domain/ids.ts';
import type { Revocations } from '../../../domain/revocation/ports.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';
import { revocationFrom } from '../issuance/certificate-rows.ts';

const selectScheduled = prepared((db, slots: { accountId: AccountId; orderId: OrderId; limit: number }) =>
  db
    .selectFrom('revocation')
    .innerJoin('certificate', 'certificate.id', 'revocation.certificate_id')
    .selectAll('revocation')
    .where('revocation.account_id', '=', slots.accountId)
    .where('revoked_at', 'is', null)
    .where('order_id', '=', slots.orderId)
    .orderBy('due_at')
    .orderBy('certificate_id')
    .limit(slots.limit),
);

/** Of a page over all orders: what one account asks for must not hold up the others. */
const MAX_EXAMINED = 1_000;

const selectOfAccount = prepared((db, slots: { accountId: AccountId; limit: number }) =>
  db
    .selectFrom((all) =>
      all
        .selectFrom('revocation')
        .selectAll()
        .where('account_id', '=', slots.accountId)
        .where('revoked_at', 'is', null)
        .limit(sql.lit(MAX_EXAMINED))
        .as('revocation'),
    )
    .innerJoin('certificate', 'certificate.id', 'revocation.certificate_id')
    .selectAll('revocation')
    .select(['certificate.order_id', 'certificate.common_name'])
    .orderBy('due_at')
    .orderBy('certificate_id')
    .limit(slots.limit),
);

const updateScheduled = (db: Db, certificateId: CertificateId) =>
  db.updateTable('revocation').where('certificate_id', '=', certificateId).where('revoked_at', 'is', null);

export const revocationsIn = (db: Db): Revocations => ({
  async schedule(accountId, certificateId, { reason, cause, causedById, dueAt, revokedAt }) {
    await db
      .insertInto('revocation')
      .values({
        certificate_id: certificateId,
        account_id: accountId,
        reason,
        cause,
        caused_by_id: causedById,
        due_at: dueAt,
        revoked_at: revokedAt,
      })
      // Scheduled already: keep the earlier date, and the first cause unless it is previous_replaced, the weakest.
      .onConflict((conflict) =>
        conflict
          .column('certificate_id')
          .doUpdateSet((is) => {
            const isEarlier = is('excluded.due_at', '<', is.ref('revocation.due_at'));
            const due = is
              .case()
              .when(isEarlier)
              .then(is.ref('excluded.due_at'))
              .else(is.ref('revocation.due_at'))
              .end();
            const wasReplaced = is('revocation.cause', '=', 'previous_replaced');
            return {
              due_at: due,
              cause: is.case().when(wasReplaced).then(is.ref('excluded.cause')).else(is.ref('revocation.cause')).end(),
              caused_by_id: is
                .case()
                .when(wasReplaced)
                .then(is.ref('excluded.caused_by_id'))
                .else(is.ref('revocation.caused_by_id'))
                .end(),
            };
          })
          .where('revocation.revoked_at', 'is', null),
      )
      .execute();
  },

  async listScheduled(accountId, orderId, limit) {
    const rows = await selectScheduled(db, { accountId, orderId, limit });
    return rows.map((row) => ({ certificateId: row.certificate_id, ...revocationFrom(row) }));
  },

  async listOfAccount(accountId, limit) {
    const rows = await selectOfAccount(db, { accountId, limit });
    return rows.map((row) => ({
      ...{ certificateId: row.certificate_id, orderId: row.order_id, commonName: row.common_name },
      ...revocationFrom(row),
    }));
  },

  async due(now, limit) {
    const rows = await db
      .selectFrom('revocation')
      .innerJoin('certificate', 'certificate.id', 'revocation.certificate_id')
      .select(['certificate_id', 'revocation.account_id', 'order_id'])
      .where('revoked_at', 'is', null)
      .where('due_at', '<=', now)
      .orderBy('due_at')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      accountId: row.account_id,
      orderId: row.order_id,
      certificateId: row.certificate_id,
    }));
  },

  async reschedule(accountId, certificateId, dueAt) {
    const row = await updateScheduled(db, certificateId)
      .set({ due_at: dueAt })
      .where('account_id', '=', accountId)
      .returning('certificate_id')
      .executeTakeFirst();
    return row !== undefined;
  },

  async unschedule(accountId, certificateId) {
    const row = await db
      .deleteFrom('revocation')
      .where('certificate_id', '=', certificateId)
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .returning('certificate_id')
      .executeTakeFirst();
    return row !== undefined;
  },

  async markRevoked(certificateId, { reason, cause, at }) {
    const row = await updateScheduled(db, certificateId)
      .set({ reason, cause, revoked_at: at })
      .returning('certificate_id')
      .executeTakeFirst();
    return row !== undefined;
  },

  async changeReason(certificateId, reason, cause) {
    await db.updateTable('revocation').set({ reason, cause }).where('certificate_id', '=', certificateId).execute();
  },
});
