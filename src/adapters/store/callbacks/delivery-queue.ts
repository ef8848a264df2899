// Events that wait to be delivered. One that nobody has looked at is found by the index of new ones; every other through
// the lane of its account. A lease is a token, and a due time at which the event is free again; whoever has lost it
// writes nothing.

import { sql } from 'kysely';
import type { Attempted, DeliveryQueue, WaitingEvent } from '../../../domain/callbacks/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import type { Engine } from '../engine/engine.ts';
import { prepared, preparedInsert } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { freeInOrder, PENDING, wakeLane } from './callback-lanes.ts';

/** Of each event the last ones are kept; being sent again and again must not grow it without end. */
const KEPT_ATTEMPTS = 20;

const WAITING = [
  ...(['id', 'account_id', 'order_id', 'action', 'body', 'created_at', 'attempts', 'tries'] as const),
  ...(['begun_at', 'in_order'] as const),
];

const eventFrom = (row: Pick<Schema['outbox'], (typeof WAITING)[number]>): WaitingEvent => ({
  id: row.id,
  accountId: row.account_id,
  orderId: row.order_id,
  action: row.action,
  body: row.body,
  createdAt: row.created_at,
  attempts: row.attempts,
  tries: row.tries,
  begunAt: row.begun_at,
  inOrder: row.in_order === 1,
});

type Leased = { id: string; token: string };
type Settled = Leased & Pick<Schema['outbox'], 'state' | 'reason' | 'due_at' | 'settled_at' | 'attempts' | 'tries'>;
const settle = prepared((db, row: Settled) =>
  db
    .updateTable('outbox')
    .set({ state: row.state, reason: row.reason, due_at: row.due_at, settled_at: row.settled_at })
    .set({ attempts: row.attempts, tries: row.tries, lease: null, in_order: 0 })
    .where('id', '=', row.id)
    .where('lease', '=', row.token)
    .where(PENDING)
    .returning('id'),
);
const anyNew = prepared((db, _: object) =>
  db.selectFrom('outbox').select('id').where('is_new', '=', 1).where(PENDING).limit(1),
);
interface DueIn {
  readonly accountId: AccountId;
  readonly now: number;
  readonly inOrder: number;
  readonly limit: number;
}
const dueIn = (db: Db, { accountId, now, inOrder, limit }: DueIn) =>
  db
    .selectFrom('outbox')
    .select(WAITING)
    .where('account_id', '=', accountId)
    .where('in_order', '=', inOrder)
    .where(PENDING)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .orderBy('id')
    .limit(limit);
const dueRows = prepared(dueIn);
const dueLocked = prepared((db, wish: DueIn) => dueIn(db, wish).forUpdate().skipLocked());

/** What is sent in order keeps its turn: it is the lane that keeps others from it meanwhile. */
const unlessInOrder = (at: number) => sql<number>`case when in_order = 1 then due_at else cast(${at} as bigint) end`;
const leaseOne = prepared((db, { id, token, until }: Leased & { until: number }) =>
  db
    .updateTable('outbox')
    .set({ lease: token, due_at: unlessInOrder(until) })
    .where('id', '=', id),
);

const insertAttempt = preparedInsert('delivery_attempt');

export const deliveryQueueIn = (db: Db, { locksRows }: Pick<Engine, 'locksRows'>): DeliveryQueue => {
  /** Of rows that were read in this transaction: they are as they were. */
  const change = (ids: readonly string[]) => db.updateTable('outbox').where('id', 'in', ids);
  const due = async (accountId: AccountId, now: number, inOrder: boolean, limit: number): Promise<WaitingEvent[]> =>
    (await (locksRows ? dueLocked : dueRows)(db, { accountId, now, inOrder: inOrder ? 1 : 0, limit })).map(eventFrom);

  async function end(
    { event, token, attempt }: Attempted,
    to: Pick<Settled, 'state' | 'reason' | 'due_at' | 'settled_at'>,
    at: number,
  ): Promise<boolean> {
    const { number, at: begun, ms, httpStatus, reason, excerpt } = attempt;
    const [row] = await settle(db, { ...to, id: event.id, token, attempts: number, tries: event.tries + 1 });
    if (!row) return false;
    await insertAttempt(db, {
      ...{ event_id: event.id, number, at: begun, ms, http_status: httpStatus, reason, excerpt },
    });
    if (number > KEPT_ATTEMPTS) {
      const last = number - KEPT_ATTEMPTS;
      await db.deleteFrom('delivery_attempt').where('event_id', '=', event.id).where('number', '<=', last).execute();
    }
    if (event.inOrder) await freeInOrder(db, event.accountId, at);
    return true;
  }

  return {
    hasNew: async () => (await anyNew(db, {})).length > 0,

    async sortNew(limit, now) {
      const query = db.selectFrom('outbox').select(['id', 'account_id']).where('is_new', '=', 1).where(PENDING);
      // The newest too: who comes after a flood does not wait for all of it to be sorted.
      const oldest = query
        .orderBy('begun_at')
        .orderBy('id')
        .limit(limit / 2);
      const newest = query
        .orderBy('begun_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit / 2);
      const taken = async (end: typeof oldest) => await (locksRows ? end.forUpdate().skipLocked() : end).execute();
      const first = await taken(oldest);
      const last = first.length < limit / 2 ? [] : await taken(newest);
      const rows = [...new Map([...first, ...last].map((row) => [row.id, row])).values()];
      if (rows.length === 0) return 0;
      await change(rows.map(({ id }) => id))
        .set({ is_new: 0, due_at: now })
        .execute();
      // In one order for everybody, so that no two wait for each other.
      const accountIds = new Set(rows.map(({ account_id }) => account_id).sort());
      for (const accountId of accountIds) await wakeLane(db, accountId, now);
      return rows.length;
    },

    dueEvents: due,

    async lease(ids, { token, until }) {
      // One statement, known by heart, for each of a few: a list would have a text for each length.
      for (const id of ids) await leaseOne(db, { id, token, until });
    },

    async suppress(ids, reason, at) {
      const settled = { state: 'suppressed', reason, settled_at: at, due_at: null, is_new: 0, lease: null } as const;
      await change(ids)
        .set({ ...settled, in_order: 0 })
        .execute();
    },

    delivered: (attempted, at) =>
      end(attempted, { state: 'delivered', reason: null, due_at: null, settled_at: at }, at),
    retryAt: (attempted, dueAt) =>
      end(attempted, { state: 'pending', reason: null, due_at: dueAt, settled_at: null }, attempted.attempt.at),
    gaveUp: (attempted, at, reason) => end(attempted, { state: 'failed', reason, due_at: null, settled_at: at }, at),

    async release({ id, accountId, inOrder }, token, dueAt) {
      const query = db.updateTable('outbox').set({ lease: null, due_at: unlessInOrder(dueAt) });
      const row = await query
        .where('id', '=', id)
        .where('lease', '=', token)
        .where(PENDING)
        .returning('id')
        .executeTakeFirst();
      if (!row) return false;
      if (inOrder) await freeInOrder(db, accountId, dueAt);
      else await wakeLane(db, accountId, dueAt);
      return true;
    },

    async bringBack(accountId, after, now, limit) {
      for (const inOrder of [0, 1]) {
        const late = db.selectFrom('outbox').select('id').where('account_id', '=', accountId).where(PENDING);
        const rows = await late.where('in_order', '=', inOrder).where('due_at', '>', after).limit(limit).execute();
        if (rows.length > 0) {
          await change(rows.map(({ id }) => id))
            .set({ due_at: now })
            .execute();
        }
      }
    },

    async giveUpBegunBefore(accountId, before, now, isInOrderToo, limit) {
      const inOrder = isInOrderToo ? await due(accountId, now, true, limit) : [];
      const waiting = [...(await due(accountId, now, false, limit)), ...inOrder];
      const old = waiting.filter(({ begunAt }) => begunAt < before);
      if (old.length === 0) return [];
      const failed = { state: 'failed', reason: 'receiver_down', settled_at: now, due_at: null, lease: null } as const;
      await change(old.map(({ id }) => id))
        .set({ ...failed, in_order: 0 })
        .execute();
      return old;
    },
  };
};
