// Proofs that an account controls a name, by method. Reusable for as long as a product allows.
import type { AccountId } from '../../../domain/ids.ts';
import type { Proofs } from '../../../domain/validation/ports.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

const provenAmong = (count: number) =>
  prepared((db, slots: { [index: number]: string; accountId: AccountId; since: number }) => {
    const names = Array.from({ length: count }, (_, index) => slots[index]!);
    return db
      .selectFrom('domain_authorization')
      .select(['name', 'method', 'validated_at'])
      .where('account_id', '=', slots.accountId)
      .where('name', 'in', names)
      .where('validated_at', '>=', slots.since);
  });
/** By the number of names: as many texts as a request may have names. */
const PROVEN_AMONG: ReturnType<typeof provenAmong>[] = [];

export const proofsIn = (db: Db): Proofs => ({
  async proven(accountId, names, since) {
    if (names.length === 0) return new Map();
    PROVEN_AMONG[names.length] ??= provenAmong(names.length);
    const rows = await PROVEN_AMONG[names.length]!(db, { ...names, accountId, since });
    const byName = Map.groupBy(rows, ({ name }) => name);
    const proofOf = ({ method, validated_at }: (typeof rows)[number]) => ({ method, validatedAt: validated_at });
    return new Map(Array.from(byName, ([name, group]) => [name, group.map(proofOf)]));
  },

  async record(accountId, name, method, at) {
    await db
      .insertInto('domain_authorization')
      .values({ account_id: accountId, name, method, validated_at: at })
      .onConflict((conflict) => conflict.columns(['account_id', 'name', 'method']).doUpdateSet({ validated_at: at }))
      .execute();
  },

  async forget(accountId, name, methods) {
    const proofs = db.deleteFrom('domain_authorization').where('account_id', '=', accountId).where('name', '=', name);
    await proofs.where('method', 'in', methods).execute();
  },
});
