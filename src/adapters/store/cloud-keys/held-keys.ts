// Repositories of escrowed and cloud-held keys. Private keys are sealed and bound to their row. Cloud-held ones arrive
// wrapped under an access code, so the seal key alone opens none of them.
import { type CloudKey, lockoutEnd, lockoutMs } from '../../../domain/cloud-keys/cloud-key.ts';
import type { CloudKeys, EscrowedKeys } from '../../../domain/cloud-keys/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import type { Sealed, Sealer } from '../../seal/seal.ts';
import { bytesFrom, textOf } from '../engine/columns.ts';
import type { Engine } from '../engine/engine.ts';
import { pageById } from '../engine/paging.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const escrowBinding = SEALED.escrowed_key.columns.sealed_key;

export const escrowedKeysIn = (db: Db, sealer: Sealer): EscrowedKeys => ({
  async insert({ id, accountId, orderId, publicKey, privateKey, createdAt }) {
    await db
      .insertInto('escrowed_key')
      .values({
        id,
        account_id: accountId,
        order_id: orderId,
        spki: textOf(publicKey.spki),
        key_fingerprint: publicKey.fingerprint,
        sealed_key: sealer.seal(textOf(privateKey), escrowBinding(id)),
        created_at: createdAt,
      })
      .execute();
  },

  async find(accountId, id) {
    const row = await db
      .selectFrom('escrowed_key')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    if (!row) return undefined;
    return {
      id,
      accountId,
      orderId: row.order_id,
      publicKey: { type: 'sm2', bits: 256, spki: bytesFrom(row.spki), fingerprint: row.key_fingerprint },
      privateKey: bytesFrom(sealer.open(row.sealed_key, escrowBinding(id))),
      createdAt: row.created_at,
    };
  },
});

/** 0 if not locked: an instance whose clock is behind must not read "now" as a lockout. */
const newLockoutEnd = (wrongCodes: number, now: number): number => {
  const lockMs = lockoutMs(wrongCodes);
  return lockMs === 0 ? 0 : now + lockMs;
};

const cloudBinding = SEALED.cloud_key.columns.sealed_key;

export const cloudKeysIn = (db: Db, sealer: Sealer, engine: Pick<Engine, 'locksRows'>): CloudKeys => {
  const unsealed = (id: string, sealed: Sealed): string => sealer.open(sealed, cloudBinding(id));
  const keyFrom = (row: Schema['cloud_key']): CloudKey => ({
    id: row.id,
    accountId: row.account_id,
    publicKey: { type: row.key_type, bits: row.key_bits, spki: bytesFrom(row.spki), fingerprint: row.key_fingerprint },
    wrappedKey: row.sealed_key === null ? null : unsealed(row.id, row.sealed_key),
    hint: row.hint,
    wrongCodes: row.wrong_codes,
    lockedUntil: row.locked_until,
    createdAt: row.created_at,
    destroyedAt: row.destroyed_at,
  });
  const live = (accountId: AccountId, id: string) =>
    db
      .selectFrom('cloud_key')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('destroyed_at', 'is', null);
  const selectForUpdate = (accountId: AccountId, id: string) => {
    const query = live(accountId, id);
    return (engine.locksRows ? query.forUpdate() : query).executeTakeFirst();
  };
  const change = (accountId: AccountId, id: string) =>
    db
      .updateTable('cloud_key')
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('destroyed_at', 'is', null);
  const deleteGrants = (accountId: AccountId, id: string) =>
    db.deleteFrom('signing_grant').where('key_id', '=', id).where('account_id', '=', accountId).execute();
  return {
    async insert({ id, accountId, publicKey, wrappedKey, hint, wrongCodes, lockedUntil, createdAt, destroyedAt }) {
      await db
        .insertInto('cloud_key')
        .values({
          id,
          account_id: accountId,
          spki: textOf(publicKey.spki),
          key_type: publicKey.type,
          key_bits: publicKey.bits,
          key_fingerprint: publicKey.fingerprint,
          sealed_key: wrappedKey === null ? null : sealer.seal(wrappedKey, cloudBinding(id)),
          hint,
          wrong_codes: wrongCodes,
          locked_until: lockedUntil,
          created_at: createdAt,
          destroyed_at: destroyedAt,
        })
        .execute();
    },

    async find(accountId, id) {
      const row = await live(accountId, id).executeTakeFirst();
      return row && keyFrom(row);
    },

    async findForUpdate(accountId, id) {
      const row = await selectForUpdate(accountId, id);
      return row && keyFrom(row);
    },

    async list(accountId, page) {
      const rows = db.selectFrom('cloud_key').selectAll().where('account_id', '=', accountId);
      return (await pageById(rows, page).execute()).map(keyFrom);
    },

    async listLive(accountId, { before, limit }) {
      const rows = await db
        .selectFrom('cloud_key')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('destroyed_at', 'is', null)
        .$if(before !== undefined, (query) => query.where('id', '<', before ?? ''))
        .orderBy('id', 'desc')
        .limit(limit)
        .execute();
      return rows.reverse().map(keyFrom);
    },

    async beginAttempt(accountId, id, now) {
      const row = await selectForUpdate(accountId, id);
      if (!row || row.sealed_key === null) return undefined;
      const until = lockoutEnd({ wrongCodes: row.wrong_codes, lockedUntil: row.locked_until }, now);
      if (until < row.locked_until) await change(accountId, id).set({ locked_until: until }).execute();
      if (until > now) return { kind: 'locked', until };
      const wrongCodes = row.wrong_codes + 1;
      await change(accountId, id)
        .set({ wrong_codes: wrongCodes, locked_until: newLockoutEnd(wrongCodes, now) })
        .execute();
      const wrappedKey = unsealed(id, row.sealed_key);
      return { kind: 'allowed', wrappedKey, wrongCodes: row.wrong_codes, lockedUntil: row.locked_until };
    },

    async withdrawAttempt(accountId, id, { wrongCodes, lockedUntil }) {
      await change(accountId, id)
        .where('wrong_codes', '=', wrongCodes + 1)
        .set({ wrong_codes: wrongCodes, locked_until: lockedUntil })
        .execute();
    },

    async resetAttempts(accountId, id) {
      await change(accountId, id).set({ wrong_codes: 0, locked_until: 0 }).execute();
    },

    async rewrap(accountId, id, wrappedKey, hint) {
      await change(accountId, id)
        .set({ sealed_key: sealer.seal(wrappedKey, cloudBinding(id)), hint })
        .execute();
      await deleteGrants(accountId, id);
    },

    async destroy(accountId, id, at) {
      const row = await change(accountId, id)
        .set({ sealed_key: null, hint: null, destroyed_at: at })
        .returning('id')
        .executeTakeFirst();
      await deleteGrants(accountId, id);
      return row !== undefined;
    },
  };
};
