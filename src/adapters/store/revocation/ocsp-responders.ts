// Table ocsp_responder: delegated OCSP responders, private keys sealed to their row. All instances share the one with the
// latest notAfter; earlier rows stay, because OCSP must answer good for their serial numbers.
import type { OcspResponders } from '../../../domain/revocation/ports.ts';
import type { Sealer } from '../../seal/seal.ts';
import { bytesFrom, textOf } from '../engine/columns.ts';
import type { Db } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

const bindingOf = SEALED.ocsp_responder.columns.sealed_key;

export const ocspRespondersIn = (db: Db, sealer: Sealer): OcspResponders => ({
  async current(issuerId, at) {
    const row = await db
      .selectFrom('ocsp_responder')
      .selectAll()
      .where('issuer_id', '=', issuerId)
      .where('certificate', 'is not', null)
      // A responder made by an instance whose clock was ahead is not valid yet.
      .where('not_before', '<=', at)
      .orderBy('not_after', 'desc')
      .orderBy('serial')
      .limit(1)
      .executeTakeFirst();
    if (!row?.certificate || row.sealed_key === null) return undefined;
    return {
      serial: row.serial,
      issuerId,
      notBefore: row.not_before,
      notAfter: row.not_after,
      certificate: bytesFrom(row.certificate),
      privateKey: bytesFrom(sealer.open(row.sealed_key, bindingOf(row.serial))),
    };
  },

  async prepare({ serial, issuerId, notBefore, notAfter }, at) {
    await db
      .insertInto('ocsp_responder')
      .values({
        ...{ serial, issuer_id: issuerId, not_before: notBefore, not_after: notAfter },
        ...{ certificate: null, sealed_key: null, created_at: at },
      })
      .execute();
  },

  async finish({ serial, certificate, privateKey }) {
    await db
      .updateTable('ocsp_responder')
      .set({ certificate: textOf(certificate), sealed_key: sealer.seal(textOf(privateKey), bindingOf(serial)) })
      .where('serial', '=', serial)
      .execute();
  },
});
