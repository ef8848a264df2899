// An order: what was ordered, how its names are validated, and the table of its statuses.
import { Refusal } from '../errors.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { SubjectFields } from './subject.ts';

export const ORDER_STATUSES = [
  'domain_verifing', // The spelling existing clients compare with.
  'issuing',
  'issued',
  'reissuing',
  'revoked',
  'canceled',
  'expired',
  'rejected',
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

/** How an order begins: its names need validation first, or all of them are validated. */
export const FIRST_STATUSES = ['domain_verifing', 'issuing'] as const satisfies readonly OrderStatus[];

/** All transitions (ADR 0007). A reissue that is issued before its answer makes none. */
export const TRANSITIONS: Readonly<Record<OrderStatus, readonly OrderStatus[]>> = {
  domain_verifing: ['issuing', 'canceled', 'rejected'],
  issuing: ['issued', 'domain_verifing', 'canceled'],
  issued: ['reissuing', 'revoked', 'expired'],
  reissuing: ['issued', 'revoked', 'expired'],
  revoked: [],
  canceled: [],
  expired: [],
  rejected: [],
};

export function requireTransition(from: OrderStatus, to: OrderStatus): void {
  if (TRANSITIONS[from].includes(to)) return;
  throw new Refusal('order_state_conflict', {
    reason: {
      en: `An order that is ${from} cannot become ${to}.`,
      zh: `状态为 ${from} 的订单不能变为 ${to}。`,
    },
    details: { status: from },
  });
}

/** Something is pending: the first certificate, which ends the order, or a reissue. */
export const isCancelable = ({ status }: Order): boolean =>
  status === 'reissuing' || TRANSITIONS[status].includes('canceled');

export const DCV_METHODS = ['dns', 'file', 'email', 'dns-persist'] as const;
export type DcvMethod = (typeof DCV_METHODS)[number];
export const DCV_SCOPES = ['fqdn', 'base_domain'] as const;
export type DcvScope = (typeof DCV_SCOPES)[number];

export const PERSIST_POLICIES = ['fqdn', 'wildcard'] as const;
export type PersistPolicy = (typeof PERSIST_POLICIES)[number];

/** How the names of an order are validated. Without names there is no method. */
export interface DomainValidation {
  readonly dcvMethod: DcvMethod | null;
  readonly dcvScope: DcvScope;
  /** Unix seconds. Null is "no expiry"; 0 occurs in requests only. */
  readonly persistUntil: number | null;
  readonly persistPolicy: PersistPolicy;
}

export interface Order extends DomainValidation {
  readonly id: OrderId;
  readonly accountId: AccountId;
  readonly productId: string;
  /** The customer's own id for it, unique within the account. */
  readonly alternativeId: string | null;
  readonly status: OrderStatus;
  /**
   * Those of the current certificate, or of the order before there is one. They change in the transaction that changes
   * currentCertificateId, and are copied here so that a list of orders reads one table.
   */
  readonly commonName: string | null;
  readonly names: readonly string[];
  /** Fixed when it is placed. */
  readonly subject: SubjectFields | null;
  readonly currentCertificateId: CertificateId | null;
  /** A first certificate or a reissue that waits for validation; at most one at a time. */
  readonly pendingCertificateId: CertificateId | null;
  readonly createdAt: number;
  /** The first moment at which the order is over. */
  readonly termEndsAt: number;
  /** Grows with every change. A writer names the revision it has read, so that of two instances only one wins. */
  readonly revision: number;
}

/**
 * Placed over ACME, and without a CSR so far: there is nothing to issue, and no certificate waits (ADR 0069). What is known
 * about it besides is its AcmeOrder.
 */
export type OrderAwaitingCsr = Order & {
  readonly status: 'domain_verifing';
  readonly currentCertificateId: null;
  readonly pendingCertificateId: null;
};

export const awaitsCsr = (order: Order): order is OrderAwaitingCsr =>
  order.status === 'domain_verifing' && order.pendingCertificateId === null;

/** Its first certificate is being signed before the answer: the caller knows no id yet. */
export const isBeingPlaced = ({ status, pendingCertificateId }: Order): boolean =>
  status === 'issuing' && pendingCertificateId === null;
