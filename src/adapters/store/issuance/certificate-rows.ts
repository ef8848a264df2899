// How a certificate record is stored: one row per certificate, and one for the encryption half of a dual certificate.
// The columns of a state are all set or the store is damaged: reading such a row throws.
import type {
  Cancellation,
  CertificateRecord,
  PlannedRevocation,
  Preparation,
  Revocation,
  SignedHalf,
  UnsignedHalf,
} from '../../../domain/certificate/certificate.ts';
import type { PublicKey } from '../../../domain/certificate/public-key.ts';
import { bytesFrom, listFrom, listText, textOf } from '../engine/columns.ts';
import type { Db, Schema } from '../engine/schema.ts';

type Row = Schema['certificate'];
type HalfRow = Omit<Schema['encryption_certificate'], 'certificate_id' | 'account_id'>;
type RevocationRow = Pick<Schema['revocation'], 'reason' | 'cause' | 'caused_by_id' | 'due_at' | 'revoked_at'>;

/** Rows of other tables about the same certificate. */
interface Beside {
  readonly revocation: RevocationRow | undefined;
  readonly half: HalfRow | undefined;
  readonly cancellation: Cancellation | undefined;
}

export function recordFrom(row: Row, { half, ...beside }: Beside): CertificateRecord {
  const requested = requestedFrom(row);
  const revocation = beside.revocation ? revocationFrom(beside.revocation) : null;
  switch (row.state) {
    case 'pending':
      return { ...requested, state: row.state };
    case 'canceled':
      return { ...requested, state: row.state, cancellation: cancellationFrom(beside.cancellation) };
    case 'voided':
      return { ...requested, state: row.state, ...unsignedFrom(row, half), revocation };
    case 'issued':
      return {
        ...requested,
        state: row.state,
        preparation: preparationFrom(row),
        der: bytesFrom(present(row, 'der')),
        issuedAt: present(row, 'issued_at'),
        version: present(row, 'version'),
        replacesId: row.replaces_id,
        revocation,
        encryption: half ? signedHalfFrom(half) : null,
      };
  }
}

const cancellationFrom = (row: Cancellation | undefined): Cancellation | null =>
  row ? { reason: row.reason, at: row.at } : null;

/** A column that is set in the row's state. */
function present<R extends object, Column extends keyof R & string>(row: R, column: Column): NonNullable<R[Column]> {
  const value = row[column];
  if (value === null || value === undefined) throw new Error(`a certificate row has no ${column}`);
  return value;
}

const requestedFrom = (row: Row) => ({
  id: row.id,
  orderId: row.order_id,
  accountId: row.account_id,
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
  cloudKeyId: row.cloud_key_id,
  keepsEncryptionKey: row.keeps_encryption_key === 1,
});

export const publicKeyFrom = (row: Pick<Row, 'key_type' | 'key_bits' | 'spki' | 'key_fingerprint'>): PublicKey => ({
  type: row.key_type,
  bits: row.key_bits,
  spki: bytesFrom(row.spki),
  fingerprint: row.key_fingerprint,
});

const preparationFrom = (row: Row): Preparation => ({
  issuerId: present(row, 'issuer_id'),
  serial: present(row, 'serial'),
  notBefore: present(row, 'not_before'),
  notAfter: present(row, 'not_after'),
  preparedAt: present(row, 'prepared_at'),
  leaseEndsAt: present(row, 'lease_ends_at'),
});

const unsignedFrom = (row: Row, half: HalfRow | undefined) => ({
  preparation: preparationFrom(row),
  toBeSigned: bytesFrom(present(row, 'to_be_signed')),
  encryption: half ? unsignedHalfFrom(half) : null,
});

export const revocationFrom = (row: RevocationRow): Revocation => ({
  reason: row.reason,
  cause: row.cause,
  causedById: row.caused_by_id,
  dueAt: row.due_at,
  revokedAt: row.revoked_at,
});

export function rowOf(record: CertificateRecord): Row {
  const preparation = 'preparation' in record ? record.preparation : null;
  const toBeSigned = 'toBeSigned' in record ? record.toBeSigned : null;
  const issued = record.state === 'issued' ? record : null;
  return {
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
    issuer_id: preparation?.issuerId ?? null,
    serial: preparation?.serial ?? null,
    not_before: preparation?.notBefore ?? null,
    not_after: preparation?.notAfter ?? null,
    to_be_signed: toBeSigned && textOf(toBeSigned),
    prepared_at: preparation?.preparedAt ?? null,
    lease_ends_at: preparation?.leaseEndsAt ?? null,
    der: issued && textOf(issued.der),
    issued_at: issued?.issuedAt ?? null,
    version: issued?.version ?? null,
    replaces_id: issued?.replacesId ?? null,
    cloud_key_id: record.cloudKeyId,
    keeps_encryption_key: record.keepsEncryptionKey ? 1 : 0,
  };
}

const halfFrom = (row: HalfRow) => ({
  escrowedKeyId: row.key_id,
  serial: row.serial,
  envelope: bytesFrom(row.envelope),
});
const unsignedHalfFrom = (row: HalfRow): UnsignedHalf => ({
  ...halfFrom(row),
  toBeSigned: bytesFrom(present(row, 'to_be_signed')),
});
const signedHalfFrom = (row: HalfRow): SignedHalf => ({ ...halfFrom(row), der: bytesFrom(present(row, 'der')) });

/** The row of the encryption half, if the certificate has one. */
export function halfRowOf(record: CertificateRecord): Schema['encryption_certificate'] | null {
  const half = 'encryption' in record ? record.encryption : null;
  return (
    half && {
      certificate_id: record.id,
      account_id: record.accountId,
      key_id: half.escrowedKeyId,
      serial: half.serial,
      to_be_signed: 'toBeSigned' in half ? textOf(half.toBeSigned) : null,
      der: 'der' in half ? textOf(half.der) : null,
      envelope: textOf(half.envelope),
    }
  );
}

export async function insertHalf(db: Db, record: CertificateRecord): Promise<void> {
  const row = halfRowOf(record);
  if (row) await db.insertInto('encryption_certificate').values(row).execute();
}
