// Cursors of expiry notices, and the certificates that end, by one index over all accounts.
import { sql } from 'kysely';
import type { CallbackAction } from '../../../domain/callbacks/callback.ts';
import type { ExpiryNotices } from '../../../domain/callbacks/ports.ts';
import { DAY_MS } from '../../../kernel/durations.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db } from '../engine/schema.ts';

/** As `enabled_actions` has it: a JSON list. */
const LISTED = `%"${'order:expiring' satisfies CallbackAction}"%`;

export const expiryNoticesIn = (db: Db, { locksRows }: Pick<Engine, 'locksRows'>): ExpiryNotices => ({
  async lockCursor(days, start) {
    const query = db.selectFrom('expiry_notice').selectAll().where('days', '=', days);
    const find = async () => await (locksRows ? query.forUpdate() : query).executeTakeFirst();
    let row = await find();
    if (!row) {
      const first = db.insertInto('expiry_notice').values({ days, written_through: start, certificate_id: '' });
      await first.onConflict((conflict) => conflict.doNothing()).execute();
      row = await find();
    }
    if (!row) throw new Error(`the threshold ${days} has no cursor`);
    return { dueAt: row.written_through, certificateId: row.certificate_id };
  },

  async moveCursor(days, { dueAt, certificateId }) {
    const cursor = { written_through: dueAt, certificate_id: certificateId };
    await db.updateTable('expiry_notice').set(cursor).where('days', '=', days).execute();
  },

  async page({ days, after, before }, limit) {
    const ahead = days * DAY_MS;
    // A literal state, because a partial index is not used with a bound parameter.
    const ending = db
      .selectFrom('certificate')
      .select(['id', 'not_after', 'account_id', 'order_id'])
      .where(sql<boolean>`state = 'issued'`)
      .where(sql<boolean>`(not_after, id) > (cast(${after.dueAt + ahead} as bigint), ${after.certificateId})`)
      .where('not_after', '<', before + ahead)
      .orderBy('not_after')
      .orderBy('id')
      .limit(limit);
    const rows = await db
      .selectFrom(ending.as('ending'))
      .leftJoin('certificate_order', (join) =>
        join
          .onRef('certificate_order.id', '=', 'ending.order_id')
          .onRef('certificate_order.current_certificate_id', '=', 'ending.id'),
      )
      .leftJoin('callback_settings', (join) =>
        join.onRef('callback_settings.account_id', '=', 'ending.account_id').on('enabled_actions', 'like', LISTED),
      )
      .select(['ending.id', 'ending.not_after', 'ending.account_id', 'ending.order_id'])
      .select(['certificate_order.id as current_of', 'callback_settings.account_id as told'])
      .orderBy('ending.not_after')
      .orderBy('ending.id')
      .execute();
    const last = rows.length < limit ? undefined : rows.at(-1);
    return {
      candidates: rows
        .filter(({ current_of, told }) => current_of !== null && told !== null)
        .map((row) => ({ accountId: row.account_id, orderId: row.order_id, certificateId: row.id })),
      last: last && { dueAt: (last.not_after ?? 0) - ahead, certificateId: last.id },
    };
  },
});
