// Repository of authorizations, and the queue of challenges that clients have answered. Claiming reads only due rows,
// through an index on due_at.
import { sql } from 'kysely';
import type { Authorization } from '../../../domain/acme/authorization.ts';
import type { Authorizations } from '../../../domain/acme/order-ports.ts';
import type { StoredProblem } from '../../../domain/acme/stored-problem.ts';
import { latestAhead } from '../../../domain/clock.ts';
import { CHECK_LEASE_MS } from '../../../domain/validation/check-result.ts';
import type { Engine } from '../engine/engine.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

type Row = Schema['acme_authorization'];

export const problemText = (problem: StoredProblem): string => JSON.stringify(problem);
export const problemFrom = (text: string | null): StoredProblem | null => text && JSON.parse(text);

export const authorizationRow = (one: Authorization): Row => ({
  id: one.id,
  order_id: one.orderId,
  account_id: one.accountId,
  acme_account_id: one.acmeAccountId,
  name: one.name,
  token: one.token,
  expires_at: one.expiresAt,
  ...stateRow(one),
});

type StateRow = Pick<Row, 'state' | 'method' | 'due_at' | 'validated_at' | 'problem'>;
const NO_STATE = { method: null, due_at: null, validated_at: null, problem: null } as const;

function stateRow(one: Authorization): StateRow {
  const { state } = one;
  switch (state) {
    case 'pending':
      return { ...NO_STATE, state, method: one.answered?.method ?? null, due_at: one.answered?.dueAt ?? null };
    case 'valid':
      return { ...NO_STATE, state, method: one.method, validated_at: one.validatedAt };
    case 'invalid':
      return { ...NO_STATE, state, method: one.method, problem: problemText(one.problem) };
    case 'deactivated':
    case 'expired':
      return { ...NO_STATE, state };
  }
}

function authorizationFrom(row: Row): Authorization {
  const facts = {
    ...{ id: row.id, orderId: row.order_id, accountId: row.account_id, acmeAccountId: row.acme_account_id },
    ...{ name: row.name, token: row.token, expiresAt: row.expires_at },
  };
  const { state, method, due_at: dueAt, validated_at: validatedAt } = row;
  const problem = problemFrom(row.problem);
  if (state === 'valid' && method !== null && validatedAt !== null) return { ...facts, state, method, validatedAt };
  if (state === 'invalid' && method !== null && problem) return { ...facts, state, method, problem };
  if (state === 'deactivated' || state === 'expired') return { ...facts, state };
  return { ...facts, state: 'pending', answered: method === null || dueAt === null ? null : { method, dueAt } };
}

/** A literal, so that a planner sees the condition of the partial index. */
const isPending = sql<boolean>`state = 'pending'`;

const select = prepared((db, { id, acme_account_id }: Pick<Row, 'id' | 'acme_account_id'>) =>
  db.selectFrom('acme_authorization').selectAll().where('id', '=', id).where('acme_account_id', '=', acme_account_id),
);
const selectOfOrder = prepared((db, { order_id }: Pick<Row, 'order_id'>) =>
  db.selectFrom('acme_authorization').selectAll().where('order_id', '=', order_id).orderBy('id'),
);

export const authorizationsIn = (db: Db, engine: Pick<Engine, 'locksRows'>): Authorizations => ({
  async find(acmeAccountId, id) {
    const [row] = await select(db, { id, acme_account_id: acmeAccountId });
    return row && authorizationFrom(row);
  },

  async ofOrder(orderId) {
    return (await selectOfOrder(db, { order_id: orderId })).map(authorizationFrom);
  },

  async countPending(acmeAccountId, most) {
    const rows = db.selectFrom('acme_authorization').select('id').where('acme_account_id', '=', acmeAccountId);
    const count = sql<number>`cast(count(*) as bigint)`.as('count');
    const counted = rows.where(isPending).limit(most).as('counted');
    return (await db.selectFrom(counted).select(count).executeTakeFirstOrThrow()).count;
  },

  async save(authorization, seen) {
    const saved = await db
      .updateTable('acme_authorization')
      .set(stateRow(authorization))
      .where('id', '=', authorization.id)
      .where('state', '=', seen.state)
      .where('due_at', 'is not distinct from', seen.dueAt)
      .returning('id')
      .executeTakeFirst();
    return saved !== undefined;
  },

  async claim(now, leaseUntil, limit, except = []) {
    const ofAny = db.selectFrom('acme_authorization').select('id').where('due_at', '<=', now);
    const ofOthers = except.length === 0 ? ofAny : ofAny.where('account_id', 'not in', except);
    const due = ofOthers.orderBy('due_at').limit(limit);
    const rows = await db
      // As in the queue of waiting certificates: different rows for concurrent workers, and a CTE, which runs once.
      .with('due', () => (engine.locksRows ? due.forUpdate().skipLocked() : due))
      .updateTable('acme_authorization')
      .set({ due_at: leaseUntil })
      .where('id', 'in', (from) => from.selectFrom('due').select('due.id'))
      .returningAll()
      .execute();
    return rows.map(authorizationFrom);
  },

  async repair(now) {
    const rows = await db
      .updateTable('acme_authorization')
      .set({ due_at: now })
      .where('due_at', '>', latestAhead(now, CHECK_LEASE_MS))
      .returning('id')
      .execute();
    return rows.length;
  },

  async deleteExpired(before, limit) {
    const old = db.selectFrom('acme_authorization').select('id').where('expires_at', '<', before).limit(limit);
    const rows = await db.deleteFrom('acme_authorization').where('id', 'in', old).returning('id').execute();
    return rows.length;
  },
});
