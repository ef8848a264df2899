// What the issuance of a certificate revokes, in the very transaction that issues it: before it, nothing; after it, what
// was agreed to, at once or when the product says. So there is no moment at which neither is valid.

import type { CertificateRecord, Order } from '../../domain/certificate/order.ts';
import type { NewId } from '../../domain/ids.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { applyRevocation, dueNow, type RevocationAct } from '../revocation/apply-revocation.ts';

const HOUR_MS = 3_600_000;
/** More of them would make everybody wait for this transaction; the rest is due, and follows within seconds. */
const MAX_IN_TRANSACTION = 100;

/** `order` is as it was just saved. Returns the CRLs to publish. */
export async function revokeOnIssuance(
  tx: Repositories,
  newId: NewId,
  record: CertificateRecord,
  order: Order,
  at: number,
  by: RevocationAct['by'],
): Promise<CrlRef[]> {
  const { id, accountId } = record;
  // What is worthless from the start takes the place of nothing: the earlier ones stay.
  if (await isOnBlockedKey(tx, record)) return await revokeItself(tx, newId, record, order, at, by);
  const crls: CrlRef[] = [];
  let carriedOut = 0;
  for (const { certificateId, reason, cause, afterHours } of record.willRevoke) {
    const dueAt = at + afterHours * HOUR_MS;
    const planned = { reason, cause, causedById: id, dueAt, revokedAt: null };
    await tx.revocations.schedule(accountId, certificateId, planned);
    if (afterHours > 0 || carriedOut === MAX_IN_TRANSACTION) continue;
    carriedOut += 1;
    const certificate = await tx.certificates.find(accountId, certificateId);
    // It may have been scheduled before, for another moment and another reason: the first stand.
    const known = certificate?.revocation;
    if (!certificate || !known || known.revokedAt !== null || known.dueAt > at) continue;
    const act = { reason: known.reason, cause: known.cause, at, by };
    crls.push(...(await applyRevocation(tx, newId, { certificate, order }, act)));
  }
  return crls;
}

async function isOnBlockedKey(tx: Repositories, { accountId, publicKey, encryption }: CertificateRecord) {
  if (await tx.blockedKeys.has(publicKey.fingerprint, accountId)) return true;
  const escrowed = encryption && (await tx.escrowedKeys.find(accountId, encryption.escrowedKeyId));
  return escrowed ? await tx.blockedKeys.has(escrowed.publicKey.fingerprint, accountId) : false;
}

/**
 * A key that was reported while its certificate was being signed, or waited for proof. The signature exists, so the
 * certificate is issued, and revoked in the same breath: nobody ever sees it good.
 */
async function revokeItself(
  tx: Repositories,
  newId: NewId,
  { id, accountId }: CertificateRecord,
  order: Order,
  at: number,
  by: RevocationAct['by'],
): Promise<CrlRef[]> {
  const act = { reason: 'key_compromise', cause: 'key_compromise', at, by } as const;
  await tx.revocations.schedule(accountId, id, dueNow(act));
  const issued = await tx.certificates.find(accountId, id);
  return issued ? await applyRevocation(tx, newId, { certificate: issued, order }, act) : [];
}
