// Revoke a certificate now, because somebody says so: its owner, or the operator. In this order: the reason, the
// certificate, its state. One that is revoked already stays as it is, with one exception: a key that turns out to be
// compromised changes the reason, since verifiers treat that one harder than all others. It also blocks the key for the account.
import type { Actor } from '../../domain/access/credential.ts';
import type { Order, RevocationCause, RevocationReason } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId, NewId } from '../../domain/ids.ts';
import type { CertificateRef, PublishLists } from '../../domain/revocation/ports.ts';
import { fittingReason, type ListRef, requireRevocable, serialsOf } from '../../domain/revocation/revocation.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { retryWhileSigning, withOrder } from '../lease/order-lock.ts';
import { applyRevocation, scheduledFor } from './apply-revocation.ts';

export interface RevocationTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  /** Never fails: what cannot be published now is published later. */
  readonly publishLists: PublishLists;
}

export interface RevokeRequest {
  /** Left out: the one that fits. */
  readonly reason?: RevocationReason | undefined;
  readonly cause?: RevocationCause | undefined;
}

/** Resolves when lists and OCSP say so. Doing it twice changes nothing. */
export type RevokeCertificate = (by: Actor, certificateId: CertificateId, wish: RevokeRequest) => Promise<void>;

export function revokeCertificate(tools: RevocationTools): RevokeCertificate {
  const record = recordRevocation(tools);
  return async (by, certificateId, wish) => await tools.publishLists(await record(by, certificateId, wish));
}

/** Resolves when OCSP says so, with the lists that are still to say it. */
export function recordRevocation(tools: RevocationTools) {
  return async (by: Actor, certificateId: CertificateId, wish: RevokeRequest): Promise<ListRef[]> => {
    const found = await tools.store.certificates.find(by.accountId, certificateId);
    if (!found) throw new Refusal('cert_not_found');
    const ref = { accountId: by.accountId, orderId: found.orderId, certificateId };
    return await retryWhileSigning(tools, (tx) =>
      withOrder(tx, ref, (order) => revokeIn(tools, tx, by, ref, order, wish)),
    );
  };
}

async function revokeIn(
  { now, newId }: RevocationTools,
  tx: Repositories,
  by: Actor,
  { accountId, certificateId }: CertificateRef,
  order: Order,
  { reason: asked, cause: given }: RevokeRequest,
): Promise<ListRef[]> {
  const at = now();
  const certificate = await tx.certificates.find(accountId, certificateId);
  if (!certificate) throw new Refusal('cert_not_found');
  requireRevocable(certificate);
  if (asked === 'key_compromise') {
    await tx.blockedKeys.report(accountId, certificate.publicKey.fingerprint, at);
    // Whoever has the signing key can open the envelope of the other half's.
    const { encryption } = certificate;
    const escrowed = encryption && (await tx.escrowedKeys.find(accountId, encryption.escrowedKeyId));
    if (escrowed) await tx.blockedKeys.report(accountId, escrowed.publicKey.fingerprint, at);
  }
  const { revocation } = certificate;
  const cause = given ?? (asked || !revocation ? 'requested' : revocation.cause);
  if (revocation && revocation.revokedAt !== null) {
    // Whoever asks again also waits until the world can see it.
    if (asked !== 'key_compromise' || revocation.reason === 'key_compromise') return serialsOf(certificate);
    await tx.revocations.changeReason(certificateId, asked, cause);
    await tx.revokedSerials.changeReason(certificateId, asked);
    await tx.audit.append({
      ...{ id: newId(), at, ...by, action: 'revocation:changed', subject: certificateId },
      details: { order_id: order.id, reason: asked, was: revocation.reason },
    });
    return serialsOf(certificate);
  }
  const isReplaced = order.currentCertificateId !== certificateId;
  const deed = { reason: asked ?? revocation?.reason ?? fittingReason(isReplaced), cause, at };
  if (!revocation) await tx.revocations.schedule(accountId, certificateId, scheduledFor(deed));
  else if (revocation.dueAt > at) await tx.revocations.reschedule(accountId, certificateId, at);
  return await applyRevocation(tx, newId, certificate, order, { ...deed, by });
}
