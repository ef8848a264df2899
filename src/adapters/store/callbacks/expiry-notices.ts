// Cursors of expiry notices, and the certificates that end, by one index over all accounts.
import { sql } from 'kysely';
import type { CallbackAction } from '../../../domain/callbacks/callback.ts';
import type { ExpiryNotices } from '../../../domain/callbacks/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import { DAY_MS } from '../../../kernel/durations.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db } from '../engine/schema.ts';

/** As `enabled_actions` has it: a JSON list. */
const LISTED = `%"${'order:expiring' satisfies CallbackAction}"%`;

export const expiryNoticesIn = (db: Db, { locksRows }: Pick<Engine, 'locksRows'>): ExpiryNotices => {
  const subscribers = (accountIds: readonly AccountId[]) =>
    db
      .selectFrom('callback_settings')
      .select('account_id')
      .where('account_id', 'in', accountIds)
      .where('enabled_actions', 'like', LISTED);

  return {
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
      const rows = await db
        .selectFrom('certificate')
        .select(['id', 'not_after', 'account_id', 'order_id'])
        .where(sql<boolean>`state = 'issued'`)
        .where(sql<boolean>`(not_after, id) > (cast(${after.dueAt + ahead} as bigint), ${after.certificateId})`)
        .where('not_after', '<', before + ahead)
        .orderBy('not_after')
        .orderBy('id')
        .limit(limit)
        .execute();
      const last = rows.length < limit ? undefined : rows.at(-1);
      const accountIds = [...new Set(rows.map(({ account_id }) => account_id))];
      const told = accountIds.length === 0 ? [] : await subscribers(accountIds).execute();
      const isTold = new Set(told.map(({ account_id }) => account_id));
      return {
        candidates: rows
          .filter(({ account_id }) => isTold.has(account_id))
          .map((row) => ({ accountId: row.account_id, orderId: row.order_id, certificateId: row.id })),
        last: last && { dueAt: (last.not_after ?? 0) - ahead, certificateId: last.id },
      };
    },
  };
};
