// Changes a scheduled revocation: an earlier date is always allowed; a later one, or none at all, only where the product
// allows it. A revocation that has happened cannot be changed.

import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction } from '../../domain/access/ports.ts';
import type { Catalog } from '../../domain/catalog/products.ts';
import { productOf } from '../../domain/catalog/products.ts';
import { type Revocation, revocationOf } from '../../domain/certificate/certificate.ts';
import type { CertificateId } from '../../domain/ids.ts';
import {
  type CrlRef,
  requireBeforeExpiry,
  requirePostponable,
  requireRevocable,
  requireScheduled,
} from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';
import { type LockedCertificate, withCertificateLock } from '../lease/order-lock.ts';
import { applyRevocation, type LockedRevocable } from './apply-revocation.ts';
import type { RevocationTools } from './revoke-certificate.ts';

export interface ChangeRevocation {
  /** Revokes at once when `dueAt` has passed. */
  reschedule(by: Actor, certificateId: CertificateId, dueAt: number): Promise<void>;
  cancel(by: Actor, certificateId: CertificateId): Promise<void>;
}

interface ChangeTools extends RevocationTools {
  readonly products: Catalog;
}

type Scheduled = LockedRevocable & { readonly revocation: Revocation };

function scheduledIn({ certificate, order }: LockedCertificate): Scheduled {
  const revocation = requireScheduled(revocationOf(certificate));
  return { certificate: requireRevocable(certificate), order, revocation };
}

export function changeRevocation(tools: ChangeTools): ChangeRevocation {
  const { now, newId, products, publishCrls } = tools;
  const audit = auditLog(tools);

  async function change(
    by: Actor,
    id: CertificateId,
    work: (tx: Repositories, scheduled: Scheduled) => Promise<CrlRef[]>,
  ): Promise<void> {
    const crls = await withCertificateLock(tools, { accountId: by.accountId, certificateId: id }, (tx, locked) =>
      work(tx, scheduledIn(locked)),
    );
    await publishCrls(crls);
  }

  const record = (tx: Repositories, by: Actor, action: AuditAction, { certificate, revocation, order }: Scheduled) =>
    audit(tx, by, action, certificate.id, { order_id: order.id, was_due_at: revocation.dueAt });

  return {
    reschedule: (by, id, dueAt) =>
      change(by, id, async (tx, scheduled) => {
        const at = now();
        const { certificate, revocation, order } = scheduled;
        if (dueAt > revocation.dueAt) {
          requirePostponable(productOf(products, order.productId));
          requireBeforeExpiry(dueAt, certificate.preparation.notAfter);
        }
        const { reason, cause } = revocation;
        await tx.revocations.reschedule(by.accountId, id, Math.max(dueAt, at));
        await record(tx, by, 'revocation:changed', scheduled);
        return dueAt <= at ? await applyRevocation(tx, newId, scheduled, { reason, cause, at, by }) : [];
      }),

    cancel: (by, id) =>
      change(by, id, async (tx, scheduled) => {
        requirePostponable(productOf(products, scheduled.order.productId));
        await tx.revocations.unschedule(by.accountId, id);
        await record(tx, by, 'revocation:canceled', scheduled);
        return [];
      }),
  };
}
