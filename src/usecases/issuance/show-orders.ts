// Shows an account its orders and certificates. Reads only.

import {
  type Cancellation,
  type CertificateRecord,
  type Revocation,
  revocationOf,
} from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { SubjectFields } from '../../domain/certificate/subject.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, OrderId } from '../../domain/ids.ts';
import type { CertificateFilter, OrderFilter } from '../../domain/issuance/inventory.ts';
import type { CertificateSummary } from '../../domain/issuance/ports.ts';
import type { Page } from '../../domain/page.ts';
import type { PublishedSerial } from '../../domain/revocation/ports.ts';
import type { Store } from '../../domain/store.ts';
import type { ShowValidation, ValidationState } from '../validation/show-validation.ts';

export interface ShownOrder {
  readonly order: Order;
  /** The current one; before the first is issued, the pending one; in an order that ended without, the one it wanted. */
  readonly certificate: CertificateRecord | undefined;
  /** A reissue, or a first certificate, that ended without a certificate after the current one was issued. */
  readonly canceled: (Cancellation & { readonly certificateId: CertificateId }) | undefined;
  readonly validation: ValidationState;
  /** Scheduled revocations, the next first; at most a hundred. */
  readonly scheduled: readonly (Revocation & { readonly certificateId: CertificateId })[];
  /** Of an order that was placed over ACME. */
  readonly acme: AcmeLinks | null;
}

export interface AcmeLinks {
  readonly accountUrl: string;
  /** The order whose certificate this one renews. */
  readonly replaces: OrderId | null;
  /** The order that renews the certificate of this one. */
  readonly replacedBy: OrderId | null;
}

export interface ShownCertificate {
  readonly certificate: CertificateRecord;
  /** Of its order. */
  readonly subject: SubjectFields | null;
  readonly replacedBy: string | null;
  /** The last hundred certificates of the order, oldest first. */
  readonly history: readonly CertificateSummary[];
  /** Its serial numbers as CRLs show them, once they are revoked. */
  readonly seen: readonly PublishedSerial[];
}

const MAX_HISTORY = 100;
const MAX_SCHEDULED = 100;

export type ShowOrders = ReturnType<typeof showOrders>;

export function showOrders(store: Store, { state }: ShowValidation) {
  async function shown(accountId: AccountId, lookup: Promise<Order | undefined>): Promise<ShownOrder> {
    const order = await lookup;
    if (!order) throw new Refusal('order_not_found');
    const { currentCertificateId, pendingCertificateId } = order;
    const canceled = await store.certificates.lastCanceled(accountId, order.id, currentCertificateId);
    const certificateId = currentCertificateId ?? pendingCertificateId ?? canceled?.certificateId ?? null;
    const certificate = certificateId === null ? undefined : await store.certificates.find(accountId, certificateId);
    const scheduled = await store.revocations.listScheduled(accountId, order.id, MAX_SCHEDULED);
    const acme = await acmeLinks(accountId, order.id);
    return { order, certificate, canceled, validation: await state(order), scheduled, acme };
  }

  async function acmeLinks(accountId: AccountId, orderId: OrderId): Promise<AcmeLinks | null> {
    const acme = await store.acmeOrders.find(accountId, orderId);
    if (!acme) return null;
    const { acmeAccountUrl: accountUrl, replaces, certificateId } = acme;
    const replaced = replaces && (await store.acmeOrders.findByCertificate(accountId, replaces.certificateId));
    const replacedBy = await store.acmeOrders.findReplacing(accountId, certificateId);
    return { accountUrl, replaces: replaced?.orderId ?? null, replacedBy: replacedBy ?? null };
  }

  return {
    order: (accountId: AccountId, id: string) => shown(accountId, store.orders.find(accountId, id)),

    orderByAlternative: (accountId: AccountId, alternativeId: string) =>
      shown(accountId, store.orders.findByAlternative(accountId, alternativeId)),

    /** Revocations to come of all orders, the next first. */
    scheduledRevocations: (accountId: AccountId, limit: number) => store.revocations.listOfAccount(accountId, limit),

    orders: (accountId: AccountId, filter: OrderFilter, page: Page) => store.inventory.orders(accountId, filter, page),

    certificates: (accountId: AccountId, filter: CertificateFilter, page: Page) =>
      store.inventory.certificates(accountId, filter, page),

    async certificate(accountId: AccountId, id: string): Promise<ShownCertificate> {
      const certificate = await store.certificates.find(accountId, id);
      if (!certificate) throw new Refusal('cert_not_found');
      const replacedBy = (await store.certificates.findReplacing(accountId, id)) ?? null;
      const history = await store.certificates.listLast(accountId, certificate.orderId, MAX_HISTORY);
      const seen = revocationOf(certificate)?.revokedAt ? await store.revokedSerials.ofCertificate(id) : [];
      const subject = (await store.orders.find(accountId, certificate.orderId))?.subject ?? null;
      return { certificate, subject, replacedBy, history, seen };
    },
  };
}
