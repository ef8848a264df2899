// Table crl: the last published CRL of each shard. Table pki_address: the base URLs that CRLs were ever served at.
import type { RevocationReason } from '../../../domain/certificate/certificate.ts';
import type { CrlHead, Crls, PkiAddresses, PublishedCrl } from '../../../domain/revocation/ports.ts';
import { bytesFrom, textOf } from '../engine/columns.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

const HEAD = [
  'issuer_id',
  'shard',
  'number',
  'this_update',
  'next_update',
  'entries',
  'ended_before',
  'addresses',
] as const;

const selectHead = prepared((db, { issuerId, shard }: { issuerId: string; shard: number }) =>
  db.selectFrom('crl').select(HEAD).where('issuer_id', '=', issuerId).where('shard', '=', shard),
);

const headFrom = (row: Pick<Schema['crl'], (typeof HEAD)[number]>): CrlHead => ({
  issuerId: row.issuer_id,
  shard: row.shard,
  number: row.number,
  thisUpdate: row.this_update,
  nextUpdate: row.next_update,
  entries: row.entries,
  expiredBefore: row.ended_before,
  addresses: row.addresses,
});

/** Well below the maximum number of parameters of a statement. */
const SERIALS_AT_ONCE = 500;

export const crlsIn = (db: Db): Crls => {
  /** A serial number whose reason has changed since it was read stays unlisted: the CRL has the old reason. */
  async function markListed(
    { issuerId, shard, number }: CrlHead,
    at: number,
    reason: RevocationReason,
    serials: string[],
  ): Promise<void> {
    for (let from = 0; from < serials.length; from += SERIALS_AT_ONCE) {
      await db
        .updateTable('revoked_serial')
        .set((is) => ({
          listed_in: is.case().when('reason', '=', reason).then(is.val(number)).else(is.ref('listed_in')).end(),
          crl_number: is.fn.coalesce('crl_number', is.val(number)),
          crl_published_at: is.fn.coalesce('crl_published_at', is.val(at)),
        }))
        .where('issuer_id', '=', issuerId)
        .where('shard', '=', shard)
        .where('serial', 'in', serials.slice(from, from + SERIALS_AT_ONCE))
        .where('listed_in', 'is', null)
        .execute();
    }
  }

  const contentOf = (crl: PublishedCrl) => ({
    number: crl.number,
    this_update: crl.thisUpdate,
    next_update: crl.nextUpdate,
    entries: crl.entries,
    ended_before: crl.expiredBefore,
    addresses: crl.addresses,
    der: textOf(crl.der),
  });

  return {
    async head({ issuerId, shard }) {
      const [row] = await selectHead(db, { issuerId, shard });
      return row && headFrom(row);
    },

    async heads() {
      const rows = await db.selectFrom('crl').select(HEAD).orderBy('issuer_id').orderBy('shard').execute();
      return rows.map(headFrom);
    },

    async find({ issuerId, shard }) {
      const row = await db
        .selectFrom('crl')
        .selectAll()
        .where('issuer_id', '=', issuerId)
        .where('shard', '=', shard)
        .executeTakeFirst();
      return row && { ...headFrom(row), der: bytesFrom(row.der) };
    },

    async publish(crl, replaces, added, at) {
      const { issuerId, shard } = crl;
      const content = contentOf(crl);
      const written =
        replaces === null
          ? await db
              .insertInto('crl')
              .values({ issuer_id: issuerId, shard, ...content })
              .onConflict((conflict) => conflict.columns(['issuer_id', 'shard']).doNothing())
              .returning('number')
              .executeTakeFirst()
          : await db
              .updateTable('crl')
              .set(content)
              .where('issuer_id', '=', issuerId)
              .where('shard', '=', shard)
              .where('number', '=', replaces)
              .returning('number')
              .executeTakeFirst();
      if (!written) return false;
      for (const [reason, listed] of Map.groupBy(added, (entry) => entry.reason)) {
        const serials = listed.map(({ serial }) => serial);
        await markListed(crl, at, reason, serials);
      }
      return true;
    },

    async adopt(crl) {
      const content = contentOf(crl);
      const row = await db
        .insertInto('crl')
        .values({ issuer_id: crl.issuerId, shard: crl.shard, ...content })
        .onConflict((conflict) =>
          conflict.columns(['issuer_id', 'shard']).doUpdateSet(content).where('crl.number', '<', crl.number),
        )
        .returning('number')
        .executeTakeFirst();
      return row !== undefined;
    },

    async makeDue(publishedBefore) {
      await db
        .updateTable('crl')
        .set({ this_update: publishedBefore })
        .where('this_update', '>', publishedBefore)
        .where('issuer_id', 'in', db.selectFrom('issuer').select('id').where('sealed_key', 'is not', null))
        .execute();
    },
  };
};

export const pkiAddressesIn = (db: Db): PkiAddresses => ({
  async remember(url, at) {
    await db
      .insertInto('pki_address')
      .values({ url, last_used_at: at })
      .onConflict((conflict) => conflict.column('url').doUpdateSet({ last_used_at: at }))
      .execute();
  },

  async list(limit) {
    const rows = await db
      .selectFrom('pki_address')
      .select('url')
      .orderBy('last_used_at', 'desc')
      .orderBy('url')
      .limit(limit)
      .execute();
    // Sorted, because a CRL is renewed whenever its addresses differ.
    return rows.map(({ url }) => url).sort();
  },
});
