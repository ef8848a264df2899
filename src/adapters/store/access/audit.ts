// The audit log. A time range is a range of ids, which are ordered by time; a request is found by its id for the same
// reason: what it did was written down within minutes after that id was made. So no index is needed beyond the primary key
// and the one by account, and the insert of a reissue stays cheap.
import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import { actorsNamed } from '../../../domain/access/credential.ts';
import {
  type AuditEntry,
  type AuditFilter,
  type AuditSubject,
  type AuditTrail,
  CEREMONY_ACTIONS,
} from '../../../domain/access/ports.ts';
import { firstIdAt, timeOf } from '../../../domain/ids.ts';
import { MINUTE_MS } from '../../../kernel/durations.ts';
import { BY_ID, pageById, pageWithin } from '../engine/paging.ts';
import { preparedInsert } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

/** Rows read for one page. */
const MAX_EXAMINED = 20_000;
/** Longer than any request takes. */
const REQUEST_MS = 5 * MINUTE_MS;

const insert = preparedInsert('audit');

export const auditRow = ({ accountId, requestId, details, ...entry }: AuditEntry): Schema['audit'] => ({
  ...{ ...entry, account_id: accountId, request_id: requestId, details: JSON.stringify(details) },
});

const entryFrom = ({ account_id, request_id, details, ...entry }: Schema['audit']): AuditEntry => ({
  ...entry,
  accountId: account_id,
  requestId: request_id,
  details: JSON.parse(details),
});

/** The conditions that an index covers. */
function within(db: Db, { accountId, requestId, since, until }: AuditFilter) {
  let rows = db.selectFrom('audit');
  if (accountId !== undefined) rows = rows.where('account_id', '=', accountId);
  if (since !== undefined) rows = rows.where('id', '>=', firstIdAt(since));
  if (until !== undefined) rows = rows.where('id', '<', firstIdAt(until));
  if (requestId !== undefined) {
    const at = timeOf(requestId);
    rows = rows.where('id', '>', requestId).where('id', '<', firstIdAt(at === undefined ? 0 : at + REQUEST_MS));
  }
  return rows;
}

type Examined = ExpressionBuilder<Schema & { examined: Schema['audit'] }, 'examined'>;

/** Ids are unguessable and have no wildcard characters: one that occurs in the details is the one that is meant. */
const isAbout = (is: Examined, about: AuditSubject) => {
  const mentions = (id: string) => is.or([is('subject', '=', id), sql<SqlBool>`details like ${`%${id}%`}`]);
  if ('certificateId' in about) return mentions(about.certificateId);
  const { orderId: id } = about;
  return is.or([
    mentions(id),
    is('subject', 'in', (db) => db.selectFrom('certificate').select('certificate.id').where('order_id', '=', id)),
    is('subject', 'in', (db) => db.selectFrom('outbox').select('outbox.id').where('order_id', '=', id)),
  ]);
};

export const auditIn = (db: Db): AuditTrail => ({
  async append(entry) {
    await insert(db, auditRow(entry));
  },

  async listOf(accountId, page) {
    const rows = db.selectFrom('audit').selectAll().where('account_id', '=', accountId);
    return (await pageById(rows, page).execute()).map(entryFrom);
  },

  async search(filter, page) {
    const { about, requestId, actor } = filter;
    const range = { rows: within(db, filter).selectAll(), key: BY_ID, isDescending: true };
    const { rows, nextAfter } = await pageWithin<Schema['audit']>(db, { ...range, most: MAX_EXAMINED }, page, (all) => {
      let matches = all.selectAll();
      if (about) matches = matches.where((is) => isAbout(is as Examined, about));
      if (requestId !== undefined) matches = matches.where('request_id', '=', requestId);
      if (actor !== undefined) matches = matches.where('actor', 'in', actorsNamed(actor));
      return matches;
    });
    return { entries: rows.map(entryFrom), nextAfter };
  },

  async ceremonies(limit) {
    const rows = await db
      .selectFrom('audit')
      .selectAll()
      .where('account_id', 'is', null)
      .where('action', 'in', CEREMONY_ACTIONS)
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
    return rows.map(entryFrom);
  },

  async deleteBefore(before, limit) {
    const old = db
      .selectFrom('audit')
      .select('id')
      .where('id', '<', firstIdAt(before))
      .where('action', 'not in', CEREMONY_ACTIONS)
      .orderBy('id')
      .limit(limit);
    return (await db.deleteFrom('audit').where('id', 'in', old).returning('id').execute()).length;
  },
});
