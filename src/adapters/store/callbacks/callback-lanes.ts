// Lanes: one row per account, whatever its number of pending events, so that an account with ten thousand of them costs
// the dispatcher no more than any other. Invariant: a lane is due no later than its first event. Adding or removing an
// event therefore locks the lane's row.

import { type RawBuilder, sql } from 'kysely';
import { DELIVERY_LEASE_MS, FAULTY_LANE_MS, type Lane, MAX_OPEN_MS } from '../../../domain/callbacks/delivery.ts';
import type { CallbackLanes } from '../../../domain/callbacks/ports.ts';
import { latestAhead } from '../../../domain/clock.ts';
import type { AccountId } from '../../../domain/ids.ts';
import { listText } from '../engine/columns.ts';
import { type Engine, perEngine } from '../engine/engine.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

/** Events of one lane that are examined for stray times. */
const MAX_EXAMINED = 2_000;

/** A literal, because a partial index is not used with a bound parameter. */
export const PENDING = sql<boolean>`state = 'pending'`;

const NEW_LANE = { due_at: null, failures: 0, trips: 0, closed_until: 0, ailing_since: 0, in_order_until: 0 } as const;

type StoredLane = Schema['callback_lane'] & Pick<Schema['account'], 'suspended_at'>;
export const storedLane = (row: StoredLane): Omit<Lane, 'hasInOrder'> => ({
  accountId: row.account_id,
  failures: row.failures,
  openCount: row.trips,
  openUntil: row.closed_until,
  degradedSince: row.ailing_since,
  inOrderUntil: row.in_order_until,
  isHeld: row.suspended_at !== null,
});
const laneFrom = (row: StoredLane & { has_in_order: boolean | number }): Lane => ({
  ...storedLane(row),
  hasInOrder: Boolean(row.has_in_order),
});

/** The pending events of a lane that have a due time, by one index. */
const waiting = (accountId: AccountId, inOrder: 0 | 1) => sql`select due_at from outbox
  where account_id = ${accountId} and in_order = ${sql.lit(inOrder)} and ${PENDING} and due_at is not null
  order by due_at limit 1`;

const lane = (db: Db, { accountId }: { accountId: AccountId }) =>
  db
    .selectFrom('callback_lane')
    .innerJoin('account', 'account.id', 'callback_lane.account_id')
    .selectAll('callback_lane')
    .select('suspended_at')
    .select(sql<boolean | number>`exists (${waiting(accountId, 1)})`.as('has_in_order'))
    .where('account_id', '=', accountId);
const read = prepared(lane);
const tryLock = prepared((db, of: { accountId: AccountId }) => lane(db, of).forUpdate('callback_lane').skipLocked());
const lock = prepared((db, of: { accountId: AccountId }) => lane(db, of).forUpdate('callback_lane'));

/** Of the events of a lane, the ids of those that a clock which was ahead has leased or scheduled; of the last by due time. */
export const strayEvents = (accountId: RawBuilder<unknown>, inOrder: 0 | 1, now: number, maxDelayMs: number) => {
  const ahead = sql`${latestAhead(now, 0)}`;
  return sql`select id from (select id, due_at, lease, tries, attempts from outbox
      where account_id = ${accountId} and in_order = ${sql.lit(inOrder)} and ${PENDING} and due_at > ${ahead}
      order by due_at desc limit ${sql.lit(MAX_EXAMINED)}) as examined
    where ${sql.lit(inOrder)} = 1
      or due_at > ${latestAhead(now, maxDelayMs)}
      or (lease is not null and due_at > ${latestAhead(now, DELIVERY_LEASE_MS)})
      or (lease is null and tries = 0)
      or exists (select 1 from delivery_attempt where event_id = examined.id and number = examined.attempts and at > ${ahead})`;
};

/** A lane with a stray time of its own or of an event; or one that is due long after an event that it could send. */
const isStray = (now: number, maxDelayMs: number) => {
  const own = sql`callback_lane.account_id`;
  const isDue = (inOrder: 0 | 1) => sql`exists (select 1 from outbox where account_id = ${own}
    and in_order = ${sql.lit(inOrder)} and ${PENDING} and outbox.due_at <= ${now})`;
  return sql<boolean | number>`(callback_lane.due_at > ${latestAhead(now, maxDelayMs)}
    or closed_until > ${latestAhead(now, MAX_OPEN_MS)}
    or in_order_until > ${latestAhead(now, DELIVERY_LEASE_MS)}
    or (trips > 0 and ailing_since > ${latestAhead(now, 0)})
    or exists (${strayEvents(own, 0, now, maxDelayMs)})
    or exists (${strayEvents(own, 1, now, maxDelayMs)})
    or (callback_lane.due_at > ${latestAhead(now, FAULTY_LANE_MS)} and closed_until <= ${now}
      and (select suspended_at from account where id = ${own}) is null and (${isDue(0)} or ${isDue(1)})))`;
};

const dueLanes = prepared((db, { now, limit }: { now: number; limit: number }) =>
  db.selectFrom('callback_lane').select('account_id').where('due_at', '<=', now).orderBy('due_at').limit(limit),
);
/** Due with its first event, but not before a time; an event in order waits for the one that is being sent. */
interface LaneUpdate extends Omit<Schema['callback_lane'], 'due_at'> {
  readonly not_before: number;
}
const update = prepared((db, lane: LaneUpdate) => {
  const { account_id, not_before, in_order_until } = lane;
  const atLeast = (time: RawBuilder<unknown>, least: number) =>
    sql`case when ${time} < cast(${least} as bigint) then cast(${least} as bigint) else ${time} end`;
  const first = sql`select min(at) as at from (
    select (${waiting(account_id, 0)}) as at
    union all select ${atLeast(sql`due_at`, in_order_until)} from (${waiting(account_id, 1)}) as in_order
  ) as firsts`;
  return db
    .updateTable('callback_lane')
    .set({ due_at: sql<number | null>`(select ${atLeast(sql`at`, not_before)} from (${first}) as first)` })
    .set({ failures: lane.failures, trips: lane.trips, closed_until: lane.closed_until })
    .set({ ailing_since: lane.ailing_since, in_order_until })
    .where('account_id', '=', account_id);
});
/** `accountIds` is a JSON list. */
interface Lanes {
  readonly accountIds: string;
  readonly at: number;
}
/** Of several lanes at once. */
const several = perEngine(({ json, locksRows }) => ({
  idle: prepared((db, { accountIds, at }: Lanes) => {
    const query = db
      .selectFrom('callback_lane')
      .innerJoin('account', 'account.id', 'callback_lane.account_id')
      .select('account_id')
      .where(sql<boolean>`account_id ${json.among(accountIds)}`)
      .where('suspended_at', 'is', null)
      .where(sql<boolean>`failures = 0 and trips = 0 and (due_at is null or due_at > ${at})`);
    return locksRows ? query.forUpdate('callback_lane').skipLocked() : query;
  }),
  wake: prepared((db, { accountIds, at }: Lanes) =>
    db
      .updateTable('callback_lane')
      .set({ due_at: at })
      .where(sql<boolean>`account_id ${json.among(accountIds)}`)
      .where(sql<boolean>`(due_at is null or due_at > ${at})`),
  ),
  failing: prepared((db, { accountIds }: Pick<Lanes, 'accountIds'>) =>
    db
      .selectFrom('callback_lane')
      .select('account_id')
      .where(sql<boolean>`account_id ${json.among(accountIds)}`)
      .where('failures', '>', 0),
  ),
}));
const reset = prepared((db, { accountId, now }: { accountId: AccountId; now: number }) =>
  db
    .updateTable('callback_lane')
    .set({ failures: 0, trips: 0, closed_until: 0, due_at: now })
    .where('account_id', '=', accountId)
    .where('failures', '>', 0),
);

const schedule = prepared((db, { accountId, at }: { accountId: AccountId; at: number }) =>
  db
    .insertInto('callback_lane')
    .values({ ...NEW_LANE, account_id: accountId, due_at: at })
    .onConflict((conflict) =>
      conflict.column('account_id').doUpdateSet({
        due_at: sql<number>`case when callback_lane.due_at < cast(${at} as bigint) then callback_lane.due_at
          else cast(${at} as bigint) end`,
      }),
    ),
);

/** Makes the lane due at that time, unless it is due earlier. Creates it if needed. */
export async function scheduleLane(db: Db, accountId: AccountId, at: number): Promise<void> {
  await schedule(db, { accountId, at });
}

/** Releases the lane's in-order lease, so that the next event of a range can be sent. */
export async function releaseInOrder(db: Db, accountId: AccountId, at: number): Promise<void> {
  const release = db.updateTable('callback_lane').set({ in_order_until: 0, due_at: at });
  await release.where('account_id', '=', accountId).execute();
}

export const callbackLanesIn = (db: Db, engine: Engine): CallbackLanes => ({
  async due(now, limit) {
    return (await dueLanes(db, { now, limit })).map(({ account_id }) => account_id);
  },

  async stray({ after = '', limit }, now, maxDelayMs) {
    const rows = await db
      .selectFrom('callback_lane')
      .select('account_id')
      .select(isStray(now, maxDelayMs).as('is_stray'))
      .where('account_id', '>', after)
      .orderBy('account_id')
      .limit(limit)
      .execute();
    return {
      stray: rows.filter((row) => Boolean(row.is_stray)).map(({ account_id }) => account_id),
      nextAfter: rows.length < limit ? undefined : rows.at(-1)?.account_id,
    };
  },

  async tryLock(accountId) {
    const [row] = await (engine.locksRows ? tryLock : read)(db, { accountId });
    return row && laneFrom(row);
  },

  async lock(accountId) {
    const [row] = await (engine.locksRows ? lock : read)(db, { accountId });
    if (!row) throw new Error(`the account ${accountId} has no lane`);
    return laneFrom(row);
  },

  async lockIdle(accountIds, now) {
    const rows = await several(engine).idle(db, { accountIds: listText(accountIds), at: now });
    return rows.map(({ account_id }) => account_id);
  },

  async wakeBy(accountIds, at) {
    await several(engine).wake(db, { accountIds: listText(accountIds), at });
  },

  async save({ accountId, failures, openCount, openUntil, degradedSince, inOrderUntil, notBefore }) {
    await update(db, {
      ...{ account_id: accountId, not_before: notBefore, failures, in_order_until: inOrderUntil },
      ...{ trips: openCount, closed_until: openUntil, ailing_since: degradedSince },
    });
  },

  async reset(accountIds, now) {
    const found = await several(engine).failing(db, { accountIds: listText(accountIds) });
    // Sorted, so that concurrent transactions cannot deadlock.
    const sorted = found.map(({ account_id }) => account_id).sort();
    for (const accountId of sorted) await reset(db, { accountId, now });
  },

  async restart(accountId, now) {
    await db
      .updateTable('callback_lane')
      .set({ failures: 0, trips: 0, closed_until: 0, due_at: now })
      .where('account_id', '=', accountId)
      .execute();
  },
});
