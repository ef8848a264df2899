// What becomes of a certificate on its way from the wish to the signed bytes: written down to be signed, signed, given up,
// or voided because its signer was lost.

import type { CertificateRecord } from '../../../domain/certificate/order.ts';
import type { Certificates } from '../../../domain/issuance/ports.ts';
import { textOf } from '../engine/columns.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';
import { encryptionRowOf, rowOf } from './certificate-rows.ts';

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

/** As before anything was written down to be signed. */
const UNPREPARED = {
  issuer_id: null,
  serial: null,
  not_before: null,
  not_after: null,
  to_be_signed: null,
  prepared_at: null,
  lease_ends_at: null,
} as const;

export const signingOf = (db: Db): Pick<Certificates, 'prepare' | 'issue' | 'void' | 'cancel'> => ({
  async prepare(record) {
    const { id, account_id, order_id, state: _, ...columns } = rowOf(record);
    const row = await db
      .updateTable('certificate')
      .set({ ...columns, state: 'prepared' })
      .where('id', '=', id)
      .where('account_id', '=', account_id)
      .where('order_id', '=', order_id)
      .where('state', '=', 'pending')
      .returning('id')
      .executeTakeFirst();
    if (row && record.encryption) {
      await db.insertInto('encryption_certificate').values(encryptionRowOf(record, record.encryption)).execute();
    }
    return row !== undefined;
  },

  async issue(id, { der, issuedAt, version, replacesId, encryptionDer }) {
    const [row] = await issue(db, { id, der: der && textOf(der), issuedAt, version, replacesId });
    if (row && encryptionDer) {
      await db
        .updateTable('encryption_certificate')
        .set({ der: textOf(encryptionDer), to_be_signed: null })
        .where('certificate_id', '=', id)
        .execute();
    }
    return row !== undefined;
  },

  async void(id, newId) {
    const row = await db
      .updateTable('certificate')
      .set({ state: 'voided' })
      .where('id', '=', id)
      .where('state', '=', 'prepared')
      .returningAll()
      .executeTakeFirst();
    if (!row || row.pending_since === null) return;
    // First the serial number is let go here, because it is unique; then it is taken again there.
    await db
      .updateTable('certificate')
      .set({ ...UNPREPARED, state: 'pending' })
      .where('id', '=', id)
      .execute();
    await db
      .insertInto('certificate')
      .values({ ...row, id: newId })
      .execute();
    await db
      .updateTable('encryption_certificate')
      .set({ certificate_id: newId })
      .where('certificate_id', '=', id)
      .execute();
  },

  async cancel(accountId, id) {
    await db
      .updateTable('certificate')
      .set({ state: 'canceled' })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('state', '=', 'pending')
      .execute();
  },
});
