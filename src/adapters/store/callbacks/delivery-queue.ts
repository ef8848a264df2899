// The delivery queue. New events are found by the index on is_new; all others through the lane of their account. A lease
// is a token in the row, and a due time at which the event is free again; a holder that lost it writes nothing.

import { sql } from 'kysely';
import type { DeliveryQueue, LeasedAttempt, PendingEvent } from '../../../domain/callbacks/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import { columnsOf, listText } from '../engine/columns.ts';
import { type Engine, perEngine } from '../engine/engine.ts';
import { prepared, statement } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { PENDING, releaseInOrder, scheduleLane, strayEvents } from './callback-lanes.ts';

/** Per event, the latest: resending must not grow the table without bound. */
const KEPT_ATTEMPTS = 20;

const EVENT_COLUMNS = [
  ...(['id', 'account_id', 'order_id', 'action', 'body', 'created_at', 'attempts', 'tries'] as const),
  ...(['begun_at', 'in_order'] as const),
];

const eventFrom = (row: Pick<Schema['outbox'], (typeof EVENT_COLUMNS)[number]>): PendingEvent => ({
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

type LeaseKey = { id: string; token: string };
type Settlement = LeaseKey &
  Pick<Schema['outbox'], 'state' | 'reason' | 'due_at' | 'settled_at' | 'attempts' | 'tries'>;
const settle = prepared((db, row: Settlement) =>
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
interface DueFilter {
  readonly accountId: AccountId;
  readonly now: number;
  readonly inOrder: number;
  readonly limit: number;
}
const dueIn = (db: Db, { accountId, now, inOrder, limit }: DueFilter) =>
  db
    .selectFrom('outbox')
    .select(EVENT_COLUMNS)
    .where('account_id', '=', accountId)
    .where('in_order', '=', inOrder)
    .where(PENDING)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .orderBy('id')
    .limit(limit);
const dueRows = prepared(dueIn);
const dueLocked = prepared((db, filter: DueFilter) => dueIn(db, filter).forUpdate().skipLocked());

/** Events sent in order keep their due time, hence their position; the lane's lease protects them meanwhile. */
const unlessInOrder = (at: number) => sql<number>`case when in_order = 1 then due_at else cast(${at} as bigint) end`;

/** Columns of an attempt, in the order of its JSON list. */
const ATTEMPT = ['event_id', 'number', 'at', 'ms', 'http_status', 'reason', 'excerpt'] as const;
const ATTEMPT_TYPES = ['text', 'bigint', 'bigint', 'bigint', 'bigint', 'text', 'text'] as const;

/** Of several events at once; `ids` and `attempts` are JSON lists. */
const several = perEngine(({ json, locksRows }) => {
  const fresh = (direction: 'asc' | 'desc') =>
    prepared((db, { limit }: { limit: number }) => {
      const query = db
        .selectFrom('outbox')
        .select(EVENT_COLUMNS)
        .where('is_new', '=', 1)
        .where(PENDING)
        .orderBy('begun_at', direction)
        .orderBy('id', direction)
        .limit(limit);
      return locksRows ? query.forUpdate().skipLocked() : query;
    });
  return {
    oldest: fresh('asc'),
    newest: fresh('desc'),
    enqueue: prepared((db, { ids, at }: { ids: string; at: number }) =>
      db
        .updateTable('outbox')
        .set({ is_new: 0, due_at: at })
        .where(sql<boolean>`id ${json.among(ids)}`),
    ),
    lease: prepared((db, { ids, token, until }: { ids: string; token: string; until: number }) =>
      db
        .updateTable('outbox')
        .set({ lease: token, due_at: unlessInOrder(until), is_new: 0 })
        .where(sql<boolean>`id ${json.among(ids)}`),
    ),
    /** Under a lease no other process counts attempts. */
    deliver: prepared((db, { ids, token, at }: { ids: string; token: string; at: number }) =>
      db
        .updateTable('outbox')
        .set({ state: 'delivered', reason: null, due_at: null, settled_at: at, lease: null, in_order: 0 })
        .set({ attempts: sql<number>`attempts + 1`, tries: sql<number>`tries + 1` })
        .where(sql<boolean>`id ${json.among(ids)}`)
        .where('lease', '=', token)
        .where(PENDING)
        .returning('id'),
    ),
    noteAttempts: prepared((db, { attempts }: { attempts: string }) => {
      const values = ATTEMPT_TYPES.map((type, index) => sql`cast(value ->> ${sql.lit(index)} as ${sql.raw(type)})`);
      return statement<unknown>(
        db,
        sql`insert into delivery_attempt (${columnsOf(ATTEMPT)}) select ${sql.join(values)} from ${json.elements(attempts)}`,
      );
    }),
  };
});

export const deliveryQueueIn = (db: Db, engine: Engine): DeliveryQueue => {
  const { locksRows } = engine;
  const { oldest, newest, ...statements } = several(engine);
  /** Only for rows that this transaction has locked. */
  const change = (ids: readonly string[]) => db.updateTable('outbox').where('id', 'in', ids);
  const due = async (accountId: AccountId, now: number, inOrder: boolean, limit: number): Promise<PendingEvent[]> =>
    (await (locksRows ? dueLocked : dueRows)(db, { accountId, now, inOrder: inOrder ? 1 : 0, limit })).map(eventFrom);

  async function newEvents(limit: number): Promise<PendingEvent[]> {
    // Half from each end: an event that follows a flood must not wait for all of it.
    const half = { limit: limit / 2 };
    const first = await oldest(db, half);
    const last = first.length < half.limit ? [] : await newest(db, half);
    const byId = new Map([...first, ...last].map((row) => [row.id, eventFrom(row)]));
    return [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  async function recordAttempt(
    { event, token, attempt }: LeasedAttempt,
    change: Pick<Settlement, 'state' | 'reason' | 'due_at' | 'settled_at'>,
    at: number,
  ): Promise<boolean> {
    const attempts = attempt.number;
    const [row] = await settle(db, { ...change, id: event.id, token, attempts, tries: event.tries + 1 });
    if (!row) return false;
    await noteAttempts([{ event, token, attempt }], at);
    return true;
  }

  /** Of attempts whose outcome is recorded. */
  async function noteAttempts(leased: readonly LeasedAttempt[], at: number): Promise<void> {
    const attempts = leased.map(({ event, attempt: { number, at: startedAt, ms, httpStatus, reason, excerpt } }) => [
      ...[event.id, number, startedAt, ms, httpStatus, reason, excerpt],
    ]);
    await statements.noteAttempts(db, { attempts: JSON.stringify(attempts) });
    for (const { event, attempt } of leased) {
      const last = attempt.number - KEPT_ATTEMPTS;
      if (last > 0) {
        await db.deleteFrom('delivery_attempt').where('event_id', '=', event.id).where('number', '<=', last).execute();
      }
      if (event.inOrder) await releaseInOrder(db, event.accountId, at);
    }
  }

  return {
    hasNew: async () => (await anyNew(db, {})).length > 0,

    newEvents,

    async enqueueNew(limit, now) {
      const events = await newEvents(limit);
      if (events.length === 0) return 0;
      await statements.enqueue(db, { ids: listText(events.map(({ id }) => id)), at: now });
      // Sorted, so that concurrent transactions cannot deadlock.
      const accountIds = new Set(events.map(({ accountId }) => accountId).sort());
      for (const accountId of accountIds) await scheduleLane(db, accountId, now);
      return events.length;
    },

    dueEvents: due,

    async lease(ids, { token, until }) {
      await statements.lease(db, { ids: listText(ids), token, until });
    },

    async suppress(ids, reason, at) {
      const settled = { state: 'suppressed', reason, settled_at: at, due_at: null, is_new: 0, lease: null } as const;
      await change(ids)
        .set({ ...settled, in_order: 0 })
        .execute();
    },

    async markDelivered(leased, at) {
      const held: LeasedAttempt[] = [];
      // A token belongs to one claim, which has each of its events once.
      for (const [token, claimed] of Map.groupBy(leased, (one) => one.token)) {
        const ids = listText(claimed.map(({ event }) => event.id));
        const settled = new Set((await statements.deliver(db, { ids, token, at })).map(({ id }) => id));
        held.push(...claimed.filter(({ event }) => settled.has(event.id)));
      }
      if (held.length > 0) await noteAttempts(held, at);
      return held;
    },
    scheduleRetry: (leased, dueAt) =>
      recordAttempt(leased, { state: 'pending', reason: null, due_at: dueAt, settled_at: null }, leased.attempt.at),
    markFailed: (leased, at, reason) =>
      recordAttempt(leased, { state: 'failed', reason, due_at: null, settled_at: at }, at),

    async release({ id, accountId, inOrder }, token, dueAt) {
      const query = db.updateTable('outbox').set({ lease: null, due_at: unlessInOrder(dueAt) });
      const row = await query
        .where('id', '=', id)
        .where('lease', '=', token)
        .where(PENDING)
        .returning('id')
        .executeTakeFirst();
      if (!row) return false;
      if (inOrder) await releaseInOrder(db, accountId, dueAt);
      else await scheduleLane(db, accountId, dueAt);
      return true;
    },

    async repair(accountId, now, maxDelayMs) {
      for (const inOrder of [0, 1] as const) {
        // A settled event has no due time.
        const stray = sql<string>`(${strayEvents(sql`${accountId}`, inOrder, now, maxDelayMs)})`;
        await db
          .updateTable('outbox')
          .set({ due_at: now })
          .where('id', 'in', stray)
          .where('due_at', 'is not', null)
          .execute();
      }
    },

    async failBegunBefore(accountId, cutoff, { now, includeInOrder, limit }) {
      const inOrder = includeInOrder ? await due(accountId, now, true, limit) : [];
      const pending = [...(await due(accountId, now, false, limit)), ...inOrder];
      const old = pending.filter(({ begunAt }) => begunAt < cutoff);
      if (old.length === 0) return [];
      const failed = { state: 'failed', reason: 'receiver_down', settled_at: now, due_at: null, lease: null } as const;
      await change(old.map(({ id }) => id))
        .set({ ...failed, in_order: 0 })
        .execute();
      return old;
    },
  };
};
