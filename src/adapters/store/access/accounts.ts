import type { Account } from '../../../domain/access/account.ts';
import type { Accounts } from '../../../domain/access/ports.ts';
import type { Db, Schema } from '../engine/schema.ts';

export const accountFrom = (row: Schema['account']): Account => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  locale: row.locale,
  createdAt: row.created_at,
});

export const accountsIn = (db: Db): Accounts => ({
  async insert(account) {
    const { createdAt, ...rest } = account;
    await db
      .insertInto('account')
      .values({ ...rest, created_at: createdAt })
      .execute();
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
});
