// Orders, found only through the account that owns them.
import { sql } from 'kysely';
import type { Order } from '../../../domain/certificate/order.ts';
import type { SubjectFields } from '../../../domain/certificate/subject.ts';
import { Refusal } from '../../../domain/errors.ts';
import { termsOf } from '../../../domain/issuance/inventory.ts';
import type { OrderRef, Orders } from '../../../domain/issuance/ports.ts';
import type { PreviousCertificate } from '../../../domain/issuance/request.ts';
import type { Proof } from '../../../domain/validation/ports.ts';
import { usageFrom } from '../access/accounts.ts';
import { assigned, listFrom, listText } from '../engine/columns.ts';
import { type Engine, perEngine } from '../engine/engine.ts';
import { prepared, statement } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { publicKeyFrom } from './certificate-rows.ts';

type Row = Schema['certificate_order'];

export const orderFrom = (row: Row): Order => ({
  id: row.id,
  accountId: row.account_id,
  productId: row.product_id,
  alternativeId: row.alternative_id,
  status: row.status,
  commonName: row.common_name,
  names: listFrom<string>(row.names),
  subject: row.subject === null ? null : (JSON.parse(row.subject) as SubjectFields),
  dcvMethod: row.dcv_method,
  dcvScope: row.dcv_scope,
  persistUntil: row.persist_until,
  persistPolicy: row.persist_policy,
  currentCertificateId: row.current_certificate_id,
  pendingCertificateId: row.pending_certificate_id,
  termEndsAt: row.term_ends_at,
  createdAt: row.created_at,
  revision: row.revision,
});

type JoinedRow = Awaited<ReturnType<ReturnType<typeof selectForReissue>>>[number];

function currentFrom(row: JoinedRow): PreviousCertificate | null {
  const { current_id: id, current_names: names, spki, key_type, key_bits, key_fingerprint } = row;
  if (id === null || names === null || spki === null) return null;
  if (key_type === null || key_bits === null || key_fingerprint === null) return null;
  return {
    id,
    commonName: row.current_common_name,
    names: listFrom<string>(names),
    publicKey: publicKeyFrom({ spki, key_type, key_bits, key_fingerprint }),
    version: row.version ?? 0,
    cloudKeyId: row.cloud_key_id,
  };
}

/** The mutable columns of an order. */
const changeable = (order: Order) => ({
  status: order.status,
  common_name: order.commonName,
  names: listText(order.names),
  dcv_method: order.dcvMethod,
  dcv_scope: order.dcvScope,
  persist_until: order.persistUntil,
  persist_policy: order.persistPolicy,
  current_certificate_id: order.currentCertificateId,
  pending_certificate_id: order.pendingCertificateId,
});
type Changeable = ReturnType<typeof changeable>;
type Owned = Pick<Row, 'id' | 'account_id'>;

const owned = (db: Db, { id, account_id }: Owned) =>
  db.selectFrom('certificate_order').selectAll().where('id', '=', id).where('account_id', '=', account_id);
const select = prepared(owned);
/** Named one by one: so their rows are cheaper to read. */
const COLUMNS = [
  ...(['o.id', 'o.account_id', 'o.product_id', 'o.alternative_id', 'o.status', 'o.common_name', 'o.names'] as const),
  ...(['o.subject', 'o.dcv_method', 'o.dcv_scope', 'o.persist_until', 'o.persist_policy'] as const),
  ...([
    'o.current_certificate_id',
    'o.pending_certificate_id',
    'o.term_ends_at',
    'o.created_at',
    'o.revision',
  ] as const),
];
interface ForReissue extends Owned {
  /** A JSON list. */
  readonly proof_names: string;
}
const selectForReissue = perEngine(({ json }) =>
  prepared((db, { id, account_id, proof_names }: ForReissue) =>
    db
      .selectFrom('certificate_order as o')
      .innerJoin('account as a', 'a.id', 'o.account_id')
      .leftJoin('certificate as c', (join) =>
        join.onRef('c.id', '=', 'o.current_certificate_id').onRef('c.account_id', '=', 'o.account_id'),
      )
      .select(COLUMNS)
      .select([
        'c.id as current_id',
        'c.common_name as current_common_name',
        'c.names as current_names',
        'c.spki',
        'c.key_type',
        'c.key_bits',
        'c.key_fingerprint',
        'c.version',
        'c.cloud_key_id',
        'a.open_orders_limit',
        'a.stored_bytes_limit',
        'a.stored_bytes',
        sql<string | null>`(select ${json.rows(['d.name', 'd.method', 'd.validated_at'])} from domain_authorization d
          where d.account_id = o.account_id and d.name in
            (${json.values(proof_names)} union all ${json.values(sql.ref('c.names'))}))`.as('proofs'),
      ])
      .where('o.id', '=', id)
      .where('o.account_id', '=', account_id),
  ),
);

/** JSON in PostgreSQL has neither NUL nor unpaired surrogates. Names of requests may; no proof has such a name. */
const isJsonText = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** By name, from the list of lists that the statement returns. */
function proofsFrom(text: string | null): Map<string, Proof[]> {
  const byName = new Map<string, Proof[]>();
  for (const [name, method, validatedAt] of listFrom<[string, string, number]>(text ?? '[]')) {
    const proof = { method, validatedAt };
    const known = byName.get(name);
    if (known) known.push(proof);
    else byName.set(name, [proof]);
  }
  return byName;
}
const selectForUpdate = prepared((db, row: Owned) => owned(db, row).forUpdate());

const selectSigning = prepared((db, { id }: Pick<Row, 'id'>) =>
  db.selectFrom('signing').select(['certificate_id', 'lease_ends_at']).where('order_id', '=', id),
);

const CHANGEABLE = [
  'status',
  'common_name',
  'names',
  'dcv_method',
  'dcv_scope',
  'persist_until',
  'persist_policy',
  'current_certificate_id',
  'pending_certificate_id',
] as const satisfies (keyof Changeable)[];

export type SavedOrder = Changeable & Owned & { revision: number; next_revision: number };
export const saving = (row: SavedOrder, from = sql``) => sql`update certificate_order
  set ${assigned(CHANGEABLE, row)}, revision = ${row.next_revision} ${from}
  where id = ${row.id} and account_id = ${row.account_id} and revision = ${row.revision}`;
const save = prepared((db, row: SavedOrder) => statement(db, sql`${saving(row)} returning id`));
export const savedRow = (order: Order): SavedOrder => ({
  ...changeable(order),
  id: order.id,
  account_id: order.accountId,
  revision: order.revision,
  next_revision: order.revision + 1,
});

async function rememberNames(db: Db, { id, accountId }: OrderRef, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const terms = new Set(names.flatMap(termsOf));
  await db
    .insertInto('order_name')
    .values([...terms].map((name) => ({ name, order_id: id, owner_id: accountId })))
    // An instance of the version before has written the name alone.
    .onConflict((conflict) => conflict.columns(['name', 'order_id']).doUpdateSet({ owner_id: accountId }))
    .execute();
}

export const ordersIn = (db: Db, engine: Engine): Orders => {
  return {
    async insert(order) {
      const inserted = await db
        .insertInto('certificate_order')
        .values({
          id: order.id,
          account_id: order.accountId,
          product_id: order.productId,
          alternative_id: order.alternativeId,
          ...changeable(order),
          subject: order.subject && JSON.stringify(order.subject),
          term_ends_at: order.termEndsAt,
          created_at: order.createdAt,
          revision: order.revision,
        })
        .onConflict((conflict) =>
          conflict.columns(['account_id', 'alternative_id']).where('alternative_id', 'is not', null).doNothing(),
        )
        .returning('id')
        .executeTakeFirst();
      if (!inserted) throw new Refusal('duplicate_alternative_order_id');
      const { commonName, names } = order;
      await rememberNames(db, order, commonName === null ? names : [...names, commonName]);
    },

    rememberNames: (order, names) => rememberNames(db, order, names),

    async completeNames(limit) {
      const rows = await db
        .selectFrom('order_name')
        .innerJoin('certificate_order', 'certificate_order.id', 'order_name.order_id')
        .select(['order_name.name', 'certificate_order.id', 'certificate_order.account_id as accountId'])
        .where('owner_id', 'is', null)
        .limit(limit)
        .execute();
      for (const { name, ...order } of rows) await rememberNames(db, order, [name]);
      return rows.length;
    },

    async findByAlternative(accountId, alternativeId) {
      const row = await db
        .selectFrom('certificate_order')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('alternative_id', '=', alternativeId)
        .executeTakeFirst();
      return row && orderFrom(row);
    },

    async find(accountId, id) {
      const [row] = await select(db, { id, account_id: accountId });
      return row && orderFrom(row);
    },

    async findForReissue(accountId, id, proofNames) {
      const proof_names = listText(proofNames.filter(isJsonText));
      const [row] = await selectForReissue(engine)(db, { id, account_id: accountId, proof_names });
      if (!row) return undefined;
      const [order, current, proofs] = [orderFrom(row), currentFrom(row), proofsFrom(row.proofs)];
      return { order, current, proofs, usage: usageFrom(row) };
    },

    async findForUpdate(accountId, id) {
      const [row] = await (engine.locksRows ? selectForUpdate : select)(db, { id, account_id: accountId });
      if (!row) return undefined;
      // A second statement: the first would show what was there before it waited for the lock.
      const [signing] = await selectSigning(db, { id });
      return {
        order: orderFrom(row),
        signing: signing ? { certificateId: signing.certificate_id, until: signing.lease_ends_at } : null,
      };
    },

    async save(order) {
      const [saved] = await save(db, savedRow(order));
      if (!saved) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    },

    async releaseAlternative(accountId, id) {
      await db
        .updateTable('certificate_order')
        .set({ alternative_id: null })
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .execute();
    },
  };
};
