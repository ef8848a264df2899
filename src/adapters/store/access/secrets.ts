// Repository of the service's own secrets, sealed and bound to their name, so that a row copied over another does not
// open.
import type { SealedSecrets } from '../../../domain/store.ts';
import type { Sealer } from '../../seal/seal.ts';
import type { Db } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const bindingOf = SEALED.sealed_secret.columns.sealed;

export function secretsIn(db: Db, sealer: Sealer): SealedSecrets {
  const find = (name: string) => db.selectFrom('sealed_secret').select('sealed').where('name', '=', name);
  return {
    async get(name) {
      const row = await find(name).executeTakeFirst();
      return row && sealer.open(row.sealed, bindingOf(name));
    },

    async claim(name, value) {
      await db
        .insertInto('sealed_secret')
        .values({ name, sealed: sealer.seal(value, bindingOf(name)) })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .execute();
      const { sealed } = await find(name).executeTakeFirstOrThrow();
      return sealer.open(sealed, bindingOf(name));
    },
  };
}
