// Revokes a certificate now, on request of its owner or of the operator. Idempotent, with one exception: key_compromise
// replaces any other reason, because verifiers treat it most strictly. It also blocks the key for the account.
import type { Actor } from '../../domain/access/credential.ts';
import type { RevocableCertificate, RevocationCause, RevocationReason } from '../../domain/certificate/certificate.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { PublishCrls } from '../../domain/revocation/ports.ts';
import { type CrlRef, defaultReason, requireRevocable, serialsOf } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';
import {
  briefPatience,
  type LockedCertificate,
  type LockTools,
  type Patience,
  withCertificateLock,
} from '../lease/order-lock.ts';
import { applyRevocation, dueNow } from './apply-revocation.ts';

export interface RevocationTools extends LockTools {
  /** Never throws: a CRL that cannot be published now is published later. */
  readonly publishCrls: PublishCrls;
}

export interface RevokeRequest {
  /** Absent: `defaultReason` decides. */
  readonly reason?: RevocationReason | undefined;
  readonly cause?: RevocationCause | undefined;
  /** When it took effect, if it is recorded later: a restored backup learns it from a CRL. */
  readonly revokedAt?: number | undefined;
}

/** Resolves when CRLs and OCSP show the revocation. Idempotent. */
export type RevokeCertificate = (by: Actor, certificateId: CertificateId, request: RevokeRequest) => Promise<void>;

export function revokeCertificate(tools: RevocationTools): RevokeCertificate {
  const record = recordRevocation(tools);
  return async (by, certificateId, request) => await tools.publishCrls(await record(by, certificateId, request));
}

/** Resolves when OCSP shows the revocation, with the CRLs that the caller must publish. */
export function recordRevocation(tools: RevocationTools) {
  const { now, newId } = tools;
  const audit = auditLog(tools);

  async function revoke(
    tx: Repositories,
    { certificate: found, order }: LockedCertificate,
    by: Actor,
    { reason: requested, cause: given, revokedAt }: RevokeRequest,
  ): Promise<CrlRef[]> {
    const at = now();
    const certificate = requireRevocable(found);
    if (requested === 'key_compromise') await blockKeys(tx, certificate, at);
    const { id, accountId, revocation } = certificate;
    const cause = given ?? (requested || !revocation ? 'requested' : revocation.cause);
    if (revocation && revocation.revokedAt !== null) {
      if (requested === 'key_compromise' && revocation.reason !== 'key_compromise') {
        await tx.revocations.changeReason(id, requested, cause);
        await tx.revokedSerials.changeReason(id, requested);
        const details = { order_id: order.id, reason: requested, was: revocation.reason };
        await audit(tx, by, 'revocation:changed', id, details);
      }
      // A repeated request also waits until the CRLs show the revocation.
      return serialsOf(certificate);
    }
    const isReplaced = order.currentCertificateId !== id;
    const reason = requested ?? revocation?.reason ?? defaultReason(isReplaced);
    const act = { reason, cause, at, revokedAt, by };
    if (!revocation) await tx.revocations.schedule(accountId, id, dueNow(act));
    else if (revocation.dueAt > at) await tx.revocations.reschedule(accountId, id, at);
    return await applyRevocation(tx, newId, { certificate, order }, act);
  }

  /** A compromised key does not wait for a signer that may be lost; several revocations may share their patience. */
  return (
    by: Actor,
    certificateId: CertificateId,
    request: RevokeRequest,
    patience: Patience | undefined = request.reason === 'key_compromise' ? briefPatience() : undefined,
  ): Promise<CrlRef[]> =>
    withCertificateLock(tools, { accountId: by.accountId, certificateId, patience }, (tx, locked) =>
      revoke(tx, locked, by, request),
    );
}

/** Blocks the escrowed key of a dual certificate too: the holder of the signing key can open its envelope. */
async function blockKeys(tx: Repositories, certificate: RevocableCertificate, at: number): Promise<void> {
  const { accountId, publicKey, encryption } = certificate;
  await tx.blockedKeys.report(accountId, publicKey.fingerprint, at);
  const escrowed = encryption && (await tx.escrowedKeys.find(accountId, encryption.escrowedKeyId));
  if (escrowed) await tx.blockedKeys.report(accountId, escrowed.publicKey.fingerprint, at);
}
