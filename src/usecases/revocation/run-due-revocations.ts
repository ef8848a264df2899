// Revocations whose time has come. Every instance looks, and after a restart too; the lock of the order and the mark
// that is set once make sure that each happens once.

import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { ListRef } from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { type Attempt, withOrder } from '../lease/order-lock.ts';
import { applyRevocation, SERVICE } from './apply-revocation.ts';
import type { RevocationTools } from './revoke-certificate.ts';

const BATCH = 100;
/** In one run, so that a service that is told to stop does; the next run goes on. */
const MAX_BATCHES = 5;

/** How many it carried out. */
export async function runDueRevocations(tools: RevocationTools): Promise<number> {
  const { store, now, publishLists } = tools;
  let done = 0;
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
    const due = await store.revocations.due(now(), BATCH);
    const lists: ListRef[] = [];
    const failures: unknown[] = [];
    let inBatch = 0;
    for (const ref of due) {
      try {
        const outcome = await store.transaction((tx) => revokeIfDue(tools, tx, ref));
        // An order that is being signed for has its turn the next time.
        if (outcome.kind === 'busy' || outcome.value.length === 0) continue;
        lists.push(...outcome.value);
        inBatch += 1;
      } catch (error) {
        // One that fails keeps no other from happening.
        failures.push(error);
      }
    }
    await publishLists(lists);
    done += inBatch;
    if (failures.length > 0) throw failures[0];
    if (due.length < BATCH || inBatch === 0) break;
  }
  return done;
}

function revokeIfDue(
  { now, newId }: RevocationTools,
  tx: Repositories,
  ref: CertificateRef,
): Promise<Attempt<ListRef[]>> {
  return withOrder(tx, ref, async (order) => {
    const certificate = await tx.certificates.find(ref.accountId, ref.certificateId);
    const revocation = certificate?.revocation;
    // Since the list was made it may have happened, been put off or been canceled.
    if (!certificate || !revocation || revocation.revokedAt !== null || revocation.dueAt > now()) return [];
    const { reason, cause } = revocation;
    return await applyRevocation(tx, newId, certificate, order, { reason, cause, at: now(), by: SERVICE });
  });
}
