// A certificate and its rows: how the record that the use cases know is spread over columns, and read back.
import type {
  CertificateRecord,
  EncryptionHalf,
  PlannedRevocation,
  Preparation,
  Revocation,
} from '../../../domain/certificate/order.ts';
import type { PublicKey } from '../../../domain/certificate/public-key.ts';
import { bytesFrom, listFrom, listText, textOf } from '../engine/columns.ts';
import type { Schema } from '../engine/schema.ts';

type Row = Schema['certificate'];
type EncryptionRow = Omit<Schema['encryption_certificate'], 'certificate_id' | 'account_id'>;
type RevocationRow = Pick<Schema['revocation'], 'reason' | 'cause' | 'caused_by_id' | 'due_at' | 'revoked_at'>;

export const recordFrom = (
  row: Row,
  revocation: RevocationRow | undefined,
  encryption: EncryptionRow | undefined,
): CertificateRecord => ({
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
  cloudKeyId: row.cloud_key_id,
  keepsEncryptionKey: row.keeps_encryption_key === 1,
  encryption: encryption ? encryptionFrom(encryption) : null,
});

export const publicKeyFrom = (row: Pick<Row, 'key_type' | 'key_bits' | 'spki' | 'key_fingerprint'>): PublicKey => ({
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

export const revocationFrom = (row: RevocationRow): Revocation => ({
  reason: row.reason,
  cause: row.cause,
  causedById: row.caused_by_id,
  dueAt: row.due_at,
  revokedAt: row.revoked_at,
});

export const rowOf = (record: CertificateRecord): Row => ({
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
  cloud_key_id: record.cloudKeyId,
  keeps_encryption_key: record.keepsEncryptionKey ? 1 : 0,
});

const encryptionFrom = (row: EncryptionRow): EncryptionHalf => ({
  escrowedKeyId: row.key_id,
  serial: row.serial,
  toBeSigned: row.to_be_signed === null ? null : bytesFrom(row.to_be_signed),
  der: row.der === null ? null : bytesFrom(row.der),
  envelope: bytesFrom(row.envelope),
});

export const encryptionRowOf = ({ id, accountId }: CertificateRecord, half: EncryptionHalf) => ({
  certificate_id: id,
  account_id: accountId,
  key_id: half.escrowedKeyId,
  serial: half.serial,
  to_be_signed: half.toBeSigned && textOf(half.toBeSigned),
  der: half.der && textOf(half.der),
  envelope: textOf(half.envelope),
});
