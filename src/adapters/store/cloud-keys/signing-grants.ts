// Repository of signing grants. The first use deletes a grant; a background task deletes expired ones.
import { latestAhead } from '../../../domain/clock.ts';
import { GRANT_MS } from '../../../domain/cloud-keys/cloud-key.ts';
import type { SigningGrants } from '../../../domain/cloud-keys/ports.ts';
import type { Sealer } from '../../seal/seal.ts';
import { listFrom, listText } from '../engine/columns.ts';
import type { Db } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const grantBinding = SEALED.signing_grant.columns.sealed_key;

export const signingGrantsIn = (db: Db, sealer: Sealer): SigningGrants => ({
  async insert({ tokenHash, accountId, keyId, hashes, wrappedKey, expiresAt, certificateId }) {
    await db
      .insertInto('signing_grant')
      .values({
        token_hash: tokenHash,
        account_id: accountId,
        key_id: keyId,
        hashes: listText(hashes),
        sealed_key: sealer.seal(wrappedKey, grantBinding(tokenHash)),
        expires_at: expiresAt,
        certificate_id: certificateId,
      })
      .execute();
  },

  async take(accountId, keyId, tokenHash, now) {
    const row = await db
      .deleteFrom('signing_grant')
      .where('token_hash', '=', tokenHash)
      .where('account_id', '=', accountId)
      .where('key_id', '=', keyId)
      .where('expires_at', '>', now)
      .where('expires_at', '<=', latestAhead(now, GRANT_MS))
      .returningAll()
      .executeTakeFirst();
    if (!row) return undefined;
    const wrappedKey = sealer.open(row.sealed_key, grantBinding(tokenHash));
    return {
      ...{ tokenHash, accountId, keyId, wrappedKey },
      hashes: listFrom<string>(row.hashes),
      expiresAt: row.expires_at,
      certificateId: row.certificate_id,
    };
  },

  async deleteExpired(now, limit) {
    const due = db
      .selectFrom('signing_grant')
      .select('token_hash')
      .where((is) => is.or([is('expires_at', '<=', now), is('expires_at', '>', latestAhead(now, GRANT_MS))]))
      .limit(limit);
    const rows = await db.deleteFrom('signing_grant').where('token_hash', 'in', due).returning('token_hash').execute();
    return rows.length;
  },
});
