// Keys the service holds for its customers. Each is sealed and bound to its row; cloud-held ones are locked under an
// access code before they come here, so that the seal key alone opens none of them.

import { type CloudKey, lockAfter } from '../../../domain/cloud-keys/cloud-key.ts';
import type { CloudKeys, EscrowedKeys } from '../../../domain/cloud-keys/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import type { Sealer } from '../../seal/seal.ts';
import { bytesFrom, textOf } from '../engine/columns.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Schema } from '../engine/schema.ts';

/** What is under an older seal key is sealed anew when it is read, as every sealed value is. */
async function renew(
  db: Db,
  sealer: Sealer,
  table: 'escrowed_key' | 'cloud_key',
  { id, sealed_key: sealed }: { readonly id: string; readonly sealed_key: string | null },
): Promise<void> {
  if (sealed === null || !sealer.isStale(sealed)) return;
  const binding = `${table}/${id}`;
  await db
    .updateTable(table)
    .set({ sealed_key: sealer.seal(sealer.open(sealed, binding), binding) })
    .where('id', '=', id)
    .where('sealed_key', '=', sealed)
    .execute();
}

const escrowBinding = (id: string): string => `escrowed_key/${id}`;

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
    await renew(db, sealer, 'escrowed_key', row);
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

/** 0 when it is not locked at all: an instance whose clock is behind must not take "now" for a lock. */
const lockedUntil = (wrongCodes: number, now: number): number => {
  const lockMs = lockAfter(wrongCodes);
  return lockMs === 0 ? 0 : now + lockMs;
};

const cloudBinding = (id: string): string => `cloud_key/${id}`;

export const cloudKeysIn = (db: Db, sealer: Sealer, engine: Pick<Engine, 'locksRows'>): CloudKeys => {
  const keyFrom = (row: Schema['cloud_key']): CloudKey => ({
    id: row.id,
    accountId: row.account_id,
    publicKey: { type: row.key_type, bits: row.key_bits, spki: bytesFrom(row.spki), fingerprint: row.key_fingerprint },
    locked: row.sealed_key === null ? null : sealer.open(row.sealed_key, cloudBinding(row.id)),
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
  const change = (accountId: AccountId, id: string) =>
    db
      .updateTable('cloud_key')
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('destroyed_at', 'is', null);
  const endGrants = (accountId: AccountId, id: string) =>
    db.deleteFrom('signing_grant').where('key_id', '=', id).where('account_id', '=', accountId).execute();
  return {
    async insert({ id, accountId, publicKey, locked, hint, wrongCodes, lockedUntil, createdAt, destroyedAt }) {
      await db
        .insertInto('cloud_key')
        .values({
          id,
          account_id: accountId,
          spki: textOf(publicKey.spki),
          key_type: publicKey.type,
          key_bits: publicKey.bits,
          key_fingerprint: publicKey.fingerprint,
          sealed_key: locked === null ? null : sealer.seal(locked, cloudBinding(id)),
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
      if (row) await renew(db, sealer, 'cloud_key', row);
      return row && keyFrom(row);
    },

    async findForUpdate(accountId, id) {
      const query = live(accountId, id);
      const row = await (engine.locksRows ? query.forUpdate() : query).executeTakeFirst();
      return row && keyFrom(row);
    },

    async list(accountId, { after = '', limit }) {
      const rows = await db
        .selectFrom('cloud_key')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('id', '>', after)
        .orderBy('id')
        .limit(limit)
        .execute();
      return rows.map(keyFrom);
    },

    async listLive(accountId, limit) {
      const rows = await db
        .selectFrom('cloud_key')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('destroyed_at', 'is', null)
        .orderBy('id', 'desc')
        .limit(limit)
        .execute();
      return rows.reverse().map(keyFrom);
    },

    async beginAttempt(accountId, id, now) {
      const query = live(accountId, id);
      const row = await (engine.locksRows ? query.forUpdate() : query).executeTakeFirst();
      if (!row) return undefined;
      if (row.locked_until > now) return { kind: 'locked', until: row.locked_until };
      const wrongCodes = row.wrong_codes + 1;
      await change(accountId, id)
        .set({ wrong_codes: wrongCodes, locked_until: lockedUntil(wrongCodes, now) })
        .execute();
      return { kind: 'allowed', key: keyFrom(row) };
    },

    async withdrawAttempt(accountId, { id, wrongCodes, lockedUntil: until }) {
      await change(accountId, id)
        .where('wrong_codes', '=', wrongCodes + 1)
        .set({ wrong_codes: wrongCodes, locked_until: until })
        .execute();
    },

    async endAttempt(accountId, id) {
      await change(accountId, id).set({ wrong_codes: 0, locked_until: 0 }).execute();
    },

    async relock(accountId, id, locked, hint) {
      await change(accountId, id)
        .set({ sealed_key: sealer.seal(locked, cloudBinding(id)), hint })
        .execute();
      await endGrants(accountId, id);
    },

    async destroy(accountId, id, at) {
      const row = await change(accountId, id)
        .set({ sealed_key: null, hint: null, destroyed_at: at })
        .returning('id')
        .executeTakeFirst();
      await endGrants(accountId, id);
      return row !== undefined;
    },
  };
};
