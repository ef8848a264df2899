import { type RawBuilder, sql } from 'kysely';
import type { Account } from '../../../domain/access/account.ts';
import type { Accounts } from '../../../domain/access/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import type { Db, Schema } from '../engine/schema.ts';

export const accountFrom = (row: Schema['account']): Account => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  locale: row.locale,
  createdAt: row.created_at,
  suspendedAt: row.suspended_at,
});

export const accountsIn = (db: Db): Accounts => ({
  async insert(account) {
    const { id, name, kind, locale, createdAt: created_at } = account;
    await db.insertInto('account').values({ id, name, kind, locale, created_at, suspended_at: null }).execute();
  },

  async find(id) {
    const row = await db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirst();
    return row && accountFrom(row);
  },

  async list({ after = '', limit }) {
    const rows = await db
      .selectFrom('account')
      .selectAll()
      .where('id', '>', after)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map(accountFrom);
  },

  async update(id, change) {
    const row = await db.updateTable('account').set(change).where('id', '=', id).returningAll().executeTakeFirst();
    return row && accountFrom(row);
  },

  suspend: (id, at) => suspension(db, id, sql<number>`coalesce(suspended_at, ${at})`),
  resume: (id) => suspension(db, id, null),
});

async function suspension(
  db: Db,
  id: AccountId,
  suspended_at: RawBuilder<number> | null,
): Promise<Account | undefined> {
  const row = await db
    .updateTable('account')
    .set({ suspended_at })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
  return row && accountFrom(row);
}
