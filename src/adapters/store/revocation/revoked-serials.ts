// Table revoked_serial: the source of CRLs and of OCSP answers.
import { sql } from 'kysely';
import type { RevocationReason } from '../../../domain/certificate/certificate.ts';
import type { CrlEntry, RevokedSerials } from '../../../domain/revocation/ports.ts';
import { type CrlRef, shardOf } from '../../../domain/revocation/revocation.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

interface SerialQuery {
  issuerId: string;
  shard: number;
  serial: string;
}

/** Both null for a serial number that is good. */
interface StatusRow {
  revoked_at: number | null;
  reason: RevocationReason | null;
}
const NOT_REVOKED = [
  sql<number | null>`null`.as('revoked_at'),
  sql<RevocationReason | null>`null`.as('reason'),
] as const;

/** A literal: the table has partial indexes, and SQLite plans anew for each value bound to what they might depend on. */
const ISSUED = sql.lit<'issued'>('issued');

/**
 * Certificates, encryption halves and OCSP responders in one statement: one round trip, and one snapshot, because a
 * revocation committed between two statements would read as good.
 */
const selectStatus = (db: Db, { issuerId, shard, serial }: SerialQuery) =>
  db
    .selectFrom('revoked_serial')
    .select(['revoked_at', 'reason'])
    .where('issuer_id', '=', issuerId)
    .where('shard', '=', shard)
    .where('serial', '=', serial)
    .$castTo<StatusRow>()
    .unionAll(
      db
        .selectFrom('certificate')
        .select(NOT_REVOKED)
        .where('serial', '=', serial)
        .where('issuer_id', '=', issuerId)
        .where('state', '=', ISSUED),
    )
    .unionAll(
      db
        .selectFrom('encryption_certificate as half')
        .innerJoin('certificate as whole', 'whole.id', 'half.certificate_id')
        .select(NOT_REVOKED)
        .where('half.serial', '=', serial)
        .where('whole.issuer_id', '=', issuerId)
        .where('whole.state', '=', ISSUED),
    )
    .unionAll(
      db
        .selectFrom('ocsp_responder')
        .select(NOT_REVOKED)
        .where('serial', '=', serial)
        .where('issuer_id', '=', issuerId)
        .where('certificate', 'is not', null),
    );

const statusRows = prepared(selectStatus);

const entriesOf = (db: Db, { issuerId, shard }: CrlRef) =>
  db
    .selectFrom('revoked_serial')
    .select(['serial', 'reason', 'revoked_at', 'crl_number', 'listed_in'])
    .where('issuer_id', '=', issuerId)
    .where('shard', '=', shard);

type EntryRow = { serial: string; reason: RevocationReason; revoked_at: number };
const entryFrom = ({ serial, reason, revoked_at }: EntryRow): CrlEntry => ({ serial, reason, revokedAt: revoked_at });

export const revokedSerialsIn = (db: Db): RevokedSerials => ({
  async insert({ issuerId, shard, serial, certificateId, reason, revokedAt, notAfter }) {
    await db
      .insertInto('revoked_serial')
      .values({
        issuer_id: issuerId,
        shard,
        serial,
        certificate_id: certificateId,
        reason,
        revoked_at: revokedAt,
        not_after: notAfter,
        listed_in: null,
        crl_number: null,
        crl_published_at: null,
      })
      .execute();
  },

  async ofCertificate(certificateId) {
    const rows = await db
      .selectFrom('revoked_serial')
      .selectAll()
      .where('certificate_id', '=', certificateId)
      .orderBy('serial')
      .execute();
    return rows.map((row) => ({
      ...entryFrom(row),
      issuerId: row.issuer_id,
      shard: row.shard,
      crlNumber: row.crl_number,
      crlPublishedAt: row.crl_published_at,
    }));
  },

  async reasonsOf(issuerId, listed) {
    const rows = await db
      .selectFrom('revoked_serial')
      .select(['serial', 'reason'])
      .where('issuer_id', '=', issuerId)
      .where('shard', 'in', [...new Set(listed.map(({ shard }) => shard))])
      .where(
        'serial',
        'in',
        listed.map(({ serial }) => serial),
      )
      .execute();
    return new Map(rows.map(({ serial, reason }) => [serial, reason]));
  },

  async ownerOf(issuerId, serial) {
    const row = await db
      .selectFrom('certificate')
      .select(['certificate.id', 'certificate.account_id', 'certificate.order_id'])
      .where('certificate.serial', '=', serial)
      .where('certificate.issuer_id', '=', issuerId)
      .unionAll(
        db
          .selectFrom('encryption_certificate as half')
          .innerJoin('certificate', 'certificate.id', 'half.certificate_id')
          .select(['certificate.id', 'certificate.account_id', 'certificate.order_id'])
          .where('half.serial', '=', serial)
          .where('certificate.issuer_id', '=', issuerId),
      )
      .executeTakeFirst();
    return row && { accountId: row.account_id, orderId: row.order_id, certificateId: row.id };
  },

  async changeReasonOf({ issuerId, shard, serial, reason }) {
    await db
      .updateTable('revoked_serial')
      .set({ reason, listed_in: null })
      .where('issuer_id', '=', issuerId)
      .where('shard', '=', shard)
      .where('serial', '=', serial)
      .where('certificate_id', 'is', null)
      .execute();
  },

  async changeReason(certificateId, reason) {
    await db
      .updateTable('revoked_serial')
      .set({ reason, listed_in: null })
      .where('certificate_id', '=', certificateId)
      .execute();
  },

  async statusOf(issuerId, serial) {
    const rows = await statusRows(db, { issuerId, shard: shardOf(serial), serial });
    for (const { revoked_at: revokedAt, reason } of rows) {
      if (revokedAt !== null && reason !== null) return { kind: 'revoked', revokedAt, reason };
    }
    return { kind: rows.length > 0 ? 'good' : 'unknown' };
  },

  async unlisted(crl, limit) {
    const rows = await entriesOf(db, crl).where('listed_in', 'is', null).limit(limit).execute();
    return rows.map((row) => ({ ...entryFrom(row), wasListed: row.crl_number !== null }));
  },

  async listedBetween(crl, after, upTo, limit) {
    const rows = await entriesOf(db, crl)
      .where('listed_in', '>', after)
      .where('listed_in', '<=', upTo)
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...entryFrom(row), wasListed: row.crl_number !== row.listed_in }));
  },

  async page(crl, { upTo, expiredBefore, after, limit }) {
    const rows = await entriesOf(db, crl)
      .where('serial', '>', after)
      // Not listed_in, which is null while a changed reason is not published yet.
      .where('crl_number', '<=', upTo)
      .where('not_after', '>=', expiredBefore)
      .orderBy('serial')
      .limit(limit)
      .execute();
    return rows.map(entryFrom);
  },

  async crlsWithUnlisted(limit) {
    const rows = await db
      .selectFrom('revoked_serial')
      .select(['issuer_id', 'shard'])
      .where('listed_in', 'is', null)
      .groupBy(['issuer_id', 'shard'])
      .limit(limit)
      .execute();
    return rows.map(({ issuer_id, shard }) => ({ issuerId: issuer_id, shard }));
  },
});
