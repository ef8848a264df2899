// The lists that were published last, and the addresses they were ever served at.
import type { RevocationReason } from '../../../domain/certificate/order.ts';
import type { ListedSerial, ListHead, PkiAddresses, RevocationLists } from '../../../domain/revocation/ports.ts';
import type { ListRef } from '../../../domain/revocation/revocation.ts';
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

const headOf = prepared((db, { issuerId, shard }: { issuerId: string; shard: number }) =>
  db.selectFrom('crl').select(HEAD).where('issuer_id', '=', issuerId).where('shard', '=', shard),
);

const headFrom = (row: Pick<Schema['crl'], (typeof HEAD)[number]>): ListHead => ({
  issuerId: row.issuer_id,
  shard: row.shard,
  number: row.number,
  thisUpdate: row.this_update,
  nextUpdate: row.next_update,
  entries: row.entries,
  endedBefore: row.ended_before,
  addresses: row.addresses,
});

/** Far from the number of parameters that a statement may have. */
const SERIALS_AT_ONCE = 500;

export const revocationListsIn = (db: Db): RevocationLists => {
  /** What was changed since it was read is shown, but not as it is: it stays to be listed. */
  async function note(list: ListRef, number: number, at: number, reason: RevocationReason, serials: string[]) {
    for (let from = 0; from < serials.length; from += SERIALS_AT_ONCE) {
      await db
        .updateTable('revoked_serial')
        .set((is) => ({
          listed_in: is.case().when('reason', '=', reason).then(is.val(number)).else(is.ref('listed_in')).end(),
          crl_number: is.fn.coalesce('crl_number', is.val(number)),
          crl_published_at: is.fn.coalesce('crl_published_at', is.val(at)),
        }))
        .where('issuer_id', '=', list.issuerId)
        .where('shard', '=', list.shard)
        .where('serial', 'in', serials.slice(from, from + SERIALS_AT_ONCE))
        .where('listed_in', 'is', null)
        .execute();
    }
  }

  return {
    async head({ issuerId, shard }) {
      const [row] = await headOf(db, { issuerId, shard });
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

    async publish(list, replaces, shows) {
      const { issuerId, shard, number, thisUpdate, nextUpdate, entries, endedBefore, addresses, der } = list;
      const content = {
        ...{ number, this_update: thisUpdate, next_update: nextUpdate, entries, ended_before: endedBefore, addresses },
        der: textOf(der),
      };
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
      for (const [reason, serials] of byReason(shows)) await note(list, number, thisUpdate, reason, serials);
      return true;
    },
  };
};

function byReason(shown: readonly ListedSerial[]): Map<RevocationReason, string[]> {
  const serials = new Map<RevocationReason, string[]>();
  for (const { reason, serial } of shown) {
    const known = serials.get(reason);
    if (known) known.push(serial);
    else serials.set(reason, [serial]);
  }
  return serials;
}

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
    // In an order that does not change: lists are made anew when what they name does.
    return rows.map(({ url }) => url).sort();
  },
});
