// Store ports of ACME orders and their authorizations. Clients see what belongs to their ACME account and nothing else.
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { AcmeOrder } from './acme-order.ts';
import type { Authorization, SeenAuthorization } from './authorization.ts';
import type { StoredProblem } from './stored-problem.ts';

export interface AcmeOrders {
  /** Open until `finalize` or `end`. */
  insert(order: AcmeOrder, authorizations: readonly Authorization[]): Promise<void>;
  find(accountId: AccountId, orderId: OrderId): Promise<AcmeOrder | undefined>;
  findByCertificate(accountId: AccountId, certificateId: CertificateId): Promise<AcmeOrder | undefined>;
  /** Ids, the oldest first; without orders that ended without a certificate. */
  list(acmeAccountId: string, page: Page): Promise<OrderId[]>;
  /** The order that replaces the certificate, unless it ended without one. */
  findReplacing(accountId: AccountId, certificateId: CertificateId): Promise<OrderId | undefined>;
  /** Its CSR has arrived. */
  finalize(orderId: OrderId, keepUntil: number): Promise<void>;
  /** It ended without one, and so do its pending authorizations. */
  end(orderId: OrderId, problem?: StoredProblem): Promise<void>;
  /** Open orders whose time is over. */
  expired(now: number, limit: number): Promise<Pick<AcmeOrder, 'accountId' | 'orderId'>[]>;
  /** Makes the time of every open order of the ACME account be over. */
  expireAll(acmeAccountId: string, now: number): Promise<void>;
  /** Deletes orders that are not open, and their authorizations, whose time to be kept has ended. Returns how many. */
  deleteKeptUntil(before: number, limit: number): Promise<number>;
}

export interface Authorizations {
  find(acmeAccountId: string, id: string): Promise<Authorization | undefined>;
  /** In the order of the names. */
  ofOrder(orderId: OrderId): Promise<Authorization[]>;
  /** How many of the ACME account are pending, `most` at most. */
  countPending(acmeAccountId: string, most: number): Promise<number>;
  /** Compare-and-set: no-op, and false, unless it still is as it was seen. */
  save(authorization: Authorization, seen: SeenAuthorization): Promise<boolean>;
  /** Leases answered challenges that are due, the longest due first, of any account but `except`. */
  claim(now: number, leaseUntil: number, limit: number, except?: readonly AccountId[]): Promise<Authorization[]>;
  /** Makes those due whose lease a clock that was ahead has set. Returns how many. */
  repair(now: number): Promise<number>;
  /** Deletes those that expired before that time. Returns how many. */
  deleteExpired(before: number, limit: number): Promise<number>;
}
