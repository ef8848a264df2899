// Lists over all accounts, for operators. Each page reads a bounded range of an index.
import { sql } from 'kysely';
import type { Listed, Page } from '../../../domain/page.ts';
import type { AllAccounts } from '../../../domain/support/ports.ts';
import { accountFrom } from '../access/accounts.ts';
import { PENDING, storedLane } from '../callbacks/callback-lanes.ts';
import { listFrom } from '../engine/columns.ts';
import { type AnySelect, BY_ID, pageById, pageWithin } from '../engine/paging.ts';
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
    const rows = await examined(db, db.selectFrom('waiting_certificate').selectAll(), page, 'certificate_id')
      .leftJoin('account', 'account.id', 'examined.account_id')
      .leftJoin('certificate', 'certificate.id', 'examined.certificate_id')
      .leftJoin('certificate_order', 'certificate_order.id', 'examined.order_id')
      .selectAll('examined')
      .select(['account.name as account_name', 'suspended_at', 'product_id', 'certificate_order.status'])
      .select(['certificate.common_name', 'certificate.names'])
      .execute();
    const listed = (rows as WaitingRow[]).map((row) => ({
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
      where outbox.account_id = examined.account_id and ${PENDING} limit ${sql.lit(MAX_COUNTED)}) as counted)`;
    const lanes = db.selectFrom('callback_lane').selectAll();
    // Written out: only so does a planner use the partial index.
    const wanted = onlyDegraded ? lanes.where(sql<boolean>`trips > 0`) : lanes;
    const rows = await examined(db, wanted, page, 'account_id')
      .selectAll('examined')
      .select([ofAccount('name').as('account_name'), ofAccount('suspended_at').as('suspended_at')])
      .select(pending.as('pending'))
      .execute();
    const listed = (rows as LaneRow[]).map((row) => ({
      lane: storedLane(row),
      accountName: row.account_name,
      dueAt: row.due_at,
      pending: row.pending,
    }));
    return pageOf(listed, page, ({ lane }) => lane.accountId);
  },
});

const ofAccount = (column: 'name' | 'suspended_at') =>
  sql`(select ${sql.ref(column)} from account where account.id = examined.account_id)`;

type OfAccount = { readonly account_name: string } & Pick<Schema['account'], 'suspended_at'>;
type WaitingRow = Schema['waiting_certificate'] &
  OfAccount &
  Pick<Schema['certificate_order'], 'product_id' | 'status'> &
  Pick<Schema['certificate'], 'common_name' | 'names'>;
type LaneRow = Schema['callback_lane'] & OfAccount & { readonly pending: number };

/** The page, to which further columns are joined: a planner that joins first may read and sort all there is. */
const examined = (db: Db, rows: AnySelect, page: Page, column: string): AnySelect =>
  (db as unknown as { selectFrom(from: unknown): AnySelect })
    .selectFrom(pageById(rows, page, column).as('examined'))
    .orderBy(`examined.${column}`);

/** Every row counts: a page that is not full is the last. */
const pageOf = <Row>(rows: Row[], { limit }: Page, idOf: (row: Row) => string): Listed<Row> => {
  const last = rows.at(-1);
  return { rows, nextAfter: rows.length === limit && last !== undefined ? idOf(last) : null };
};
