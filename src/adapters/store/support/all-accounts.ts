// Lists over all accounts, for operators. Each page reads a bounded range of an index.
import { sql } from 'kysely';
import type { Listed, Page } from '../../../domain/page.ts';
import type { AllAccounts } from '../../../domain/support/ports.ts';
import { accountFrom } from '../access/accounts.ts';
import { PENDING, storedLane } from '../callbacks/callback-lanes.ts';
import { listFrom } from '../engine/columns.ts';
import { BY_ID, pageById, pageWithin } from '../engine/paging.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { waitingFrom } from '../validation/waiting.ts';

/** Events of one lane that are counted. */
const MAX_COUNTED = 1_000;

/** What LIKE takes for itself; `!` is our escape. */
const likely = (text: string): string => `%${text.toLowerCase().replace(/[!%_]/g, '!$&')}%`;

export const allAccountsIn = (db: Db): AllAccounts => ({
  async accounts(text, page) {
    const range = { rows: db.selectFrom('account').selectAll(), key: BY_ID, isDescending: true };
    const { rows, nextAfter } = await pageWithin<Schema['account']>(db, range, page, (examined) => {
      const all = examined.selectAll('examined');
      return text === '' ? all : all.where(sql<boolean>`lower(examined.name) like ${likely(text)} escape '!'`);
    });
    return { rows: rows.map(accountFrom), nextAfter };
  },

  async waiting(page) {
    const query = db
      .selectFrom('waiting_certificate')
      .innerJoin('account', 'account.id', 'waiting_certificate.account_id')
      .innerJoin('certificate', 'certificate.id', 'waiting_certificate.certificate_id')
      .innerJoin('certificate_order', 'certificate_order.id', 'waiting_certificate.order_id')
      .selectAll('waiting_certificate')
      .select(['account.name as account_name', 'suspended_at', 'product_id', 'certificate_order.status'])
      .select(['certificate.common_name', 'certificate.names']);
    const rows = await pageById(query, page, 'waiting_certificate.certificate_id').execute();
    const listed = rows.map((row) => ({
      ...waitingFrom(row),
      accountName: row.account_name,
      isSuspended: row.suspended_at !== null,
      productId: row.product_id,
      status: row.status,
      commonName: row.common_name,
      names: listFrom<string>(row.names),
    }));
    return pageOf(listed, page, ({ certificateId }) => certificateId);
  },

  async lanes(onlyDegraded, page) {
    const pending = sql<number>`(select cast(count(*) as bigint) from (select 1 from outbox
      where outbox.account_id = callback_lane.account_id and ${PENDING} limit ${sql.lit(MAX_COUNTED)}) as counted)`;
    let query = db
      .selectFrom('callback_lane')
      .innerJoin('account', 'account.id', 'callback_lane.account_id')
      .selectAll('callback_lane')
      .select(['account.name as account_name', 'suspended_at', pending.as('pending')]);
    // Written out: only so does a planner use the partial index.
    if (onlyDegraded) query = query.where(sql<boolean>`trips > 0`);
    const rows = await pageById(query, page, 'callback_lane.account_id').execute();
    const listed = rows.map((row) => ({
      lane: storedLane(row),
      accountName: row.account_name,
      dueAt: row.due_at,
      pending: row.pending,
    }));
    return pageOf(listed, page, ({ lane }) => lane.accountId);
  },
});

/** Every row counts: a page that is not full is the last. */
const pageOf = <Row>(rows: Row[], { limit }: Page, idOf: (row: Row) => string): Listed<Row> => {
  const last = rows.at(-1);
  return { rows, nextAfter: rows.length === limit && last !== undefined ? idOf(last) : null };
};
