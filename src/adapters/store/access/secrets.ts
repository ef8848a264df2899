// The service's own small secrets. Sealed before they reach the database and bound to their name, so that a row
// copied over another does not open. A value under an older seal key is sealed anew when it is next read.
import type { SealedSecrets } from '../../../domain/store.ts';
import type { Sealer } from '../../seal/seal.ts';
import type { Db } from '../engine/schema.ts';

const bindingOf = (name: string): string => `sealed_secret/${name}`;

export function secretsIn(db: Db, sealer: Sealer): SealedSecrets {
  async function get(name: string): Promise<string | undefined> {
    const row = await db.selectFrom('sealed_secret').select('sealed').where('name', '=', name).executeTakeFirst();
    if (!row) return undefined;
    const value = sealer.open(row.sealed, bindingOf(name));
    if (sealer.isStale(row.sealed)) {
      await db
        .updateTable('sealed_secret')
        .set({ sealed: sealer.seal(value, bindingOf(name)) })
        .where('name', '=', name)
        .where('sealed', '=', row.sealed)
        .execute();
    }
    return value;
  }

  return {
    get,
    async claim(name, value) {
      await db
        .insertInto('sealed_secret')
        .values({ name, sealed: sealer.seal(value, bindingOf(name)) })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .execute();
      return (await get(name))!;
    },
  };
}
