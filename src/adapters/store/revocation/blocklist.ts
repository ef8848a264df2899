// The blocklist: compromised keys, for everyone or for the account that reported them.
import type { AccountId } from '../../../domain/ids.ts';
import type { BlockedKeys } from '../../../domain/revocation/ports.ts';
import { listedAs } from '../../ca/rsa-numbers.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

interface Listed {
  readonly fingerprint: string;
  readonly modulus: string | null;
  readonly accountId: AccountId;
}

const blocked = prepared((db, { fingerprint, modulus, accountId }: Listed) =>
  db
    .selectFrom('blocked_key')
    .select('fingerprint')
    .where((is) => is.or([is('fingerprint', '=', fingerprint), is('fingerprint', '=', modulus)]))
    .unionAll(
      db
        .selectFrom('reported_key')
        .select('fingerprint')
        .where('account_id', '=', accountId)
        .where('fingerprint', '=', fingerprint),
    ),
);

/** Rows of one statement: a list has hundreds of thousands. */
const ROWS = 500;

export const blockedKeysIn = (db: Db): BlockedKeys => ({
  add: (fingerprint, reason, at) => blockedKeysIn(db).addAll([fingerprint], reason, at),

  async has(key, accountId) {
    const [fingerprint, modulus] = listedAs(key);
    const [row] = await blocked(db, { fingerprint, modulus, accountId });
    return row !== undefined;
  },

  async addAll(fingerprints, reason, at) {
    for (let from = 0; from < fingerprints.length; from += ROWS) {
      await db
        .insertInto('blocked_key')
        .values(fingerprints.slice(from, from + ROWS).map((fingerprint) => ({ fingerprint, reason, created_at: at })))
        .onConflict((conflict) => conflict.column('fingerprint').doNothing())
        .execute();
    }
  },

  async report(accountId, fingerprint, at) {
    await db
      .insertInto('reported_key')
      .values({ account_id: accountId, fingerprint, created_at: at })
      .onConflict((conflict) => conflict.columns(['account_id', 'fingerprint']).doNothing())
      .execute();
  },
});
