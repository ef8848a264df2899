// What delivering callbacks needs from the store: events that wait, the lanes they wait in, and what became of them.
// Looking for work is the service's own business and names no account; everything an account asks for names it.

import type { OrderStatus } from '../certificate/order.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { Secret } from '../secret.ts';
import type { CallbackAction, CallbackSettings } from './callback.ts';
import type { Delivery, DeliveryAttempt, DeliveryState, GivenUpReason, Lane, SuppressionReason } from './delivery.ts';

/** An event that can be sent. */
export interface WaitingEvent {
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly action: CallbackAction;
  readonly body: string;
  readonly createdAt: number;
  readonly attempts: number;
  readonly tries: number;
  readonly begunAt: number;
  readonly inOrder: boolean;
}

export interface Lease {
  readonly token: string;
  readonly until: number;
}

export interface LaneChange extends Lane {
  /** Looked at again not before then, whatever waits. */
  readonly notBefore: number;
}

/** An attempt that was made under a lease. */
export interface Attempted {
  readonly event: WaitingEvent;
  readonly token: string;
  readonly attempt: DeliveryAttempt;
}

export interface DeliveryFilter {
  readonly orderId?: OrderId | undefined;
  readonly action?: CallbackAction | undefined;
  readonly state?: DeliveryState | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

export interface QueueFacts {
  /** Counted up to a bound. */
  readonly pending: number;
  readonly oldestPendingAt: number | null;
  readonly closedLanes: number;
}

/** For whoever delivers. What is read inside a transaction stays as it is until that ends. */
export interface DeliveryQueue {
  /** A look, outside of a transaction. */
  hasNew(): Promise<boolean>;
  /** Puts new events, the oldest first, into the lanes of their accounts. Returns how many there were. */
  sortNew(limit: number, now: number): Promise<number>;
  /** What is due in a lane, the longest waiting first. */
  dueEvents(accountId: AccountId, now: number, inOrder: boolean, limit: number): Promise<WaitingEvent[]>;
  lease(ids: readonly string[], lease: Lease): Promise<void>;
  suppress(ids: readonly string[], reason: SuppressionReason, at: number): Promise<void>;
  /** Each false when the lease was lost: somebody else has the event now. */
  delivered(attempted: Attempted, at: number): Promise<boolean>;
  retryAt(attempted: Attempted, dueAt: number): Promise<boolean>;
  gaveUp(attempted: Attempted, at: number, reason: GivenUpReason): Promise<boolean>;
  /** Nothing was attempted after all. */
  release(event: WaitingEvent, token: string, dueAt: number): Promise<boolean>;
  /** Events that wait until after then are due now: a clock that was far ahead has put them there. Some of them. */
  bringBack(accountId: AccountId, after: number, now: number, limit: number): Promise<void>;
  /** Of the events due in the lane, those that have been tried since before: given up. */
  giveUpBegunBefore(
    accountId: AccountId,
    before: number,
    now: number,
    isInOrderToo: boolean,
    limit: number,
  ): Promise<WaitingEvent[]>;
}

/** Read inside a transaction, a lane is nobody else's until that ends. */
export interface CallbackLanes {
  /** The accounts of those with something to do, the longest waiting first. A look, outside of a transaction. */
  due(now: number, limit: number): Promise<string[]>;
  /** Of lanes that are due after then only. */
  farFuture(after: number, limit: number): Promise<string[]>;
  /** Undefined when somebody else has it right now. */
  take(accountId: AccountId): Promise<Lane | undefined>;
  /** Waits until nobody else has it. */
  wait(accountId: AccountId): Promise<Lane>;
  /** To be looked at when the first of its events is due. */
  save(lane: LaneChange): Promise<void>;
  /** Failures count from zero again, for a lane that has any. */
  reset(accountId: AccountId, now: number): Promise<void>;
}

/** For accounts and operators. */
export interface Deliveries {
  find(accountId: AccountId, id: string): Promise<Delivery | undefined>;
  /**
   * The newest first. A filter that hardly anything passes is not searched for to the end: then `nextAfter` says where to
   * go on, although the page is not full.
   */
  list(
    accountId: AccountId,
    filter: DeliveryFilter,
    page: Page,
  ): Promise<{ deliveries: Delivery[]; nextAfter: string | null }>;
  attemptsOf(ids: readonly string[]): Promise<ReadonlyMap<string, DeliveryAttempt[]>>;
  /** Begins anew, unless it is under way right now: then it stays as it is. */
  resend(accountId: AccountId, id: string, now: number): Promise<void>;
  /** The oldest first, to be sent one after the other. */
  resendRange(
    accountId: AccountId,
    filter: DeliveryFilter & { readonly state: Exclude<DeliveryState, 'pending'> },
    actions: readonly CallbackAction[] | null,
    page: Page,
    now: number,
  ): Promise<{ resent: number; nextAfter: string | null }>;
  /** Deletes some of what was settled before then, with its attempts; returns how many. */
  forget(before: number, limit: number): Promise<number>;
  queueFacts(): Promise<QueueFacts>;
  /** How many were given up since then, counted up to the limit. */
  failedSince(since: number, limit: number): Promise<number>;
}

export interface OutboxEvent {
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  /** As it is once the fact is committed: the revocation of an earlier certificate leaves an order `issued`. */
  readonly orderStatus: OrderStatus;
  readonly certificateId: CertificateId;
  readonly action: CallbackAction;
  readonly createdAt: number;
}

export interface Outbox {
  add(event: OutboxEvent): Promise<void>;
}

/** Both secrets are sealed before they reach the disk. */
export interface Callbacks {
  find(accountId: AccountId): Promise<CallbackSettings | undefined>;
  /** Nobody else changes them until the transaction ends. */
  findForUpdate(accountId: AccountId): Promise<CallbackSettings | undefined>;
  /**
   * Takes the place of what was saved before, except for the signing secret: the first one stays. Returns the
   * settings as they stand.
   */
  save(settings: CallbackSettings): Promise<CallbackSettings>;
  /** The secret of before signs beside the new one until then. Undefined when nothing was saved. */
  rotateSecret(
    accountId: AccountId,
    secret: Secret,
    times: { readonly now: number; readonly formerUntil: number },
  ): Promise<CallbackSettings | undefined>;
  /** False when nothing was saved. */
  delete(accountId: AccountId): Promise<boolean>;
}
