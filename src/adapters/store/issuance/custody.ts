// Tables pending_issuer, alternate_chain and taken_backup. Private keys are sealed to their row.
import type { AlternateChains, PendingIssuers, TakenBackups } from '../../../domain/issuance/custody.ts';
import type { Sealer } from '../../seal/seal.ts';
import { bytesFrom, listFrom, listText, textOf } from '../engine/columns.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const bindingOf = SEALED.pending_issuer.columns.sealed_key;

export const pendingIssuersIn = (db: Db, sealer: Sealer): PendingIssuers => ({
  async insert({ id, keyType, purposes, request, privateKey, createdAt }) {
    await db
      .insertInto('pending_issuer')
      .values({
        ...{ id, key_type: keyType, purposes: listText(purposes), request: textOf(request), created_at: createdAt },
        sealed_key: sealer.seal(textOf(privateKey), bindingOf(id)),
      })
      .execute();
  },

  async list() {
    const rows = await db.selectFrom('pending_issuer').selectAll().orderBy('id').execute();
    return rows.map((row) => ({
      ...{ id: row.id, keyType: row.key_type, purposes: listFrom(row.purposes), createdAt: row.created_at },
      request: bytesFrom(row.request),
      privateKey: bytesFrom(sealer.open(row.sealed_key, bindingOf(row.id))),
    }));
  },

  async count() {
    const { n } = await db
      .selectFrom('pending_issuer')
      .select((select) => select.fn.countAll<number>().as('n'))
      .executeTakeFirstOrThrow();
    return Number(n);
  },

  async delete(id) {
    const row = await db.deleteFrom('pending_issuer').where('id', '=', id).returning('id').executeTakeFirst();
    return row !== undefined;
  },
});

const chainFrom = (row: Schema['alternate_chain']) => ({
  ...{ issuerId: row.issuer_id, fingerprint: row.fingerprint, createdAt: row.created_at },
  certificates: listFrom<string>(row.certificates).map(bytesFrom),
});

export const alternateChainsIn = (db: Db): AlternateChains => ({
  async insert({ issuerId, fingerprint, certificates, createdAt }) {
    await db
      .insertInto('alternate_chain')
      .values({
        ...{ issuer_id: issuerId, fingerprint, created_at: createdAt },
        certificates: listText(certificates.map(textOf)),
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  },

  async of(issuerId) {
    const rows = db.selectFrom('alternate_chain').selectAll().where('issuer_id', '=', issuerId);
    return (await rows.orderBy('fingerprint').execute()).map(chainFrom);
  },
});

/** Three years of daily ones. */
const MAX_BACKUPS = 1_000;

export const takenBackupsIn = (db: Db): TakenBackups => ({
  async insert({ digest, takenAt, file }) {
    await db
      .insertInto('taken_backup')
      .values({ digest, taken_at: takenAt, file })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const newest = db.selectFrom('taken_backup').select('digest').orderBy('taken_at', 'desc').limit(MAX_BACKUPS);
    await db.deleteFrom('taken_backup').where('digest', 'not in', newest).execute();
  },

  async since(at) {
    const rows = db.selectFrom('taken_backup').selectAll().where('taken_at', '>=', at);
    return (await rows.orderBy('taken_at').execute()).map((row) => ({
      ...{ digest: row.digest, takenAt: row.taken_at, file: row.file },
    }));
  },
});
