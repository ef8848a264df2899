// Queue of certificates that wait for domain validation. Claiming reads only due rows, through an index on due_at.
import { sql } from 'kysely';
import { latestAhead } from '../../../domain/clock.ts';
import { CHECK_LEASE_MS, HELD_CHECK_MS, maxCheckDelay } from '../../../domain/validation/check-result.ts';
import type { WaitingCertificate, WaitingCertificates } from '../../../domain/validation/ports.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Schema } from '../engine/schema.ts';

type Row = Schema['waiting_certificate'];

export const waitingFrom = (row: Row): WaitingCertificate => ({
  certificateId: row.certificate_id,
  accountId: row.account_id,
  orderId: row.order_id,
  dueAt: row.due_at,
  tries: row.tries,
  expiresAt: row.expires_at,
  findings: JSON.parse(row.findings) as WaitingCertificate['findings'],
});

/** The backoff of a check does not grow after so many. */
const GROWING_TRIES = 10;
const maxDelay = sql<number>`case tries ${sql.join(
  Array.from(
    { length: GROWING_TRIES },
    (_, tries) => sql`when ${sql.lit(tries)} then ${sql.lit(maxCheckDelay(tries))}`,
  ),
  sql` `,
)} else ${sql.lit(maxCheckDelay(GROWING_TRIES))} end`;

export const waitingIn = (db: Db, engine: Pick<Engine, 'locksRows'>): WaitingCertificates => ({
  async insert({ certificateId, accountId, orderId, dueAt, tries, expiresAt, findings }) {
    await db
      .insertInto('waiting_certificate')
      .values({
        certificate_id: certificateId,
        account_id: accountId,
        order_id: orderId,
        due_at: dueAt,
        tries,
        expires_at: expiresAt,
        findings: JSON.stringify(findings),
      })
      .execute();
  },

  async find(accountId, certificateId) {
    const row = await db
      .selectFrom('waiting_certificate')
      .selectAll()
      .where('certificate_id', '=', certificateId)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row && waitingFrom(row);
  },

  async count(accountId, most) {
    const rows = db.selectFrom('waiting_certificate').select('account_id').where('account_id', '=', accountId);
    // Those that wait for their CSR. A literal, so that a planner sees the condition of the partial index.
    const open = db.selectFrom('acme_order').select('account_id').where('account_id', '=', accountId);
    const both = rows.unionAll(open.where(sql<boolean>`is_open = 1`));
    const count = sql<number>`cast(count(*) as bigint)`.as('count');
    return (await db.selectFrom(both.limit(most).as('counted')).select(count).executeTakeFirstOrThrow()).count;
  },

  async claim(now, leaseUntil, limit, except = []) {
    const ofAny = db.selectFrom('waiting_certificate').select('certificate_id').where('due_at', '<=', now);
    const ofOthers = except.length === 0 ? ofAny : ofAny.where('account_id', 'not in', except);
    const due = ofOthers.orderBy('due_at').limit(limit);
    const rows = await db
      // SKIP LOCKED gives concurrent workers different rows. A CTE, because PostgreSQL may re-run a subquery with LIMIT
      // for each updated row.
      .with('due', () => (engine.locksRows ? due.forUpdate().skipLocked() : due))
      .updateTable('waiting_certificate')
      .set({ due_at: leaseUntil })
      .where('certificate_id', 'in', (from) => from.selectFrom('due').select('due.certificate_id'))
      .returningAll()
      .execute();
    return rows.map(waitingFrom);
  },

  async update({ certificateId, accountId, dueAt, tries, findings }, seenDueAt) {
    let changing = db
      .updateTable('waiting_certificate')
      .set({ due_at: dueAt, tries, findings: JSON.stringify(findings) })
      .where('certificate_id', '=', certificateId)
      .where('account_id', '=', accountId);
    if (seenDueAt !== undefined) changing = changing.where('due_at', '=', seenDueAt);
    await changing.execute();
  },

  async makeDue(accountId, now) {
    const change = db.updateTable('waiting_certificate').set({ due_at: now });
    await change.where('account_id', '=', accountId).where('due_at', '>', now).execute();
  },

  async repair(now) {
    const isHeld = sql<boolean>`exists (select 1 from account where account.id = waiting_certificate.account_id
      and suspended_at is not null)`;
    const rows = await db
      .updateTable('waiting_certificate')
      .set({ due_at: now })
      // The first condition is the index's.
      .where('due_at', '>', latestAhead(now, CHECK_LEASE_MS))
      .where(sql<boolean>`due_at - ${maxDelay} > ${latestAhead(now, 0)}`)
      .where((is) => is.or([is('due_at', '>', latestAhead(now, HELD_CHECK_MS)), is.not(isHeld)]))
      .returning('certificate_id')
      .execute();
    return rows.length;
  },

  async delete(accountId, certificateId) {
    await db
      .deleteFrom('waiting_certificate')
      .where('certificate_id', '=', certificateId)
      .where('account_id', '=', accountId)
      .execute();
  },
});
