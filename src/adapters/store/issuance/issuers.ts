// Table issuer: private keys are sealed to their row.
import type { Issuer, PublicIssuer } from '../../../domain/certificate/authority.ts';
import type { Issuers } from '../../../domain/issuance/ports.ts';
import type { Sealer } from '../../seal/seal.ts';
import { bytesFrom, textOf } from '../engine/columns.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const bindingOf = SEALED.issuer.columns.sealed_key;

export const issuersIn = (db: Db, sealer: Sealer): Issuers => ({
  async list() {
    const rows = await rowsIn(db);
    return rows.map((row) => ({
      ...publicPart(row),
      privateKey: row.sealed_key === null ? null : bytesFrom(sealer.open(row.sealed_key, bindingOf(row.id))),
    }));
  },

  listPublic: () => publicIssuersIn(db),

  async claim(issuers) {
    const [first, ...rest] = issuers;
    if (!first) return;
    const inserted = await db
      .insertInto('issuer')
      .values(rowOf(first, sealer))
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst();
    // Another instance has inserted the root, and inserts the issuing authority in the same transaction.
    if (!inserted) return;
    // A conflict here fails the transaction, so that the root is not inserted alone.
    for (const issuer of rest) await db.insertInto('issuer').values(rowOf(issuer, sealer)).execute();
  },

  async adopt(issuers) {
    for (const issuer of issuers) {
      await db
        .updateTable('issuer')
        .set({ state: 'retired' })
        .where('role', '=', issuer.role)
        .where('key_type', '=', issuer.keyType)
        .execute();
      await db.insertInto('issuer').values(rowOf(issuer, sealer)).execute();
    }
  },
});

/** Needs no seal key, so that the doctor can run without one. */
export const publicIssuersIn = async (db: Db): Promise<PublicIssuer[]> =>
  (await rowsIn(db)).map((row) => ({ ...publicPart(row), hasKey: row.sealed_key !== null }));

const rowsIn = (db: Db): Promise<Schema['issuer'][]> => db.selectFrom('issuer').selectAll().orderBy('id').execute();

const publicPart = (row: Schema['issuer']) => ({
  id: row.id,
  role: row.role,
  keyType: row.key_type,
  state: row.state,
  parentId: row.parent_id,
  certificate: bytesFrom(row.certificate),
  createdAt: row.created_at,
});

const rowOf = (issuer: Issuer, sealer: Sealer): Schema['issuer'] => ({
  id: issuer.id,
  role: issuer.role,
  key_type: issuer.keyType,
  state: issuer.state,
  parent_id: issuer.parentId,
  certificate: textOf(issuer.certificate),
  sealed_key: issuer.privateKey && sealer.seal(textOf(issuer.privateKey), bindingOf(issuer.id)),
  created_at: issuer.createdAt,
});
