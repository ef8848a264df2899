// The delivery log: keyset paging, resending, retention. A time range is a range of ids, which are ordered by time. No
// filter makes a page read more than a bounded number of rows.
import { sql } from 'kysely';
import {
  DELIVERY_LEASE_MS,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryState,
} from '../../../domain/callbacks/delivery.ts';
import type { Deliveries, DeliveryFilter } from '../../../domain/callbacks/ports.ts';
import { latestAhead } from '../../../domain/clock.ts';
import { type AccountId, firstIdAt, timeOf } from '../../../domain/ids.ts';
import type { Engine } from '../engine/engine.ts';
import { BY_ID, MAX_EXAMINED, pageWithin } from '../engine/paging.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { PENDING, scheduleLane } from './callback-lanes.ts';

const MAX_COUNTED = 100_000;
const MAX_LANES = 1_000;

const deliveryFrom = (row: Schema['outbox']): Delivery => ({
  id: row.id,
  accountId: row.account_id,
  orderId: row.order_id,
  certificateId: row.certificate_id,
  orderStatus: row.order_status,
  action: row.action,
  body: row.body,
  createdAt: row.created_at,
  state: row.state,
  reason: row.reason,
  attempts: row.attempts,
  nextAttemptAt: row.lease === null ? row.due_at : null,
  settledAt: row.settled_at,
});

const attemptFrom = (row: Schema['delivery_attempt']): DeliveryAttempt => ({
  number: row.number,
  at: row.at,
  ms: row.ms,
  httpStatus: row.http_status,
  reason: row.reason,
  excerpt: row.excerpt,
});

/** As the index on them says. Most events are delivered, or suppressed; these are found among all of an account. */
const UNSETTLED = sql.raw<boolean>("state in ('pending', 'failed')");
const isUnsettled = (state: DeliveryState | undefined) => state === 'pending' || state === 'failed';

export const deliveriesIn = (db: Db, { locksRows }: Pick<Engine, 'locksRows'>, onEvents: () => void): Deliveries => {
  /** The conditions that an index covers; the others are checked afterwards. */
  const within = (accountId: AccountId, { orderId, state, since, until }: DeliveryFilter) => {
    let query = db.selectFrom('outbox').where('account_id', '=', accountId);
    if (orderId !== undefined) query = query.where('order_id', '=', orderId);
    // Written out: only so does the planner see that the index on unsettled ones serves.
    else if (isUnsettled(state)) query = query.where(sql<boolean>`state = ${sql.lit(state)} and ${UNSETTLED}`);
    if (since !== undefined) query = query.where('id', '>=', firstIdAt(since));
    if (until !== undefined) query = query.where('id', '<', firstIdAt(until));
    return query;
  };
  const restarted = (now: number) => ({
    ...({ state: 'pending', reason: null, settled_at: null, lease: null, is_new: 0, tries: 0 } as const),
    ...{ due_at: now, begun_at: now },
  });

  return {
    async find(accountId, id) {
      const query = db.selectFrom('outbox').selectAll().where('id', '=', id).where('account_id', '=', accountId);
      const row = await (locksRows ? query.forUpdate() : query).executeTakeFirst();
      return row && deliveryFrom(row);
    },

    async list(accountId, filter, page) {
      const range = { rows: within(accountId, filter).selectAll(), key: BY_ID, isDescending: true };
      const { rows, nextAfter } = await pageWithin<Schema['outbox']>(db, range, page, (examined) => {
        let matches = examined.selectAll();
        if (filter.action !== undefined) matches = matches.where('action', '=', filter.action);
        if (filter.state !== undefined) matches = matches.where('state', '=', filter.state);
        return matches;
      });
      return { deliveries: rows.map(deliveryFrom), nextAfter };
    },

    async attemptsOf(ids) {
      const attempts = new Map<string, DeliveryAttempt[]>();
      if (ids.length === 0) return attempts;
      const query = db.selectFrom('delivery_attempt').selectAll().where('event_id', 'in', ids);
      for (const row of await query.orderBy('event_id').orderBy('number').execute()) {
        attempts.set(row.event_id, [...(attempts.get(row.event_id) ?? []), attemptFrom(row)]);
      }
      return attempts;
    },

    async heldBack(accountId, limit) {
      // A literal reason, as the index on it says.
      const rows = await within(accountId, {})
        .where(sql<boolean>`reason = 'disabled'`)
        .select('id')
        .orderBy('id')
        .limit(limit + 1)
        .execute();
      return {
        count: Math.min(rows.length, limit),
        hasMore: rows.length > limit,
        since: timeOf(rows[0]?.id ?? '') ?? null,
      };
    },

    async resend(accountId, id, now) {
      const query = db.updateTable('outbox').set({ ...restarted(now), in_order: 0 });
      const row = await query
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where(
          sql<boolean>`(state <> 'pending' or lease is null or (in_order = 0 and (due_at <= ${now} or due_at > ${latestAhead(now, DELIVERY_LEASE_MS)})))`,
        )
        .returning('id')
        .executeTakeFirst();
      if (!row) return;
      await scheduleLane(db, accountId, now);
      onEvents();
    },

    async resendRange(accountId, filter, { after, limit }, { actions, now }) {
      let examined = within(accountId, filter).orderBy('id').limit(MAX_EXAMINED).select(['id', 'action', 'state']);
      if (after !== undefined) examined = examined.where('id', '>', after);
      const rows = await (locksRows ? examined.forUpdate() : examined).execute();
      const matches = ({ action, state }: (typeof rows)[number]) =>
        (filter.action === undefined || action === filter.action) &&
        (filter.state === undefined || state === filter.state) &&
        actions.includes(action);
      const chosen = rows.filter(matches).slice(0, limit);
      if (chosen.length > 0) {
        const ids = chosen.map(({ id }) => id);
        await db
          .updateTable('outbox')
          .set({ ...restarted(now), in_order: 1 })
          .where('id', 'in', ids)
          .execute();
        await scheduleLane(db, accountId, now);
        onEvents();
      }
      const last = chosen.length === limit ? chosen.at(-1) : rows[MAX_EXAMINED - 1];
      return { resent: chosen.length, nextAfter: last?.id ?? null };
    },

    async deleteSettled(before, limit) {
      const query = db
        .selectFrom('outbox')
        .select('id')
        .where('settled_at', '<', before)
        .orderBy('settled_at')
        .limit(limit);
      const rows = await (locksRows ? query.forUpdate().skipLocked() : query).execute();
      if (rows.length === 0) return 0;
      const ids = rows.map(({ id }) => id);
      await db.deleteFrom('delivery_attempt').where('event_id', 'in', ids).execute();
      await db.deleteFrom('outbox').where('id', 'in', ids).execute();
      return ids.length;
    },

    async queueFacts() {
      const oldest = (isNew: number) =>
        db
          .selectFrom('outbox')
          .select('begun_at')
          .where('is_new', '=', isNew)
          .where(PENDING)
          .orderBy('begun_at')
          .limit(1)
          .executeTakeFirst();
      // Repeats the indexes' conditions and first columns, so that the planner uses them.
      const pending = db.selectFrom('outbox').select('id').where(PENDING).where('is_new', '>=', 0).limit(MAX_COUNTED);
      const degraded = sql<boolean>`trips > 0`;
      const lanes = db
        .selectFrom('callback_lane')
        .select('account_id as id')
        .where(degraded)
        .where('account_id', '>', '');
      const counted = (rows: typeof pending) =>
        db
          .selectFrom(rows.as('counted'))
          .select(sql<number>`cast(count(*) as bigint)`.as('count'))
          .executeTakeFirstOrThrow();
      const found = [await oldest(0), await oldest(1)].flatMap((row) => (row ? [row.begun_at] : []));
      return {
        pending: (await counted(pending)).count,
        oldestPendingAt: found.length === 0 ? null : Math.min(...found),
        degradedLanes: (await lanes.limit(MAX_LANES).execute()).length,
      };
    },

    async failedSince(since, limit) {
      const failed = sql<boolean>`state = 'failed'`;
      const query = db.selectFrom('outbox').select('id').where(failed).where('settled_at', '>=', since).limit(limit);
      return (await query.execute()).length;
    },
  };
};
