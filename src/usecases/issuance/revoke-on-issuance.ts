// Revokes what the issuance of a certificate replaces, in the transaction that issues it: nothing before, and afterwards
// what was consented to, at once or after the product's grace period. So there is no moment without a valid certificate.

import type { PreparedCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { NewId } from '../../domain/ids.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { HOUR_MS } from '../../kernel/durations.ts';
import { applyRevocation, dueNow, type RevocationAct } from '../revocation/apply-revocation.ts';

/** Bounds the transaction. The rest is scheduled as due, and follows within seconds. */
const MAX_IN_TRANSACTION = 100;

interface Issued {
  readonly record: PreparedCertificate;
  /** As it was just saved. */
  readonly order: Order;
}

/** Returns the CRLs to publish. */
export async function revokeOnIssuance(
  tx: Repositories,
  newId: NewId,
  { record, order }: Issued,
  { at, by }: Pick<RevocationAct, 'at' | 'by'>,
): Promise<CrlRef[]> {
  const { id, accountId } = record;
  if (await isOnBlockedKey(tx, record)) {
    // The key was reported while its certificate was being signed or waited. The signature exists, so the certificate is
    // issued and revoked at once; it replaces nothing, and the earlier certificates stay valid.
    const act = { reason: 'key_compromise', cause: 'key_compromise', at, by } as const;
    await tx.revocations.schedule(accountId, id, dueNow(act));
    const certificate = await tx.certificates.find(accountId, id);
    return certificate?.state === 'issued' ? await applyRevocation(tx, newId, { certificate, order }, act) : [];
  }
  const crls: CrlRef[] = [];
  let applied = 0;
  for (const { certificateId, reason, cause, afterHours } of record.willRevoke) {
    const dueAt = at + afterHours * HOUR_MS;
    await tx.revocations.schedule(accountId, certificateId, { reason, cause, causedById: id, dueAt, revokedAt: null });
    if (afterHours > 0 || applied === MAX_IN_TRANSACTION) continue;
    applied += 1;
    const certificate = await tx.certificates.find(accountId, certificateId);
    if (certificate?.state !== 'issued') continue;
    // Of another order, which is not locked: it is due, and follows within seconds.
    if (certificate.orderId !== order.id) continue;
    // An earlier schedule, with another time and reason, takes precedence.
    const scheduled = certificate.revocation;
    if (!scheduled || scheduled.revokedAt !== null || scheduled.dueAt > at) continue;
    const act = { reason: scheduled.reason, cause: scheduled.cause, at, by };
    crls.push(...(await applyRevocation(tx, newId, { certificate, order }, act)));
  }
  return crls;
}

async function isOnBlockedKey(
  tx: Repositories,
  { accountId, publicKey, encryption }: PreparedCertificate,
): Promise<boolean> {
  if (await tx.blockedKeys.has(publicKey, accountId)) return true;
  const escrowed = encryption && (await tx.escrowedKeys.find(accountId, encryption.escrowedKeyId));
  return escrowed ? await tx.blockedKeys.has(escrowed.publicKey, accountId) : false;
}
