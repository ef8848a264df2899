// Orders and certificates of an account, by what is known of them. The most selective filter chooses the index that is read,
// and with it the order of the list; the others are checked on what it yields, on a bounded number of rows per page.
import { type JoinBuilder, type RawBuilder, sql } from 'kysely';
import type { RevocationReason } from '../../../domain/certificate/certificate.ts';
import type { AccountId } from '../../../domain/ids.ts';
import {
  type CertificateEntry,
  type CertificateFilter,
  type Inventory,
  isNameText,
  type OrderFilter,
  suffixTerm,
} from '../../../domain/issuance/inventory.ts';
import { listFrom } from '../engine/columns.ts';
import { type AnySelect, pageWithin, type Range } from '../engine/paging.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { orderFrom } from './orders.ts';

type Filter = OrderFilter | CertificateFilter;

const termOf = ({ name, nameSuffix }: Filter): string | undefined =>
  name ?? (nameSuffix === undefined ? undefined : suffixTerm(nameSuffix));

const hasEnd = ({ expiresAfter, expiresBefore }: Filter) => expiresAfter !== undefined || expiresBefore !== undefined;

/** Rows examined for one page. SQLite answers synchronously: what one account asks for must not hold up the others. */
const MOST = 1_000;

/** As the indexes on them say. */
const ISSUED = sql<boolean>`certificate.version is not null`;
const UNISSUED = sql<boolean>`certificate.version is null`;

/** The certificate with this serial number, or the one whose encryption half has it. */
const withSerial = (db: Db, accountId: AccountId, serial: string) => {
  const own = db.selectFrom('certificate').select('id').where('serial', '=', serial);
  const half = db.selectFrom('encryption_certificate').select('certificate_id as id').where('serial', '=', serial);
  return own
    .where('account_id', '=', accountId)
    .unionAll(half.where('account_id', '=', accountId))
    .limit(1);
};

const byName = (db: Db, accountId: AccountId, term: string) =>
  db.selectFrom('order_name').where('order_name.owner_id', '=', accountId).where('order_name.name', '=', term);

const ordersOf = (db: Db, accountId: AccountId) =>
  db.selectFrom('certificate_order').where('certificate_order.account_id', '=', accountId);

const certificatesOf = (db: Db, accountId: AccountId) =>
  db.selectFrom('certificate').select('certificate.id').where('certificate.account_id', '=', accountId);

const ends = ({ expiresAfter, expiresBefore }: Filter) => {
  const from = expiresAfter === undefined ? sql`` : sql`and certificate.not_after >= ${expiresAfter}`;
  const until = expiresBefore === undefined ? sql`` : sql`and certificate.not_after < ${expiresBefore}`;
  return sql<boolean>`certificate.not_after is not null ${from} ${until}`;
};

const byEnd = (db: Db, accountId: AccountId, filter: Filter): Range => ({
  rows: certificatesOf(db, accountId).select(['not_after', 'order_id']).where(ISSUED).where(ends(filter)),
  key: [
    ['not_after', 'certificate.not_after', Number],
    ['id', 'certificate.id', String],
  ],
});

const statusOf = ({ status, isRevoked }: OrderFilter) => status ?? (isRevoked ? 'revoked' : undefined);

/** Whether the orders are read by the end of their certificates: no other filter leaves fewer. */
const isByEnd = (filter: OrderFilter): boolean =>
  hasEnd(filter) &&
  filter.serial === undefined &&
  termOf(filter) === undefined &&
  (statusOf(filter) ?? 'issued') === 'issued';

function orderRange(db: Db, accountId: AccountId, filter: OrderFilter): Range {
  const { serial, product } = filter;
  const own = ordersOf(db, accountId).select('certificate_order.id as order_id');
  const key = [['order_id', 'certificate_order.id', String]] as const;
  if (serial !== undefined) {
    const certificate = withSerial(db, accountId, serial);
    const found = db.selectFrom('certificate').select('order_id').where('certificate.id', '=', certificate);
    return { rows: own.where('certificate_order.id', '=', found), key };
  }
  const term = termOf(filter);
  if (term !== undefined) {
    return { rows: byName(db, accountId, term).select('order_id'), key: [['order_id', 'order_name.order_id', String]] };
  }
  const status = statusOf(filter);
  if (status !== undefined && status !== 'issued') {
    // Written out: only so does a planner see that the index on orders that are not issued serves.
    const written = sql<boolean>`certificate_order.status = ${sql.lit(status)} and certificate_order.status <> 'issued'`;
    return { rows: own.where(written), key };
  }
  if (isByEnd(filter)) return byEnd(db, accountId, filter);
  if (product !== undefined) return { rows: own.where('product_id', '=', product), key };
  return { rows: own, key };
}

function certificateRange(db: Db, accountId: AccountId, filter: CertificateFilter): Range {
  const { serial, status, product } = filter;
  const isUnissued = status === 'pending' || status === 'canceled';
  const wanted = isUnissued ? UNISSUED : ISSUED;
  const own = certificatesOf(db, accountId).where(wanted);
  const byId = [['id', 'certificate.id', String]] as const;
  /** One order after the other. */
  const within = (orders: AnySelect, orderId: string): Range => ({
    rows: orders
      .innerJoin('certificate', 'certificate.order_id', orderId)
      .select([`${orderId} as order_id`, 'certificate.version', 'certificate.id'])
      .where(wanted),
    key: [['order_id', orderId, String], isUnissued ? byId[0] : ['version', 'certificate.version', Number]],
  });
  if (serial !== undefined) return { rows: own.where('id', '=', withSerial(db, accountId, serial)), key: byId };
  const term = termOf(filter);
  if (term !== undefined) return within(byName(db, accountId, term), 'order_name.order_id');
  if (isUnissued) return { rows: own, key: byId };
  if (hasEnd(filter)) return byEnd(db, accountId, filter);
  if (status === 'revoked' || filter.isRevoked) {
    const revoked = db.selectFrom('revocation').select('certificate_id as id').where('account_id', '=', accountId);
    return { rows: revoked.where('revoked_at', 'is not', null), key: [['id', 'revocation.certificate_id', String]] };
  }
  if (product !== undefined) {
    return within(ordersOf(db, accountId).where('product_id', '=', product), 'certificate_order.id');
  }
  return byEnd(db, accountId, filter);
}

type Condition = RawBuilder<boolean>;
const no = (condition: Condition): Condition => sql`not (${condition})`;

/** Names are stored as a JSON list, and no DNS name or address has a character that JSON or LIKE escapes. */
function namesMatch({ name, nameSuffix }: Filter, table: 'certificate' | 'certificate_order'): Condition[] {
  const [own, list] = [sql.ref(`${table}.common_name`), sql.ref(`${table}.names`)];
  const conditions: Condition[] = [];
  if (name !== undefined) {
    const isListed = isNameText(name) ? sql`or ${list} like ${`%"${name}"%`}` : sql``;
    conditions.push(sql`(${own} = ${name} ${isListed})`);
  }
  if (nameSuffix !== undefined) {
    const [itself, below] = [`%"${nameSuffix}"%`, `%.${nameSuffix}"%`];
    conditions.push(
      sql`(${list} like ${itself} or ${list} like ${below} or ${own} = ${nameSuffix} or ${own} like ${`%.${nameSuffix}`})`,
    );
  }
  return conditions;
}

const IS_REVOKED: Condition = sql`revocation.revoked_at is not null`;

/** Every filter, whichever of them chose the range. */
function orderConditions({ status, product, isRevoked, ...filter }: OrderFilter): Condition[] {
  const orderIsRevoked: Condition = sql`certificate_order.status = 'revoked'`;
  return [
    ...namesMatch(filter, 'certificate_order'),
    ...(product === undefined ? [] : [sql<boolean>`certificate_order.product_id = ${product}`]),
    ...(status === undefined ? [] : [sql<boolean>`certificate_order.status = ${status}`]),
    ...(isRevoked === undefined ? [] : [isRevoked ? orderIsRevoked : no(orderIsRevoked)]),
    ...(hasEnd(filter) ? [ends(filter)] : []),
  ];
}

function certificateConditions({ status, product, isRevoked, ...filter }: CertificateFilter): Condition[] {
  const state = status === 'revoked' ? 'issued' : status;
  const mustBeRevoked = status === 'revoked' ? true : status === 'issued' ? false : undefined;
  return [
    ...namesMatch(filter, 'certificate'),
    ...(product === undefined ? [] : [sql<boolean>`certificate_order.product_id = ${product}`]),
    ...(state === undefined ? [] : [sql<boolean>`certificate.state = ${sql.lit(state)}`]),
    ...[mustBeRevoked, isRevoked].flatMap((is) => (is === undefined ? [] : [is ? IS_REVOKED : no(IS_REVOKED)])),
    ...(hasEnd(filter) ? [ends(filter)] : []),
    // A voided one may be revoked, and was answered to no caller.
    sql`certificate.state <> 'voided'`,
  ];
}

const whereAll = <Row>(rows: AnySelect<Row>, conditions: readonly Condition[]): AnySelect<Row> =>
  conditions.reduce((query, condition) => query.where(condition), rows);

type EntryRow = Pick<
  Schema['certificate'],
  'id' | 'order_id' | 'state' | 'common_name' | 'names' | 'serial' | 'not_before' | 'not_after' | 'version'
> &
  Pick<Schema['certificate_order'], 'product_id' | 'current_certificate_id'> & {
    readonly revoked_at: number | null;
    readonly reason: RevocationReason | null;
  };

const entryFrom = (row: EntryRow): CertificateEntry => ({
  id: row.id,
  orderId: row.order_id,
  productId: row.product_id,
  status: row.revoked_at === null ? (row.state as CertificateEntry['status']) : 'revoked',
  commonName: row.common_name,
  names: listFrom<string>(row.names),
  serial: row.serial,
  notBefore: row.not_before,
  notAfter: row.not_after,
  version: row.version,
  isCurrent: row.current_certificate_id === row.id,
  revokedAt: row.revoked_at,
  revocationReason: row.revoked_at === null ? null : row.reason,
});

export const inventoryIn = (db: Db): Inventory => ({
  async orders(accountId, filter, page) {
    const listed = await pageWithin<Schema['certificate_order']>(
      db,
      { ...orderRange(db, accountId, filter), most: MOST },
      page,
      (examined) => {
        const orders = examined
          .innerJoin('certificate_order', 'certificate_order.id', 'examined.order_id')
          .selectAll('certificate_order')
          .where('certificate_order.account_id', '=', accountId);
        const withEnd = orders.innerJoin('certificate', 'certificate.id', 'certificate_order.current_certificate_id');
        // By the end a range has every certificate, and an order is listed where its current one stands.
        const current = isByEnd(filter) ? withEnd.whereRef('certificate.id', '=', 'examined.id') : withEnd;
        return whereAll(hasEnd(filter) ? current : orders, orderConditions(filter));
      },
    );
    return { ...listed, rows: listed.rows.map(orderFrom) };
  },

  async certificates(accountId, filter, page) {
    const listed = await pageWithin<EntryRow>(
      db,
      { ...certificateRange(db, accountId, filter), most: MOST },
      page,
      (examined) =>
        whereAll(
          examined
            .innerJoin('certificate', 'certificate.id', 'examined.id')
            .innerJoin('certificate_order', 'certificate_order.id', 'certificate.order_id')
            .leftJoin('revocation', (join: JoinBuilder<Schema, 'certificate' | 'revocation'>) =>
              join
                .onRef('revocation.certificate_id', '=', 'certificate.id')
                .on('revocation.account_id', '=', accountId),
            )
            .select(['certificate.id', 'certificate.order_id', 'certificate.state', 'certificate.common_name'])
            .select([
              'certificate.names',
              'certificate.serial',
              'certificate.not_before',
              'certificate.not_after',
              'certificate.version',
            ])
            .select(['product_id', 'current_certificate_id', 'revoked_at', 'reason'])
            .where('certificate.account_id', '=', accountId),
          certificateConditions(filter),
        ),
    );
    return { ...listed, rows: listed.rows.map(entryFrom) };
  },
});
