// Accounts. What they store is counted by stored-bytes.ts.
import { type RawBuilder, sql } from 'kysely';
import type { Account } from '../../../domain/access/account.ts';
import type { Accounts } from '../../../domain/access/ports.ts';
import type { AccountUsage } from '../../../domain/access/quota.ts';
import type { AccountId } from '../../../domain/ids.ts';
import type { Engine } from '../engine/engine.ts';
import { pageById } from '../engine/paging.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { countStored } from './stored-bytes.ts';

export const accountFrom = (row: Schema['account']): Account => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  locale: row.locale,
  createdAt: row.created_at,
  suspendedAt: row.suspended_at,
  ...usageFrom(row),
});

export type UsageColumn = 'open_orders_limit' | 'stored_bytes_limit' | 'stored_bytes';
export const usageFrom = (row: Pick<Schema['account'], UsageColumn>): AccountUsage => ({
  quotas: { openOrders: row.open_orders_limit, storedBytes: row.stored_bytes_limit },
  storedBytes: row.stored_bytes,
});

const NEW = { suspended_at: null, open_orders_limit: null, stored_bytes_limit: null, stored_bytes: 0 };

export const accountsIn = (db: Db, engine: Pick<Engine, 'locksRows'>): Accounts => ({
  async insert(account) {
    const { id, name, kind, locale, createdAt: created_at } = account;
    await db
      .insertInto('account')
      .values({ id, name, kind, locale, created_at, ...NEW })
      .execute();
  },

  async find(id) {
    const row = await db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirst();
    return row && accountFrom(row);
  },

  async findForUpdate(id) {
    const account = db.selectFrom('account').selectAll().where('id', '=', id);
    // Not the key: rows that refer to the account are written meanwhile.
    const row = await (engine.locksRows ? account.forNoKeyUpdate() : account).executeTakeFirst();
    return row && accountFrom(row);
  },

  async list(page) {
    return (await pageById(db.selectFrom('account').selectAll(), page).execute()).map(accountFrom);
  },

  async update(id, change) {
    const row = await db.updateTable('account').set(change).where('id', '=', id).returningAll().executeTakeFirst();
    return row && accountFrom(row);
  },

  suspend: (id, at) => suspension(db, id, sql<number>`coalesce(suspended_at, ${at})`),
  resume: (id) => suspension(db, id, null),

  async setQuotas(id, { openOrders, storedBytes }) {
    const change = {
      ...(openOrders !== undefined && { open_orders_limit: openOrders }),
      ...(storedBytes !== undefined && { stored_bytes_limit: storedBytes }),
    };
    const row = await db.updateTable('account').set(change).where('id', '=', id).returningAll().executeTakeFirst();
    return row && accountFrom(row);
  },

  async addStored(id, bytes) {
    await db
      .updateTable('account')
      .set((is) => ({ stored_bytes: is('stored_bytes', '+', bytes) }))
      .where('id', '=', id)
      .execute();
  },

  countStored: (before, limit) => countStored(db, engine, before, limit),
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
