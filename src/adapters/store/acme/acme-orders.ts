// Repository of orders that were placed over ACME: what is known about them besides the order.
import { sql } from 'kysely';
import type { AcmeOrder } from '../../../domain/acme/acme-order.ts';
import type { AcmeOrders } from '../../../domain/acme/order-ports.ts';
import type { OrderStatus } from '../../../domain/certificate/order.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { authorizationRow, problemFrom, problemText } from './authorizations.ts';

type Row = Schema['acme_order'];

const orderFrom = (row: Row): AcmeOrder => ({
  orderId: row.order_id,
  accountId: row.account_id,
  acmeAccountId: row.acme_account_id,
  acmeAccountUrl: row.acme_account_url,
  certificateId: row.certificate_id,
  replaces: row.replaces_id === null ? null : { certId: row.replaces ?? '', certificateId: row.replaces_id },
  revokesReplaced: row.revokes_replaced === 1,
  notAfter: row.not_after,
  expiresAt: row.expires_at,
  problem: problemFrom(row.problem),
  keepUntil: row.keep_until,
});

/** Without a certificate. */
const ENDED: readonly OrderStatus[] = ['canceled', 'rejected'];

/** Literals, so that a planner sees the condition of the partial index. */
const isOpen = sql<boolean>`is_open = 1`;
const hasEnded = sql<boolean>`is_open = 0`;

type Owned = Pick<Row, 'account_id'>;
const select = prepared((db, { account_id, order_id }: Owned & Pick<Row, 'order_id'>) =>
  db.selectFrom('acme_order').selectAll().where('order_id', '=', order_id).where('account_id', '=', account_id),
);
const selectByCertificate = prepared((db, { account_id, certificate_id }: Owned & Pick<Row, 'certificate_id'>) =>
  db
    .selectFrom('acme_order')
    .selectAll()
    .where('certificate_id', '=', certificate_id)
    .where('account_id', '=', account_id),
);

export const acmeOrdersIn = (db: Db): AcmeOrders => {
  return {
    async insert(order, authorizations) {
      await db
        .insertInto('acme_order')
        .values({
          order_id: order.orderId,
          account_id: order.accountId,
          acme_account_id: order.acmeAccountId,
          acme_account_url: order.acmeAccountUrl,
          certificate_id: order.certificateId,
          replaces: order.replaces?.certId ?? null,
          replaces_id: order.replaces?.certificateId ?? null,
          revokes_replaced: order.revokesReplaced ? 1 : 0,
          not_after: order.notAfter,
          expires_at: order.expiresAt,
          is_open: 1,
          problem: null,
          keep_until: order.keepUntil,
        })
        .execute();
      await db.insertInto('acme_authorization').values(authorizations.map(authorizationRow)).execute();
    },

    async find(accountId, orderId) {
      const [row] = await select(db, { account_id: accountId, order_id: orderId });
      return row && orderFrom(row);
    },

    async findByCertificate(accountId, certificateId) {
      const [row] = await selectByCertificate(db, { account_id: accountId, certificate_id: certificateId });
      return row && orderFrom(row);
    },

    async list(acmeAccountId, { after = '', limit }) {
      const rows = await db
        .selectFrom('acme_order')
        .innerJoin('certificate_order', 'certificate_order.id', 'acme_order.order_id')
        .select('order_id')
        .where('acme_account_id', '=', acmeAccountId)
        .where('order_id', '>', after)
        .where('certificate_order.status', 'not in', ENDED)
        .orderBy('order_id')
        .limit(limit)
        .execute();
      return rows.map(({ order_id }) => order_id);
    },

    async findReplacing(accountId, certificateId) {
      const row = await db
        .selectFrom('acme_order')
        .innerJoin('certificate_order', 'certificate_order.id', 'acme_order.order_id')
        .select('order_id')
        .where('acme_order.account_id', '=', accountId)
        .where('replaces_id', '=', certificateId)
        .where('certificate_order.status', 'not in', ENDED)
        .executeTakeFirst();
      return row?.order_id;
    },

    async finalize(orderId, keepUntil) {
      await db
        .updateTable('acme_order')
        .set({ is_open: 0, keep_until: keepUntil })
        .where('order_id', '=', orderId)
        .execute();
    },

    async end(orderId, problem) {
      await db
        .updateTable('acme_order')
        .set({ is_open: 0, ...(problem && { problem: problemText(problem) }) })
        .where('order_id', '=', orderId)
        .execute();
      await db
        .updateTable('acme_authorization')
        .set({ state: 'expired', due_at: null })
        .where('order_id', '=', orderId)
        .where('state', '=', 'pending')
        .execute();
    },

    async expired(now, limit) {
      const rows = await db
        .selectFrom('acme_order')
        .select(['account_id', 'order_id'])
        .where(isOpen)
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(limit)
        .execute();
      return rows.map(({ account_id, order_id }) => ({ accountId: account_id, orderId: order_id }));
    },

    async expireAll(acmeAccountId, now) {
      const change = db.updateTable('acme_order').set({ expires_at: now });
      await change.where('acme_account_id', '=', acmeAccountId).where(isOpen).where('expires_at', '>', now).execute();
    },

    async deleteKeptUntil(before, limit) {
      const ended = await db
        .selectFrom('acme_order')
        .select('order_id')
        .where(hasEnded)
        .where('keep_until', '<', before)
        .orderBy('keep_until')
        .limit(limit)
        .execute();
      const ids = ended.map(({ order_id }) => order_id);
      if (ids.length === 0) return 0;
      await db.deleteFrom('acme_authorization').where('order_id', 'in', ids).execute();
      await db.deleteFrom('acme_order').where('order_id', 'in', ids).execute();
      return ids.length;
    },
  };
};
