// What is being signed. A row exists from the moment a certificate is written down until it is issued or voided; its key
// is the order, so an order has one signer at a time.
//
// `begin` is one statement. `finish` is one transaction without a question in between: a batch on SQLite, one statement
// with CTEs on PostgreSQL. Both begin with what must hold; if it does not, nothing is written.
import { sql } from 'kysely';
import type { PreparedCertificate, VoidedCertificate } from '../../../domain/certificate/certificate.ts';
import { latestAhead } from '../../../domain/clock.ts';
import type { CertificateId } from '../../../domain/ids.ts';
import { SIGNING_LEASE_MS, type Signings } from '../../../domain/issuance/ports.ts';
import { runBatch } from '../engine/batch.ts';
import { bytesFrom, columnsOf, listFrom, listText, textOf } from '../engine/columns.ts';
import { type Engine, perEngine } from '../engine/engine.ts';
import { prepared, statement } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { insertHalf, publicKeyFrom, rowOf } from './certificate-rows.ts';
import { finishIn } from './finish.ts';
import { isBlocked, orderAsRead, type Unblocked, unblocked } from './holds.ts';

type Row = Schema['signing'];

const signingRow = ({ preparation, encryption, ...record }: PreparedCertificate): Row => ({
  order_id: record.orderId,
  account_id: record.accountId,
  certificate_id: record.id,
  created_at: record.createdAt,
  common_name: record.commonName,
  names: listText(record.names),
  spki: textOf(record.publicKey.spki),
  key_type: record.publicKey.type,
  key_bits: record.publicKey.bits,
  key_fingerprint: record.publicKey.fingerprint,
  sign_hash: record.signHash,
  cloud_key_id: record.cloudKeyId,
  issuer_id: preparation.issuerId,
  serial: preparation.serial,
  not_before: preparation.notBefore,
  not_after: preparation.notAfter,
  to_be_signed: textOf(record.toBeSigned),
  prepared_at: preparation.preparedAt,
  lease_ends_at: preparation.leaseEndsAt,
  key_reported: 0,
  half_key_id: encryption?.escrowedKeyId ?? null,
  half_serial: encryption?.serial ?? null,
  half_to_be_signed: encryption && textOf(encryption.toBeSigned),
  half_envelope: encryption && textOf(encryption.envelope),
});

/** Only what says which certificate may exist somewhere. What was asked for beside it ends with its signer. */
const voidedFrom = (row: Row, id: CertificateId): VoidedCertificate => ({
  ...{ id, orderId: row.order_id, accountId: row.account_id, state: 'voided', createdAt: row.created_at },
  ...{ commonName: row.common_name, names: listFrom<string>(row.names), publicKey: publicKeyFrom(row) },
  ...{ signHash: row.sign_hash, cloudKeyId: row.cloud_key_id, toBeSigned: bytesFrom(row.to_be_signed) },
  ...{ pendingSince: null, csr: null, validityDays: null, customExpirationDate: null, willRevoke: [] },
  ...{ keepsEncryptionKey: false, revocation: null },
  preparation: {
    ...{ issuerId: row.issuer_id, serial: row.serial, notBefore: row.not_before, notAfter: row.not_after },
    ...{ preparedAt: row.prepared_at, leaseEndsAt: row.lease_ends_at },
  },
  encryption: halfFrom(row),
});

function halfFrom({
  half_key_id,
  half_serial,
  half_to_be_signed,
  half_envelope,
}: Row): VoidedCertificate['encryption'] {
  if (half_key_id === null || half_serial === null || half_to_be_signed === null || half_envelope === null) return null;
  return {
    ...{ escrowedKeyId: half_key_id, serial: half_serial },
    ...{ toBeSigned: bytesFrom(half_to_be_signed), envelope: bytesFrom(half_envelope) },
  };
}

const COLUMNS = Object.keys({
  ...{ order_id: 0, account_id: 0, certificate_id: 0, created_at: 0, common_name: 0, names: 0, spki: 0, key_type: 0 },
  ...{ key_bits: 0, key_fingerprint: 0, sign_hash: 0, cloud_key_id: 0, issuer_id: 0, serial: 0, not_before: 0 },
  ...{ not_after: 0, to_be_signed: 0, prepared_at: 0, lease_ends_at: 0, key_reported: 0, half_key_id: 0 },
  ...{ half_serial: 0, half_to_be_signed: 0, half_envelope: 0 },
} satisfies Record<keyof Row, 0>) as (keyof Row)[];

/** New in every attempt, whereas two may be made for one certificate that has waited. */
const KEY = 'serial';

type Begin = Row & Unblocked & { revision: number; unused_key: string | null; since: number; purpose: string };
const begin = perEngine(({ locksRows, batches: { members, returning } }) =>
  prepared((db, slot: Begin) =>
    statement(
      db,
      sql`insert into signing (${columnsOf(COLUMNS)})
        select ${sql.join(COLUMNS.map((column) => slot[column]))} ${members('from')}
        where ${slot.order_id} = (${orderAsRead(slot, locksRows)})
          and not ${isBlocked(slot)}
          and exists (select 1 from issuer_purpose where issuer_id = ${slot.issuer_id} and purpose = ${slot.purpose})
          and not exists (select 1 from certificate where serial = ${slot.serial})
          and not exists (select 1 from encryption_certificate where serial = ${slot.half_serial})
          and not exists (select 1 from idempotency_key where account_id = ${slot.account_id}
            and order_id = ${slot.order_id} and key = ${slot.unused_key} and created_at > ${slot.since})
        on conflict (order_id) do nothing ${returning(KEY)}`,
    ),
  ),
);

export const signingsIn = (db: Db, engine: Engine, onEvents: () => void): Signings => ({
  async begin(record, { revision, unblockedKey, idempotency, purpose }) {
    const row = {
      ...signingRow(record),
      ...{ revision, purpose, ...unblocked(unblockedKey) },
      ...{ unused_key: idempotency?.key ?? null, since: idempotency?.since ?? 0 },
    };
    return (await runBatch(db, engine, { statements: [begin(engine).compiled(db, row)], key: KEY })) !== undefined;
  },

  finish: finishIn(db, engine, onEvents),

  async hold() {
    // Statements lock their tables before they take their snapshot: one that waits here sees what was committed meanwhile.
    if (engine.locksRows) await sql`lock table signing in share row exclusive mode`.execute(db);
  },

  async countUnderRetired() {
    const { n } = await db
      .selectFrom('signing')
      .select((select) => select.fn.countAll<number>().as('n'))
      .where('issuer_id', 'not in', db.selectFrom('issuer_purpose').select('issuer_purpose.issuer_id'))
      .executeTakeFirstOrThrow();
    return Number(n);
  },

  async overdue(now, limit) {
    const rows = await db
      .selectFrom('signing')
      .select(['order_id', 'account_id'])
      .where((is) =>
        is.or([is('lease_ends_at', '<=', now), is('lease_ends_at', '>', latestAhead(now, SIGNING_LEASE_MS))]),
      )
      .orderBy('lease_ends_at')
      .limit(limit)
      .execute();
    return rows.map(({ order_id, account_id }) => ({ accountId: account_id, orderId: order_id }));
  },

  async reportKey(fingerprint, accountId) {
    await db
      .updateTable('signing')
      .set({ key_reported: 1 })
      .$if(accountId !== null, (all) => all.where('account_id', '=', accountId))
      .where((is) =>
        is.or([
          is('key_fingerprint', '=', fingerprint),
          is.exists(
            is
              .selectFrom('escrowed_key')
              .select('escrowed_key.id')
              .whereRef('escrowed_key.id', '=', 'signing.half_key_id')
              .where('escrowed_key.key_fingerprint', '=', fingerprint),
          ),
        ]),
      )
      .execute();
  },

  async void(orderId, newId) {
    const row = await db.deleteFrom('signing').where('order_id', '=', orderId).returningAll().executeTakeFirst();
    if (!row) return;
    // One whose id was answered has a record already, and goes on waiting under it.
    const answered = await db
      .selectFrom('certificate')
      .select('id')
      .where('id', '=', row.certificate_id)
      .executeTakeFirst();
    const voided = voidedFrom(row, answered ? newId : row.certificate_id);
    await db.insertInto('certificate').values(rowOf(voided)).execute();
    await insertHalf(db, voided);
  },

  async discard(orderId) {
    await db.deleteFrom('signing').where('order_id', '=', orderId).execute();
  },

  async renew({ id, orderId }, until) {
    await db
      .updateTable('signing')
      .set({ lease_ends_at: until })
      .where('order_id', '=', orderId)
      .where('certificate_id', '=', id)
      .execute();
  },
});
