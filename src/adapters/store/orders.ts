// Orders, each found only through the account that owns it.
import { Refusal } from '../../domain/errors.ts';
import type { Orders } from '../../domain/issuance-ports.ts';
import type { Order } from '../../domain/order.ts';
import { listFrom, listText } from './columns.ts';
import type { Engine } from './engine.ts';
import type { Db, Schema } from './schema.ts';

type Row = Schema['certificate_order'];

const orderFrom = (row: Row): Order => ({
  id: row.id,
  accountId: row.account_id,
  productId: row.product_id,
  alternativeId: row.alternative_id,
  status: row.status,
  commonName: row.common_name,
  names: listFrom<string>(row.names),
  dcvMethod: row.dcv_method,
  dcvScope: row.dcv_scope,
  persistUntil: row.persist_until,
  persistPolicy: row.persist_policy,
  currentCertificateId: row.current_certificate_id,
  pendingCertificateId: row.pending_certificate_id,
  termEndsAt: row.term_ends_at,
  createdAt: row.created_at,
  revision: row.revision,
});

/** What may change during the life of an order. */
const changeable = (order: Order) => ({
  status: order.status,
  common_name: order.commonName,
  names: listText(order.names),
  dcv_method: order.dcvMethod,
  dcv_scope: order.dcvScope,
  persist_until: order.persistUntil,
  persist_policy: order.persistPolicy,
  current_certificate_id: order.currentCertificateId,
  pending_certificate_id: order.pendingCertificateId,
  signing_certificate_id: null,
  signing_until: null,
});

export const ordersIn = (db: Db, engine: Pick<Engine, 'locksRows'>): Orders => {
  const owned = (accountId: string, id: string) =>
    db.selectFrom('certificate_order').selectAll().where('id', '=', id).where('account_id', '=', accountId);
  return {
    async insert(order) {
      await db
        .insertInto('certificate_order')
        .values({
          id: order.id,
          account_id: order.accountId,
          product_id: order.productId,
          alternative_id: order.alternativeId,
          ...changeable(order),
          term_ends_at: order.termEndsAt,
          created_at: order.createdAt,
          revision: order.revision,
        })
        .execute();
    },

    async find(accountId, id) {
      const row = await owned(accountId, id).executeTakeFirst();
      return row && orderFrom(row);
    },

    async findForUpdate(accountId, id) {
      const query = owned(accountId, id);
      const row = await (engine.locksRows ? query.forUpdate() : query).executeTakeFirst();
      if (!row) return undefined;
      const { signing_certificate_id: certificateId, signing_until: until } = row;
      return {
        order: orderFrom(row),
        signing: certificateId !== null && until !== null ? { certificateId, until } : null,
      };
    },

    async list(accountId, { after = '', limit }) {
      const rows = await db
        .selectFrom('certificate_order')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('id', '>', after)
        .orderBy('id')
        .limit(limit)
        .execute();
      return rows.map(orderFrom);
    },

    async save(order) {
      const saved = await db
        .updateTable('certificate_order')
        .set({ ...changeable(order), revision: order.revision + 1 })
        .where('id', '=', order.id)
        .where('account_id', '=', order.accountId)
        .where('revision', '=', order.revision)
        .returning('id')
        .executeTakeFirst();
      if (!saved) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    },

    async beginSigning(orderId, { certificateId, until }) {
      await db
        .updateTable('certificate_order')
        .set({ signing_certificate_id: certificateId, signing_until: until })
        .where('id', '=', orderId)
        .execute();
    },

    async overdue(now, limit) {
      const rows = await db
        .selectFrom('certificate_order')
        .select(['id', 'account_id'])
        .where('signing_until', '<=', now)
        .orderBy('signing_until')
        .limit(limit)
        .execute();
      return rows.map(({ id, account_id }) => ({ accountId: account_id, orderId: id }));
    },
  };
};
