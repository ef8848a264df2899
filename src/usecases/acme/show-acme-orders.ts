// Shows orders, certificates and renewal information to ACME clients. What belongs to another ACME account is not found.
import { type AcmeOrder, type AcmeOrderStatus, acmeOrderStatus } from '../../domain/acme/acme-order.ts';
import type { Authorization } from '../../domain/acme/authorization.ts';
import { AcmeProblem } from '../../domain/acme/problem.ts';
import { type RenewalInfo, renewalInfo } from '../../domain/acme/renewal.ts';
import type { IssuedCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { OrderId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import { findCertificate } from './find-certificate.ts';
import type { AcmeCaller, AcmeOrderTools } from './tools.ts';

export interface ShownAcmeOrder {
  readonly order: Order;
  readonly acme: AcmeOrder;
  readonly authorizations: readonly Authorization[];
  readonly status: AcmeOrderStatus;
}

export interface ShowAcmeOrders {
  order(caller: AcmeCaller, id: OrderId): Promise<ShownAcmeOrder>;
  /** Ids, the oldest first. */
  orders(caller: AcmeCaller, page: Page): Promise<OrderId[]>;
  /** The certificate of an order of the account; never another one of the order. */
  certificate(caller: AcmeCaller, id: string): Promise<IssuedCertificate>;
  /** Of any account: certificates are public. */
  renewalInfo(certId: string): Promise<RenewalInfo>;
}

export function showAcmeOrders(tools: AcmeOrderTools): ShowAcmeOrders {
  const { store, now } = tools;
  const certificates = findCertificate(tools);
  return {
    async order({ bound: { account } }, id) {
      const acme = await store.acmeOrders.find(account.accountId, id);
      const order = acme?.acmeAccountId === account.id ? await store.orders.find(account.accountId, id) : undefined;
      if (!acme || !order) throw notFound('There is no such order.', '没有此订单。');
      const authorizations = await store.authorizations.ofOrder(id);
      return { order, acme, authorizations, status: acmeOrderStatus(order, acme, authorizations, now()) };
    },

    orders: ({ bound: { account } }, page) => store.acmeOrders.list(account.id, page),

    async certificate({ bound: { account } }, id) {
      const acme = await store.acmeOrders.findByCertificate(account.accountId, id);
      const isOwn = acme?.acmeAccountId === account.id;
      const found = isOwn ? await store.certificates.find(account.accountId, id) : undefined;
      if (found?.state === 'issued') return found;
      throw notFound('There is no such certificate.', '没有此证书。');
    },

    async renewalInfo(certId) {
      const found = await certificates.findByText(certId);
      if (found) return renewalInfo(found, now());
      throw notFound('There is no such certificate.', '没有此证书。');
    },
  };
}

const notFound = (en: string, zh: string): AcmeProblem => new AcmeProblem('notFound', { en, zh });
