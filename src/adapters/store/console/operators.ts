// Repositories of operators and of the single-use links that sign them in.
import { sql } from 'kysely';
import { latestAhead } from '../../../domain/clock.ts';
import type { LoginLinks, Operators } from '../../../domain/console/ports.ts';
import { LINK_MS, type Operator } from '../../../domain/console/session.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Schema } from '../engine/schema.ts';

export const OPERATOR_COLUMNS = [
  'console_operator.name',
  'console_operator.role',
  'console_operator.created_at',
  'console_operator.disabled_at',
] as const;

export const operatorFrom = (row: Schema['console_operator']): Operator => ({
  name: row.name,
  role: row.role,
  createdAt: row.created_at,
  disabledAt: row.disabled_at,
});

export const operatorsIn = (db: Db): Operators => ({
  async insert({ name, role, createdAt, disabledAt }) {
    const row = await db
      .insertInto('console_operator')
      .values({ name, role, created_at: createdAt, disabled_at: disabledAt })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .returning('name')
      .executeTakeFirst();
    return row !== undefined;
  },

  async find(name) {
    const row = await db.selectFrom('console_operator').selectAll().where('name', '=', name).executeTakeFirst();
    return row && operatorFrom(row);
  },

  async list() {
    return (await db.selectFrom('console_operator').selectAll().orderBy('name').execute()).map(operatorFrom);
  },

  async count() {
    const { count } = await db
      .selectFrom('console_operator')
      .select((of) => of.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  },

  async disable(name, at) {
    const row = await db
      .updateTable('console_operator')
      .set({ disabled_at: sql`coalesce(disabled_at, ${at})` })
      .where('name', '=', name)
      .returningAll()
      .executeTakeFirst();
    for (const table of ['console_link', 'console_session'] as const) {
      await db.deleteFrom(table).where('operator_name', '=', name).execute();
    }
    return row && operatorFrom(row);
  },
});

export const loginLinksIn = (db: Db, engine: Pick<Engine, 'locksRows'>): LoginLinks => ({
  async insert({ tokenHash, operatorName: name, createdAt, expiresAt }, most) {
    // Concurrent commands would not see each other's row, and exceed the bound.
    const operator = db.selectFrom('console_operator').select('name').where('name', '=', name);
    if (engine.locksRows) await operator.forNoKeyUpdate().execute();
    const newest = db
      .selectFrom('console_link')
      .select('token_hash')
      .where('operator_name', '=', name)
      .orderBy('created_at', 'desc')
      .limit(most - 1);
    await db
      .deleteFrom('console_link')
      .where('operator_name', '=', name)
      .where('token_hash', 'not in', newest)
      .execute();
    await db
      .insertInto('console_link')
      .values({ token_hash: tokenHash, operator_name: name, created_at: createdAt, expires_at: expiresAt })
      .execute();
  },

  async redeem(tokenHash, now) {
    const link = await db
      .deleteFrom('console_link')
      .where('token_hash', '=', tokenHash)
      .returning(['operator_name', 'expires_at'])
      .executeTakeFirst();
    if (!link || link.expires_at <= now || link.expires_at > latestAhead(now, LINK_MS)) return undefined;
    return await operatorsIn(db).find(link.operator_name);
  },

  async deleteExpired(now, limit) {
    const due = db
      .selectFrom('console_link')
      .select('token_hash')
      .where((is) => is.or([is('expires_at', '<=', now), is('expires_at', '>', latestAhead(now, LINK_MS))]))
      .limit(limit);
    return (await db.deleteFrom('console_link').where('token_hash', 'in', due).returning('token_hash').execute())
      .length;
  },
});
