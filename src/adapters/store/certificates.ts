// Certificates, from the wish to the signed bytes.
import type { Certificates } from '../../domain/issuance-ports.ts';
import type { CertificateRecord, PlannedRevocation, Preparation, Revocation } from '../../domain/order.ts';
import type { PublicKey } from '../../domain/public-key.ts';
import { bytesFrom, listFrom, listText, textOf } from './columns.ts';
import { prepared, preparedInsert } from './prepared.ts';
import type { Db, Schema } from './schema.ts';

type Row = Schema['certificate'];
type RevocationRow = Pick<Schema['revocation'], 'reason' | 'cause' | 'caused_by_id' | 'due_at' | 'revoked_at'>;

const recordFrom = (row: Row, revocation: RevocationRow | undefined): CertificateRecord => ({
  id: row.id,
  orderId: row.order_id,
  accountId: row.account_id,
  state: row.state,
  createdAt: row.created_at,
  pendingSince: row.pending_since,
  commonName: row.common_name,
  names: listFrom<string>(row.names),
  csr: row.csr,
  publicKey: publicKeyFrom(row),
  signHash: row.sign_hash,
  validityDays: row.validity_days,
  customExpirationDate: row.custom_expiration_date,
  willRevoke: listFrom<PlannedRevocation>(row.will_revoke),
  preparation: preparationFrom(row),
  der: row.der === null ? null : bytesFrom(row.der),
  issuedAt: row.issued_at,
  version: row.version,
  replacesId: row.replaces_id,
  revocation: revocation ? revocationFrom(revocation) : null,
});

const publicKeyFrom = (row: Pick<Row, 'key_type' | 'key_bits' | 'spki' | 'key_fingerprint'>): PublicKey => ({
  type: row.key_type,
  bits: row.key_bits,
  spki: bytesFrom(row.spki),
  fingerprint: row.key_fingerprint,
});

/** All of it is written in one statement, so one column tells for the rest. */
function preparationFrom(row: Row): Preparation | null {
  if (row.serial === null) return null;
  return {
    issuerId: row.issuer_id!,
    serial: row.serial,
    notBefore: row.not_before!,
    notAfter: row.not_after!,
    toBeSigned: row.to_be_signed === null ? null : bytesFrom(row.to_be_signed),
    preparedAt: row.prepared_at!,
    leaseEndsAt: row.lease_ends_at!,
  };
}

const revocationFrom = (row: RevocationRow): Revocation => ({
  reason: row.reason,
  cause: row.cause,
  causedById: row.caused_by_id,
  dueAt: row.due_at,
  revokedAt: row.revoked_at,
});

const rowOf = (record: CertificateRecord): Row => ({
  id: record.id,
  account_id: record.accountId,
  order_id: record.orderId,
  state: record.state,
  created_at: record.createdAt,
  pending_since: record.pendingSince,
  common_name: record.commonName,
  names: listText(record.names),
  csr: record.csr,
  spki: textOf(record.publicKey.spki),
  key_type: record.publicKey.type,
  key_bits: record.publicKey.bits,
  key_fingerprint: record.publicKey.fingerprint,
  sign_hash: record.signHash,
  validity_days: record.validityDays,
  custom_expiration_date: record.customExpirationDate,
  will_revoke: listText(record.willRevoke),
  issuer_id: record.preparation?.issuerId ?? null,
  serial: record.preparation?.serial ?? null,
  not_before: record.preparation?.notBefore ?? null,
  not_after: record.preparation?.notAfter ?? null,
  to_be_signed: record.preparation?.toBeSigned ? textOf(record.preparation.toBeSigned) : null,
  prepared_at: record.preparation?.preparedAt ?? null,
  lease_ends_at: record.preparation?.leaseEndsAt ?? null,
  der: record.der && textOf(record.der),
  issued_at: record.issuedAt,
  version: record.version,
  replaces_id: record.replacesId,
});

const insert = preparedInsert('certificate');

const selectCurrent = prepared((db, { accountId, id }: { accountId: string; id: string }) =>
  db
    .selectFrom('certificate')
    .select(['id', 'common_name', 'names', 'spki', 'key_type', 'key_bits', 'key_fingerprint', 'version'])
    .where('id', '=', id)
    .where('account_id', '=', accountId),
);

type Issued = Pick<CertificateRecord, 'id' | 'issuedAt' | 'version' | 'replacesId'> & { der: string | null };
const issue = prepared((db, { id, der, issuedAt, version, replacesId }: Issued) =>
  db
    .updateTable('certificate')
    // The certificate contains the bytes to be signed from now on.
    .set({ state: 'issued', der, to_be_signed: null, issued_at: issuedAt, version, replaces_id: replacesId })
    .where('id', '=', id)
    .where('state', '=', 'prepared')
    .returning('id'),
);

export const certificatesIn = (db: Db): Certificates => ({
  async insert(record) {
    await insert(db, rowOf(record));
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
    return recordFrom(row, isRevoked ? { reason, cause, caused_by_id, due_at, revoked_at } : undefined);
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
      }
    );
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

  async listOf(accountId, orderId, { after = '', limit }) {
    const rows = await db
      .selectFrom('certificate')
      .select(['id', 'state', 'version', 'replaces_id', 'created_at', 'issued_at'])
      .where('order_id', '=', orderId)
      .where('account_id', '=', accountId)
      .where('id', '>', after)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map(({ replaces_id, created_at, issued_at, ...row }) => ({
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
      .where('revocation.certificate_id', 'is', null)
      .orderBy('certificate.id')
      .execute();
    return rows.map(({ id, names }) => ({ id, names: listFrom<string>(names) }));
  },

  async issue(id, { der, issuedAt, version, replacesId }) {
    const [row] = await issue(db, { id, der: der && textOf(der), issuedAt, version, replacesId });
    return row !== undefined;
  },

  async void(id) {
    await db
      .updateTable('certificate')
      .set({ state: 'voided' })
      .where('id', '=', id)
      .where('state', '=', 'prepared')
      .execute();
  },
});
