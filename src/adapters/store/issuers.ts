// Issuers, with their private keys sealed to their row.
import type { Issuers } from '../../domain/issuance-ports.ts';
import type { Sealer } from '../seal.ts';
import { bytesFrom, textOf } from './columns.ts';
import type { Db } from './schema.ts';

const bindingOf = (id: string): string => `issuer/${id}`;

export const issuersIn = (db: Db, sealer: Sealer): Issuers => ({
  async list() {
    const rows = await db.selectFrom('issuer').selectAll().orderBy('id').execute();
    return rows.map((row) => ({
      id: row.id,
      role: row.role,
      keyType: row.key_type,
      state: row.state,
      parentId: row.parent_id,
      certificate: bytesFrom(row.certificate),
      privateKey: row.sealed_key === null ? null : bytesFrom(sealer.open(row.sealed_key, bindingOf(row.id))),
      createdAt: row.created_at,
    }));
  },

  async claim(issuers) {
    for (const { id, role, keyType, state, parentId, certificate, privateKey, createdAt } of issuers) {
      const inserted = await db
        .insertInto('issuer')
        .values({
          id,
          role,
          key_type: keyType,
          state,
          parent_id: parentId,
          certificate: textOf(certificate),
          sealed_key: privateKey && sealer.seal(textOf(privateKey), bindingOf(id)),
          created_at: createdAt,
        })
        .onConflict((conflict) => conflict.doNothing())
        .returning('id')
        .executeTakeFirst();
      // The root was there, so another instance's issuing authority is, or will be when its transaction ends.
      if (!inserted) return;
    }
  },
});
