// Repository of the service's own secrets, sealed and bound to their name, so that a row copied over another does not
// open. A stale value, sealed under an older seal key, is re-sealed when read.
import type { SealedSecrets } from '../../../domain/store.ts';
import type { Sealer } from '../../seal/seal.ts';
import type { Db } from '../engine/schema.ts';

const bindingOf = (name: string): string => `sealed_secret/${name}`;

export function secretsIn(db: Db, sealer: Sealer): SealedSecrets {
  const find = (name: string) => db.selectFrom('sealed_secret').select('sealed').where('name', '=', name);

  async function open(name: string, sealed: string): Promise<string> {
    const value = sealer.open(sealed, bindingOf(name));
    if (sealer.isStale(sealed)) {
      await db
        .updateTable('sealed_secret')
        .set({ sealed: sealer.seal(value, bindingOf(name)) })
        .where('name', '=', name)
        .where('sealed', '=', sealed)
        .execute();
    }
    return value;
  }

  return {
    async get(name) {
      const row = await find(name).executeTakeFirst();
      return row && (await open(name, row.sealed));
    },

    async claim(name, value) {
      await db
        .insertInto('sealed_secret')
        .values({ name, sealed: sealer.seal(value, bindingOf(name)) })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .execute();
      const { sealed } = await find(name).executeTakeFirstOrThrow();
      return await open(name, sealed);
    },
  };
}
