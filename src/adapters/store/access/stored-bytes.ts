// Counts what accounts store, by walking the certificates in the order of their ids: each is read once, when it is some
// minutes old. A counter in the transaction of every reissue would be a row that all reissues of an account wait for.
import { sql } from 'kysely';
import { BYTES_PER_CERTIFICATE } from '../../../domain/access/quota.ts';
import type { CertificateId } from '../../../domain/ids.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db } from '../engine/schema.ts';

const NAME = 'stored_through';

/** Returns the number of certificates. Instances take turns at the setting, and none is counted twice. */
export async function countStored(
  db: Db,
  { locksRows }: Pick<Engine, 'locksRows'>,
  before: CertificateId,
  limit: number,
): Promise<number> {
  const first = { name: NAME, value: '' };
  await db
    .insertInto('setting')
    .values(first)
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const setting = db.selectFrom('setting').select('value').where('name', '=', NAME);
  const { value: through } = await (locksRows ? setting.forUpdate() : setting).executeTakeFirstOrThrow();
  const next = db
    .selectFrom('certificate')
    .select('id')
    .where('id', '>', through)
    .where('id', '<', before)
    .orderBy('id')
    .limit(limit);
  const { count, last } = await db
    .selectFrom(next.as('next'))
    .select([sql<number>`cast(count(*) as bigint)`.as('count'), sql<string | null>`max(id)`.as('last')])
    .executeTakeFirstOrThrow();
  if (last === null) return 0;
  await sql`update account set stored_bytes = stored_bytes + added.bytes
    from (select account_id, cast(sum(coalesce(octet_length(csr), 0) + octet_length(names) + ${sql.lit(BYTES_PER_CERTIFICATE)}) as bigint) as bytes
      from certificate where id > ${through} and id <= ${last} group by account_id) as added
    where account.id = added.account_id`.execute(db);
  await db.updateTable('setting').set({ value: last }).where('name', '=', NAME).execute();
  return count;
}
