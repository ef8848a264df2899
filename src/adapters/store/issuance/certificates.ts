// Certificates, found and listed; how one comes to be signed is in certificate-signing.ts.
import type { AccountId } from '../../../domain/ids.ts';
import type { Certificates } from '../../../domain/issuance/ports.ts';
import { listFrom } from '../engine/columns.ts';
import { prepared, preparedInsert } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';
import { encryptionRowOf, publicKeyFrom, recordFrom, rowOf } from './certificate-rows.ts';
import { signingOf } from './certificate-signing.ts';
import { certificatesOnKey, voidedCertificates } from './certificates-all-accounts.ts';

const insert = preparedInsert('certificate');

const selectCurrent = prepared((db, { accountId, id }: { accountId: AccountId; id: string }) =>
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

export const certificatesIn = (db: Db): Certificates => ({
  ...signingOf(db),

  async insert(record) {
    await insert(db, rowOf(record));
    if (record.encryption) {
      await db.insertInto('encryption_certificate').values(encryptionRowOf(record, record.encryption)).execute();
    }
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
    return recordFrom(row, isRevoked ? { reason, cause, caused_by_id, due_at, revoked_at } : undefined, half);
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
      .where('state', '=', 'issued')
      .orderBy('issued_at', 'desc')
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row && (await certificatesIn(db).find(accountId, row.id));
  },

  async findReplacing(accountId, id) {
    const row = await db
      .selectFrom('certificate')
      .select('id')
      .where('replaces_id', '=', id)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row?.id;
  },

  async listLast(accountId, orderId, limit) {
    const rows = await db
      .selectFrom('certificate')
      .select(['id', 'state', 'version', 'replaces_id', 'created_at', 'issued_at'])
      .where('order_id', '=', orderId)
      .where('account_id', '=', accountId)
      .where('state', '!=', 'voided')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
    return rows.reverse().map(({ replaces_id, created_at, issued_at, ...row }) => ({
      ...row,
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
      .where('state', '=', 'issued')
      .where('not_after', '>=', now)
      .where('revocation.revoked_at', 'is', null)
      .orderBy('certificate.id')
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
      .where('state', '=', 'issued')
      .where('not_after', '>=', now)
      .where('revoked_at', 'is', null)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  },

  listOnKey: (fingerprint, page) => certificatesOnKey(db, fingerprint, page),
  listVoided: (page) => voidedCertificates(db, page),
});
