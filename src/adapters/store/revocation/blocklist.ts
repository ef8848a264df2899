// The blocklist: compromised keys, for everyone or for the account that reported them.
import type { AccountId } from '../../../domain/ids.ts';
import type { BlockedKeys } from '../../../domain/revocation/ports.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

const blocked = prepared((db, { fingerprint, accountId }: { fingerprint: string; accountId: AccountId }) =>
  db
    .selectFrom('blocked_key')
    .select('fingerprint')
    .where('fingerprint', '=', fingerprint)
    .unionAll(
      db
        .selectFrom('reported_key')
        .select('fingerprint')
        .where('account_id', '=', accountId)
        .where('fingerprint', '=', fingerprint),
    ),
);

export const blockedKeysIn = (db: Db): BlockedKeys => ({
  async has(fingerprint, accountId) {
    const [row] = await blocked(db, { fingerprint, accountId });
    return row !== undefined;
  },

  async add(fingerprint, reason, at) {
    await db
      .insertInto('blocked_key')
      .values({ fingerprint, reason, created_at: at })
      .onConflict((conflict) => conflict.column('fingerprint').doNothing())
      .execute();
  },

  async report(accountId, fingerprint, at) {
    await db
      .insertInto('reported_key')
      .values({ account_id: accountId, fingerprint, created_at: at })
      .onConflict((conflict) => conflict.columns(['account_id', 'fingerprint']).doNothing())
      .execute();
  },
});
