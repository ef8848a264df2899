// The certificates of orders: found, listed, and taken through their states. Every look-up names the account that owns the
// certificate, except the two lists that serve the whole service.
import { sql } from 'kysely';
import type { AccountId, CertificateId, OrderId } from '../../../domain/ids.ts';
import type { Certificates } from '../../../domain/issuance/ports.ts';
import type { Page } from '../../../domain/page.ts';
import { listFrom } from '../engine/columns.ts';
import { pageById } from '../engine/paging.ts';
import { prepared, preparedInsert } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';
import { insertHalf, publicKeyFrom, recordFrom, rowOf } from './certificate-rows.ts';

/** A literal: a parameter that a partial index could depend on lets SQLite compile the statement anew each time. */
const ISSUED = sql<boolean>`state = 'issued'`;

const insert = preparedInsert('certificate');

const selectCurrent = prepared((db, { accountId, id }: { accountId: AccountId; id: CertificateId }) =>
  db
    .selectFrom('certificate')
    .select([
      'id',
      'common_name',
      'names',
      'spki',
      'key_type',
      'key_bits',
      'key_fingerprint',
      'version',
      'cloud_key_id',
    ])
    .where('id', '=', id)
    .where('account_id', '=', accountId),
);

const refs = (db: Db, page: Page) => {
  const rows = db
    .selectFrom('certificate')
    .select(['certificate.id', 'certificate.account_id', 'certificate.order_id']);
  return pageById(rows, page, 'certificate.id');
};

const refFrom = (row: { id: CertificateId; account_id: AccountId; order_id: OrderId }) => ({
  certificateId: row.id,
  accountId: row.account_id,
  orderId: row.order_id,
});

const cancellationOf = (db: Db, id: CertificateId) =>
  db.selectFrom('cancellation').select(['reason', 'at']).where('certificate_id', '=', id).executeTakeFirst();

export const certificatesIn = (db: Db): Certificates => ({
  async insert(record) {
    await insert(db, rowOf(record));
    await insertHalf(db, record);
  },

  async find(accountId, id) {
    const row = await db
      .selectFrom('certificate')
      .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
      .selectAll('certificate')
      .select(['reason', 'cause', 'caused_by_id', 'due_at', 'revoked_at'])
      .where('certificate.id', '=', id)
      .where('certificate.account_id', '=', accountId)
      .executeTakeFirst();
    if (!row) return undefined;
    const { reason, cause, caused_by_id, due_at, revoked_at } = row;
    const isRevoked = reason !== null && cause !== null && due_at !== null;
    const half = await db
      .selectFrom('encryption_certificate')
      .selectAll()
      .where('certificate_id', '=', id)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    const revocation = isRevoked ? { reason, cause, caused_by_id, due_at, revoked_at } : undefined;
    const cancellation = row.state === 'canceled' ? await cancellationOf(db, id) : undefined;
    return recordFrom(row, { revocation, half, cancellation });
  },

  async findCurrent(accountId, id) {
    const [row] = await selectCurrent(db, { accountId, id });
    return (
      row && {
        id: row.id,
        commonName: row.common_name,
        names: listFrom<string>(row.names),
        publicKey: publicKeyFrom(row),
        version: row.version ?? 0,
        cloudKeyId: row.cloud_key_id,
      }
    );
  },

  async findByCloudKey(accountId, cloudKeyId) {
    const row = await db
      .selectFrom('certificate')
      .select('id')
      .where('cloud_key_id', '=', cloudKeyId)
      .where('account_id', '=', accountId)
      .where(ISSUED)
      .orderBy('issued_at', 'desc')
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst();
    const found = row && (await certificatesIn(db).find(accountId, row.id));
    return found?.state === 'issued' ? found : undefined;
  },

  async findReplacing(accountId, id) {
    // By the version within the order: an index by what was replaced would cost every reissue.
    const row = await db
      .selectFrom('certificate as replaced')
      .innerJoin('certificate as next', 'next.order_id', 'replaced.order_id')
      .select('next.id')
      .where('replaced.id', '=', id)
      .where('replaced.account_id', '=', accountId)
      .where(sql<boolean>`next.version = replaced.version + 1`)
      .where('next.replaces_id', '=', id)
      .executeTakeFirst();
    return row?.id;
  },

  async listLast(accountId, orderId, limit) {
    const ofOrder = db
      .selectFrom('certificate')
      .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
      .select(['certificate.id', 'state', 'version', 'replaces_id', 'created_at', 'issued_at', 'revoked_at'])
      .where('order_id', '=', orderId)
      .where('certificate.account_id', '=', accountId)
      .limit(limit);
    // Two ranges of one index: an index on (order_id, id) beside that on (order_id, version) would cost every reissue.
    const issued = await ofOrder.where('version', 'is not', null).orderBy('version', 'desc').execute();
    const others = await ofOrder
      .where('version', 'is', null)
      .where('state', '!=', 'voided')
      .orderBy('certificate.id', 'desc')
      .execute();
    return [...issued, ...others]
      .sort((one, other) => (one.id < other.id ? -1 : 1))
      .slice(-limit)
      .map(({ id, version, state, revoked_at, replaces_id, created_at, issued_at }) => ({
        ...{ id, version, status: revoked_at === null ? state : 'revoked' },
        replacesId: replaces_id,
        createdAt: created_at,
        issuedAt: issued_at,
      }));
  },

  async listValid(accountId, orderId, now) {
    const rows = await db
      .selectFrom('certificate')
      .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
      .select(['certificate.id', 'certificate.names'])
      .where('order_id', '=', orderId)
      .where('certificate.account_id', '=', accountId)
      .where(ISSUED)
      .where('not_after', '>=', now)
      .where('revocation.revoked_at', 'is', null)
      .orderBy('version')
      .execute();
    return rows.map(({ id, names }) => ({ id, names: listFrom<string>(names) }));
  },

  async hasUnrevoked(accountId, orderId, now) {
    const row = await db
      .selectFrom('certificate')
      .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
      .select('certificate.id')
      .where('order_id', '=', orderId)
      .where('certificate.account_id', '=', accountId)
      .where(ISSUED)
      .where('not_after', '>=', now)
      .where('revoked_at', 'is', null)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  },

  // Across accounts: for the service's own work, when a key is compromised or a signer was lost.
  async listOnKey(fingerprint, page) {
    const signed = ['issued', 'voided'] as const;
    const own = await refs(db, page).where('key_fingerprint', '=', fingerprint).where('state', 'in', signed).execute();
    const half = await refs(db, page)
      .innerJoin('encryption_certificate', 'encryption_certificate.certificate_id', 'certificate.id')
      .innerJoin('escrowed_key', 'escrowed_key.id', 'encryption_certificate.key_id')
      .where('escrowed_key.key_fingerprint', '=', fingerprint)
      .where('state', 'in', signed)
      .execute();
    const found = new Map([...own, ...half].map((row) => [row.id, row]));
    return [...found.values()]
      .sort((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, page.limit)
      .map(refFrom);
  },

  async listVoided(page) {
    const rows = await refs(db, page)
      .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
      .where('state', '=', 'voided')
      .where('revoked_at', 'is', null)
      .execute();
    return rows.map(refFrom);
  },

  async cancel({ accountId, orderId, certificateId }, { reason, at }) {
    const canceled = await db
      .updateTable('certificate')
      .set({ state: 'canceled' })
      .where('id', '=', certificateId)
      .where('account_id', '=', accountId)
      .where('state', '=', 'pending')
      .returning('id')
      .executeTakeFirst();
    if (!canceled) return;
    const row = { certificate_id: certificateId, account_id: accountId, order_id: orderId, reason, at };
    await db.insertInto('cancellation').values(row).execute();
  },

  async lastCanceled(accountId, orderId, after) {
    const row = await db
      .selectFrom('cancellation')
      .select(['certificate_id as certificateId', 'reason', 'at'])
      .where('order_id', '=', orderId)
      .where('account_id', '=', accountId)
      .where('certificate_id', '>', after ?? '')
      .orderBy('certificate_id', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row && { certificateId: row.certificateId, reason: row.reason, at: row.at };
  },
});
