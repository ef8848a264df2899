// What an account sees of its orders and certificates. Reading only.

import type { CertificateRecord, Order, Revocation } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId } from '../../domain/ids.ts';
import type { CertificateSummary } from '../../domain/issuance/ports.ts';
import type { Page } from '../../domain/page.ts';
import type { PublishedSerial } from '../../domain/revocation/ports.ts';
import type { Store } from '../../domain/store.ts';
import type { ShowValidation, ValidationState } from '../validation/show-validation.ts';

export interface ShownOrder {
  readonly order: Order;
  /** The current one; before the first is issued, the one that waits. */
  readonly certificate: CertificateRecord | undefined;
  readonly validation: ValidationState;
  /** What will be revoked, the next one first; at most a hundred. */
  readonly scheduled: readonly (Revocation & { readonly certificateId: CertificateId })[];
}

export interface ShownCertificate {
  readonly certificate: CertificateRecord;
  readonly replacedBy: string | null;
  /** The last hundred of everything made for the same order, the earlier one first. */
  readonly history: readonly CertificateSummary[];
  /** Its serial numbers as the world sees them, once they are revoked. */
  readonly seen: readonly PublishedSerial[];
}

const MAX_HISTORY = 100;
const MAX_SCHEDULED = 100;

export type ShowOrders = ReturnType<typeof showOrders>;

export function showOrders(store: Store, { state }: ShowValidation) {
  async function shown(accountId: AccountId, finding: Promise<Order | undefined>): Promise<ShownOrder> {
    const order = await finding;
    if (!order) throw new Refusal('order_not_found');
    const certificateId = order.currentCertificateId ?? order.pendingCertificateId;
    const certificate = certificateId === null ? undefined : await store.certificates.find(accountId, certificateId);
    const scheduled = await store.revocations.listScheduled(accountId, order.id, MAX_SCHEDULED);
    return { order, certificate, validation: await state(order), scheduled };
  }

  return {
    order: (accountId: AccountId, id: string) => shown(accountId, store.orders.find(accountId, id)),

    orderByAlternative: (accountId: AccountId, alternativeId: string) =>
      shown(accountId, store.orders.findByAlternative(accountId, alternativeId)),

    orders: (accountId: AccountId, page: Page): Promise<Order[]> => store.orders.list(accountId, page),

    async certificate(accountId: AccountId, id: string): Promise<ShownCertificate> {
      const certificate = await store.certificates.find(accountId, id);
      if (!certificate) throw new Refusal('cert_not_found');
      const replacedBy = (await store.certificates.findReplacing(accountId, id)) ?? null;
      const history = await store.certificates.listLast(accountId, certificate.orderId, MAX_HISTORY);
      const seen = certificate.revocation?.revokedAt ? await store.revokedSerials.ofCertificate(id) : [];
      return { certificate, replacedBy, history, seen };
    },
  };
}
