// Runs revocations that have become due. Every instance runs this, also after a restart; the order lock and a mark set
// only once make sure that each revocation happens once.

import type { Revocation } from '../../domain/certificate/certificate.ts';
import type { CertificateRef } from '../../domain/revocation/ports.ts';
import { type CrlRef, isRevocable } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { byService } from '../access/audit.ts';
import { type LockOutcome, withOrderLock } from '../lease/order-lock.ts';
import { applyRevocation } from './apply-revocation.ts';
import type { RevocationTools } from './revoke-certificate.ts';

const BATCH = 100;
/** Bounds one run, so that the service can stop in between; the next run continues. */
const MAX_BATCHES = 5;

/** For metrics and the log. */
type OnRevoked = (ref: CertificateRef, revocation: Revocation) => void;

/** Returns how many certificates were revoked. */
export async function runDueRevocations(tools: RevocationTools, onRevoked: OnRevoked = () => {}): Promise<number> {
  const { store, now, publishCrls } = tools;
  let done = 0;
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
    const due = await store.revocations.due(now(), BATCH);
    const crls: CrlRef[] = [];
    const failures: unknown[] = [];
    let inBatch = 0;
    for (const ref of due) {
      try {
        const outcome = await store.transaction((tx) => revokeIfDue(tools, tx, ref));
        // An order that is being signed is retried in the next run.
        if (outcome.kind === 'busy' || !outcome.value) continue;
        crls.push(...outcome.value.crls);
        onRevoked(ref, outcome.value.revocation);
        inBatch += 1;
      } catch (error) {
        // A failure must not keep the other certificates from being revoked.
        failures.push(error);
      }
    }
    await publishCrls(crls);
    done += inBatch;
    if (failures.length > 0) throw failures[0];
    if (due.length < BATCH || inBatch === 0) break;
  }
  return done;
}

interface AppliedRevocation {
  readonly crls: readonly CrlRef[];
  readonly revocation: Revocation;
}

function revokeIfDue(
  { now, newId }: RevocationTools,
  tx: Repositories,
  ref: CertificateRef,
): Promise<LockOutcome<AppliedRevocation | null>> {
  return withOrderLock(tx, ref, async (order) => {
    const certificate = await tx.certificates.find(ref.accountId, ref.certificateId);
    if (!certificate || !isRevocable(certificate)) return null;
    const { revocation } = certificate;
    // The list was read unlocked: the revocation may have been applied, postponed or canceled since.
    if (!revocation || revocation.revokedAt !== null || revocation.dueAt > now()) return null;
    const { reason, cause } = revocation;
    const act = { reason, cause, at: now(), by: byService(ref.accountId) };
    const crls = await applyRevocation(tx, newId, { certificate, order }, act);
    return crls.length === 0 ? null : { crls, revocation };
  });
}
