import type { Settings } from '../../../domain/store.ts';
import type { Db } from '../engine/schema.ts';

export const settingsIn = (db: Db): Settings => ({
  async get(name) {
    const row = await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst();
    return row?.value;
  },

  async claim(name, value) {
    await db
      .insertInto('setting')
      .values({ name, value })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute();
    const row = await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirstOrThrow();
    return row.value;
  },

  async put(name, value) {
    await db
      .insertInto('setting')
      .values({ name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute();
  },
});
