// Tables issuer and issuer_purpose: private keys are sealed to their row.
import { type Issuer, isKeyHere, type KeyPlace, type PublicIssuer } from '../../../domain/certificate/authority.ts';
import type { Issuers } from '../../../domain/issuance/ports.ts';
import type { Sealer } from '../../seal/seal.ts';
import { bytesFrom, textOf } from '../engine/columns.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const { sealed_key: bindingOf, sealed_key_uri: uriBindingOf } = SEALED.issuer.columns;

export const issuersIn = (db: Db, sealer: Sealer): Issuers => ({
  async list() {
    const rows = await rowsIn(db);
    return rows.map((row) => ({
      ...publicPart(row),
      privateKey: row.sealed_key === null ? null : bytesFrom(sealer.open(row.sealed_key, bindingOf(row.id))),
      ...(row.sealed_key_uri !== null && { keyUri: sealer.open(row.sealed_key_uri, uriBindingOf(row.id)) }),
    }));
  },

  listPublic: () => publicIssuersIn(db),

  async claimRoot(root) {
    const row = rowOf(root, sealer);
    await db
      .insertInto('issuer')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  },

  async claimSlot(issuer, { purpose, keyType }) {
    await db.insertInto('issuer').values(rowOf(issuer, sealer)).execute();
    const claimed = await db
      .insertInto('issuer_purpose')
      .values({ purpose, key_type: keyType, issuer_id: issuer.id, policy: issuer.policy })
      .onConflict((conflict) => conflict.doNothing())
      .returning('purpose')
      .executeTakeFirst();
    // Another instance was first.
    if (!claimed) await db.deleteFrom('issuer').where('id', '=', issuer.id).execute();
  },

  async adopt(chain) {
    const rows = await rowsIn(db);
    // Stored from the top, each below the one that is stored already, if the same was imported before.
    let stored: Issuer | undefined;
    for (const one of chain.toReversed()) {
      const known = rows.find(
        (row) => row.certificate === textOf(one.certificate) && (isKeyHere(publicPart(row)) || !isKeyHere(one)),
      );
      stored = { ...one, id: known?.id ?? one.id, parentId: stored?.id ?? null };
      const row = rowOf(stored, sealer);
      if (!known) await db.insertInto('issuer').values(row).execute();
      // The same key in another place: into a token, out of one, or in another one.
      else if (isKeyHere(one)) {
        const { sealed_key, sealed_key_uri, key_place } = row;
        await db
          .updateTable('issuer')
          .set({ sealed_key, sealed_key_uri, key_place })
          .where('id', '=', known.id)
          .execute();
      }
    }
    const issuing = stored ?? chain[0];
    await db.deleteFrom('issuer_purpose').where('issuer_id', '=', issuing.id).execute();
    for (const purpose of issuing.purposes) {
      const row = { purpose, key_type: issuing.keyType, issuer_id: issuing.id, policy: issuing.policy };
      await db
        .insertInto('issuer_purpose')
        .values(row)
        .onConflict((conflict) => conflict.columns(['purpose', 'key_type']).doUpdateSet(row))
        .execute();
    }
    return issuing;
  },

  async succeed(issuer, { purpose, keyType }, previousId) {
    await db.insertInto('issuer').values(rowOf(issuer, sealer)).execute();
    const row = await db
      .updateTable('issuer_purpose')
      .set({ issuer_id: issuer.id, policy: issuer.policy })
      .where('purpose', '=', purpose)
      .where('key_type', '=', keyType)
      .where('issuer_id', '=', previousId)
      .returning('issuer_id')
      .executeTakeFirst();
    if (!row) await db.deleteFrom('issuer').where('id', '=', issuer.id).execute();
    return row !== undefined;
  },

  async retire(issuerId) {
    await db.deleteFrom('issuer_purpose').where('issuer_id', '=', issuerId).execute();
  },

  async removeKey(issuerId) {
    const row = await db
      .updateTable('issuer')
      .set({ sealed_key: null, key_place: 'offline' })
      .where('id', '=', issuerId)
      .where('sealed_key', 'is not', null)
      .returning('id')
      .executeTakeFirst();
    return row !== undefined;
  },

  async counts() {
    const issued = await db
      .selectFrom('certificate')
      .select((select) => ['issuer_id', select.fn.countAll<number>().as('n')])
      .where('state', '=', 'issued')
      .groupBy('issuer_id')
      .execute();
    const revoked = await db
      .selectFrom('revoked_serial')
      .select((select) => ['issuer_id', select.fn.countAll<number>().as('n')])
      .groupBy('issuer_id')
      .execute();
    const revokedBy = new Map(revoked.map((row) => [row.issuer_id, Number(row.n)]));
    const issuedBy = new Map(issued.map((row) => [row.issuer_id ?? '', Number(row.n)]));
    const ids = new Set([...revokedBy.keys(), ...issuedBy.keys()]);
    return new Map(
      [...ids].map((id) => [id, { issued: issuedBy.get(id) ?? 0, revoked: revokedBy.get(id) ?? 0 }] as const),
    );
  },
});

/** Needs no seal key, so that the doctor can run without one. */
export const publicIssuersIn = async (db: Db): Promise<PublicIssuer[]> => (await rowsIn(db)).map(publicPart);

type IssuerRow = Schema['issuer'] & { readonly given: readonly Schema['issuer_purpose'][] };

async function rowsIn(db: Db): Promise<IssuerRow[]> {
  const rows = await db.selectFrom('issuer').selectAll().orderBy('id').execute();
  const given = await db.selectFrom('issuer_purpose').selectAll().orderBy('purpose').execute();
  return rows.map((row) => ({ ...row, given: given.filter(({ issuer_id }) => issuer_id === row.id) }));
}

const placeOf = ({ key_place, sealed_key }: IssuerRow): KeyPlace =>
  key_place ?? (sealed_key === null ? 'elsewhere' : 'store');

const publicPart = (row: IssuerRow): PublicIssuer => ({
  id: row.id,
  role: row.role,
  keyType: row.key_type,
  purposes: row.given.map(({ purpose }) => purpose),
  policy: row.given[0]?.policy ?? null,
  parentId: row.parent_id,
  certificate: bytesFrom(row.certificate),
  keyPlace: placeOf(row),
  createdAt: row.created_at,
});

const rowOf = (issuer: Issuer, sealer: Sealer): Schema['issuer'] => ({
  id: issuer.id,
  role: issuer.role,
  key_type: issuer.keyType,
  // For instances of the version before, which would use it for every purpose.
  state: issuer.role === 'root' ? 'active' : 'retired',
  parent_id: issuer.parentId,
  certificate: textOf(issuer.certificate),
  sealed_key: issuer.privateKey && sealer.seal(textOf(issuer.privateKey), bindingOf(issuer.id)),
  created_at: issuer.createdAt,
  sealed_key_uri: issuer.keyUri === undefined ? null : sealer.seal(issuer.keyUri, uriBindingOf(issuer.id)),
  key_place: issuer.keyPlace === 'store' || issuer.keyPlace === 'elsewhere' ? null : issuer.keyPlace,
});
