// Change a revocation that is still to come: bring it forward, which everybody may, put it off, or cancel it, which the
// product must allow. What has happened cannot be changed; that is why it was scheduled.

import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction } from '../../domain/access/ports.ts';
import type { Catalog } from '../../domain/catalog/products.ts';
import { productOf } from '../../domain/catalog/products.ts';
import type { CertificateRecord, Order, Revocation } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import {
  type ListRef,
  requireMayPutOff,
  requireScheduled,
  requireWithinLife,
} from '../../domain/revocation/revocation.ts';
import type { Repositories } from '../../domain/store.ts';
import { retryWhileSigning, withOrder } from '../lease/order-lock.ts';
import { applyRevocation } from './apply-revocation.ts';
import type { RevocationTools } from './revoke-certificate.ts';

export interface ChangeRevocation {
  /** A moment that has come already means now. */
  reschedule(by: Actor, certificateId: CertificateId, dueAt: number): Promise<void>;
  cancel(by: Actor, certificateId: CertificateId): Promise<void>;
}

export interface ChangeTools extends RevocationTools {
  readonly products: Catalog;
}

interface Scheduled {
  readonly certificate: CertificateRecord;
  readonly revocation: Revocation;
  readonly order: Order;
  readonly at: number;
}

export function changeRevocation(tools: ChangeTools): ChangeRevocation {
  const { store, now, newId, publishLists } = tools;

  async function change(
    by: Actor,
    id: string,
    work: (tx: Repositories, found: Scheduled) => Promise<ListRef[]>,
  ): Promise<void> {
    const known = await store.certificates.find(by.accountId, id);
    if (!known) throw new Refusal('cert_not_found');
    const lists = await retryWhileSigning(tools, (tx) =>
      withOrder(tx, known, async (order) => {
        const certificate = await tx.certificates.find(by.accountId, id);
        if (!certificate) throw new Refusal('cert_not_found');
        return await work(tx, { certificate, revocation: requireScheduled(certificate.revocation), order, at: now() });
      }),
    );
    await publishLists(lists);
  }

  const record = (
    tx: Repositories,
    by: Actor,
    action: AuditAction,
    { certificate, revocation, order, at }: Scheduled,
  ) =>
    tx.audit.append({
      ...{ id: newId(), at, ...by, action, subject: certificate.id },
      details: { order_id: order.id, was_due_at: revocation.dueAt },
    });

  return {
    reschedule: (by, id, dueAt) =>
      change(by, id, async (tx, found) => {
        const { certificate, revocation, order, at } = found;
        if (dueAt > revocation.dueAt) {
          requireMayPutOff(productOf(tools.products, order.productId));
          requireWithinLife(dueAt, certificate.preparation?.notAfter ?? 0);
        }
        const { reason, cause } = revocation;
        await tx.revocations.reschedule(by.accountId, id, Math.max(dueAt, at));
        await record(tx, by, 'revocation:changed', found);
        return dueAt <= at ? await applyRevocation(tx, newId, certificate, order, { reason, cause, at, by }) : [];
      }),

    cancel: (by, id) =>
      change(by, id, async (tx, found) => {
        requireMayPutOff(productOf(tools.products, found.order.productId));
        await tx.revocations.unschedule(by.accountId, id);
        await record(tx, by, 'revocation:canceled', found);
        return [];
      }),
  };
}
