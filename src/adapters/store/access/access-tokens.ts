// Repository of access tokens. The caller that a token stands for is read with its key and its account each time, so that
// a token ends with either.
import { TOKEN_MS } from '../../../domain/access/credential.ts';
import type { AccessTokens } from '../../../domain/access/ports.ts';
import { latestAhead } from '../../../domain/clock.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db } from '../engine/schema.ts';
import { CALLER_COLUMNS, callerFrom } from './credentials.ts';

export const accessTokensIn = (db: Db, engine: Pick<Engine, 'locksRows'>): AccessTokens => ({
  async insert({ tokenHash, keyId, createdAt, expiresAt }, most) {
    // Concurrent logins of one key would not see each other's row, and exceed the bound.
    const key = db.selectFrom('credential').select('key_id').where('key_id', '=', keyId);
    if (engine.locksRows) await key.forNoKeyUpdate().execute();
    const newest = db
      .selectFrom('access_token')
      .select('token_hash')
      .where('key_id', '=', keyId)
      .orderBy('created_at', 'desc')
      .limit(most - 1);
    await db.deleteFrom('access_token').where('key_id', '=', keyId).where('token_hash', 'not in', newest).execute();
    await db
      .insertInto('access_token')
      .values({ token_hash: tokenHash, key_id: keyId, created_at: createdAt, expires_at: expiresAt })
      .execute();
  },

  async findCaller(tokenHash, now) {
    const row = await db
      .selectFrom('access_token')
      .innerJoin('credential', 'credential.key_id', 'access_token.key_id')
      .innerJoin('account', 'account.id', 'credential.account_id')
      .select(CALLER_COLUMNS)
      .where('token_hash', '=', tokenHash)
      .where('access_token.expires_at', '>', now)
      .where('access_token.expires_at', '<=', latestAhead(now, TOKEN_MS))
      .executeTakeFirst();
    return row && callerFrom(row);
  },

  async deleteOf(accountId) {
    const keys = db.selectFrom('credential').select('key_id').where('account_id', '=', accountId);
    await db.deleteFrom('access_token').where('key_id', 'in', keys).execute();
  },

  async delete(keyId, tokenHash) {
    const row = await db
      .deleteFrom('access_token')
      .where('token_hash', '=', tokenHash)
      .where('key_id', '=', keyId)
      .returning('token_hash')
      .executeTakeFirst();
    return row !== undefined;
  },

  async deleteExpired(now, limit) {
    let deleted = 0;
    // From a clock that was ahead: no token is given for so long.
    for (const [is, end] of [['<=', now] as const, ['>', latestAhead(now, TOKEN_MS)] as const]) {
      const due = db
        .selectFrom('access_token')
        .select('token_hash')
        .where('expires_at', is, end)
        .limit(limit - deleted);
      const rows = await db.deleteFrom('access_token').where('token_hash', 'in', due).returning('token_hash').execute();
      deleted += rows.length;
    }
    return deleted;
  },
});
