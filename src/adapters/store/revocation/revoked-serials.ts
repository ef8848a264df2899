// Serial numbers that are revoked: what the lists are made of, and what OCSP answers from.
import { sql } from 'kysely';
import type { RevocationReason } from '../../../domain/certificate/order.ts';
import type { ListedSerial, RevokedSerials } from '../../../domain/revocation/ports.ts';
import { type ListRef, shardOf } from '../../../domain/revocation/revocation.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

interface Asked {
  issuerId: string;
  shard: number;
  serial: string;
}

interface Status {
  revoked_at: number | null;
  reason: RevocationReason | null;
}
const NOT_REVOKED = [
  sql<number | null>`null`.as('revoked_at'),
  sql<RevocationReason | null>`null`.as('reason'),
] as const;

/** One statement, so that it sees one moment: a certificate is never good because it was revoked in between. */
const statusOfMost = (db: Db, { issuerId, shard, serial }: Asked) =>
  db
    .selectFrom('revoked_serial')
    .select(['revoked_at', 'reason'])
    .where('issuer_id', '=', issuerId)
    .where('shard', '=', shard)
    .where('serial', '=', serial)
    .$castTo<Status>()
    .unionAll(
      db
        .selectFrom('certificate')
        .select(NOT_REVOKED)
        .where('serial', '=', serial)
        .where('issuer_id', '=', issuerId)
        .where('state', '=', 'issued'),
    );

/** The rest: halves of dual certificates, and responders. Asked again in full, because of that one moment. */
const statusOfAll = (db: Db, asked: Asked) => {
  const { issuerId, serial } = asked;
  return statusOfMost(db, asked)
    .unionAll(
      db
        .selectFrom('encryption_certificate as half')
        .innerJoin('certificate as whole', 'whole.id', 'half.certificate_id')
        .select(NOT_REVOKED)
        .where('half.serial', '=', serial)
        .where('whole.issuer_id', '=', issuerId)
        .where('whole.state', '=', 'issued'),
    )
    .unionAll(
      db
        .selectFrom('ocsp_responder')
        .select(NOT_REVOKED)
        .where('serial', '=', serial)
        .where('issuer_id', '=', issuerId)
        .where('certificate', 'is not', null),
    );
};

const mostStatus = prepared(statusOfMost);
const allStatus = prepared(statusOfAll);

const inList = (db: Db, { issuerId, shard }: ListRef) =>
  db
    .selectFrom('revoked_serial')
    .select(['serial', 'reason', 'revoked_at', 'crl_number', 'listed_in'])
    .where('issuer_id', '=', issuerId)
    .where('shard', '=', shard);

type Row = { serial: string; reason: RevocationReason; revoked_at: number };
const listedFrom = ({ serial, reason, revoked_at }: Row): ListedSerial => ({ serial, reason, revokedAt: revoked_at });

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
      ...listedFrom(row),
      issuerId: row.issuer_id,
      shard: row.shard,
      crlNumber: row.crl_number,
      crlPublishedAt: row.crl_published_at,
    }));
  },

  async changeReason(certificateId, reason) {
    await db
      .updateTable('revoked_serial')
      .set({ reason, listed_in: null })
      .where('certificate_id', '=', certificateId)
      .execute();
  },

  async statusOf(issuerId, serial) {
    const asked = { issuerId, shard: shardOf(serial), serial };
    const most = await mostStatus(db, asked);
    const rows = most.length > 0 ? most : await allStatus(db, asked);
    const revoked = rows.find(({ revoked_at }) => revoked_at !== null);
    if (revoked) return { kind: 'revoked', revokedAt: revoked.revoked_at!, reason: revoked.reason! };
    return { kind: rows.length > 0 ? 'good' : 'unknown' };
  },

  async unlisted(list, limit) {
    const rows = await inList(db, list).where('listed_in', 'is', null).limit(limit).execute();
    return rows.map((row) => ({ ...listedFrom(row), isKnown: row.crl_number !== null }));
  },

  async listedBetween(list, after, upTo, limit) {
    const rows = await inList(db, list)
      .where('listed_in', '>', after)
      .where('listed_in', '<=', upTo)
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...listedFrom(row), isKnown: row.crl_number !== row.listed_in }));
  },

  async page(list, number, endedBefore, after, limit) {
    const rows = await inList(db, list)
      .where('serial', '>', after)
      // Not by where it stands now: one whose reason changes at this moment must not be missing.
      .where('crl_number', '<=', number)
      .where('not_after', '>=', endedBefore)
      .orderBy('serial')
      .limit(limit)
      .execute();
    return rows.map(listedFrom);
  },

  async unlistedLists(limit) {
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
