// The store's ports for callbacks: settings, outbox, delivery queue, lanes, delivery log. The queue and the lanes are for
// the dispatcher and span accounts; everything an account may read names the account.

import type { OrderStatus } from '../certificate/order.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { CertificateRef } from '../revocation/ports.ts';
import type { Secret } from '../secret.ts';
import type { CallbackAction, CallbackSettings } from './callback.ts';
import type { Delivery, DeliveryAttempt, DeliveryState, GivenUpReason, Lane, SuppressionReason } from './delivery.ts';
import type { DueNotices, NoticeCursor } from './expiry.ts';

/** An event in the queue, with the body to send. */
export interface PendingEvent {
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly action: CallbackAction;
  readonly body: string;
  readonly createdAt: number;
  /** All attempts ever made; numbers the next one. */
  readonly attempts: number;
  /** Attempts since `begunAt`; the position in the retry schedule. */
  readonly tries: number;
  /** When the event was created, or last resent. */
  readonly begunAt: number;
  /** Part of a replayed range, which is sent oldest first and one at a time. */
  readonly inOrder: boolean;
}

export interface Lease {
  readonly token: string;
  readonly until: number;
}

export interface LaneChange extends Omit<Lane, 'isHeld' | 'hasInOrder'> {
  /** The lane is not due before this time, whatever waits in it. */
  readonly notBefore: number;
}

/** An attempt made under a lease. */
export interface LeasedAttempt {
  readonly event: PendingEvent;
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

export type ResendFilter = DeliveryFilter & { readonly state: Exclude<DeliveryState, 'pending'> };

/** Events that were suppressed because callbacks were disabled, and have not been resent. */
export interface HeldBackEvents {
  /** Up to a bound. */
  readonly count: number;
  readonly hasMore: boolean;
  /** Of the oldest; null without any. A range that is resent from then on has all of them. */
  readonly since: number | null;
}

export interface QueueFacts {
  /** Counted up to a bound. */
  readonly pending: number;
  readonly oldestPendingAt: number | null;
  readonly degradedLanes: number;
}

/** For the dispatcher. Rows read inside a transaction are locked until it ends. */
export interface DeliveryQueue {
  /** Unlocked read; a hint only. */
  hasNew(): Promise<boolean>;
  /** Events that are in no lane yet: half of them the oldest, half the newest, by id. */
  newEvents(limit: number): Promise<PendingEvent[]>;
  /** Moves up to `limit` of them into the lanes of their accounts, due at once. Returns how many. */
  enqueueNew(limit: number, now: number): Promise<number>;
  /** Due events of a lane, longest waiting first. */
  dueEvents(accountId: AccountId, now: number, inOrder: boolean, limit: number): Promise<PendingEvent[]>;
  lease(ids: readonly string[], lease: Lease): Promise<void>;
  suppress(ids: readonly string[], reason: SuppressionReason, at: number): Promise<void>;
  /** Returns those whose lease held; of the others nothing is written. */
  markDelivered(leased: readonly LeasedAttempt[], at: number): Promise<readonly LeasedAttempt[]>;
  /** Like the one below, false if the lease was lost; then nothing is written. */
  scheduleRetry(leased: LeasedAttempt, dueAt: number): Promise<boolean>;
  markFailed(leased: LeasedAttempt, at: number, reason: GivenUpReason): Promise<boolean>;
  /** Gives a lease back without an attempt. False if it was lost. */
  release(event: PendingEvent, token: string, dueAt: number): Promise<boolean>;
  /** Makes events due now that a clock which was ahead has leased or scheduled: a bounded number of those due last. */
  repair(accountId: AccountId, now: number, maxDelayMs: number): Promise<void>;
  /** Fails due events whose retries began before the cutoff, and returns them. */
  failBegunBefore(
    accountId: AccountId,
    cutoff: number,
    options: { readonly now: number; readonly includeInOrder: boolean; readonly limit: number },
  ): Promise<PendingEvent[]>;
}

/** Lanes are locked by `tryLock` and `lock` until the transaction ends. */
export interface CallbackLanes {
  /** Accounts with due lanes, longest waiting first. Unlocked read; a hint only. */
  due(now: number, limit: number): Promise<AccountId[]>;
  /** Which of the next `limit` lanes have times that a clock which was ahead has set. No `nextAfter` after the last lane. */
  stray(
    page: Page,
    now: number,
    maxDelayMs: number,
  ): Promise<{ readonly stray: AccountId[]; readonly nextAfter: AccountId | undefined }>;
  /** Undefined if another transaction holds the lane. */
  tryLock(accountId: AccountId): Promise<Lane | undefined>;
  /** Waits for the lock. */
  lock(accountId: AccountId): Promise<Lane>;
  /** Locks those of the lanes that no other transaction holds and where nothing is due, held back or failing. */
  lockIdle(accountIds: readonly AccountId[], now: number): Promise<AccountId[]>;
  /** Makes lanes due at that time, unless they are due earlier: events in them are leased until then. */
  wakeBy(accountIds: readonly AccountId[], at: number): Promise<void>;
  /** Also makes the lane due when its first event is. */
  save(lane: LaneChange): Promise<void>;
  /** Resets failures and breaker, and makes the lanes due. Does nothing in a lane without failures. */
  reset(accountIds: readonly AccountId[], now: number): Promise<void>;
  /** Resets failures and breaker, and makes the lane due, whatever its state. */
  restart(accountId: AccountId, now: number): Promise<void>;
}

/** The delivery log, for accounts and operators. */
export interface Deliveries {
  find(accountId: AccountId, id: string): Promise<Delivery | undefined>;
  /** Newest first. Reads a bounded number of rows: with a selective filter, a page that is not full may have `nextAfter`. */
  list(
    accountId: AccountId,
    filter: DeliveryFilter,
    page: Page,
  ): Promise<{ deliveries: Delivery[]; nextAfter: string | null }>;
  attemptsOf(ids: readonly string[]): Promise<ReadonlyMap<string, DeliveryAttempt[]>>;
  heldBack(accountId: AccountId, limit: number): Promise<HeldBackEvents>;
  /** Restarts the retry schedule. Does nothing while an attempt is in flight. */
  resend(accountId: AccountId, id: string, now: number): Promise<void>;
  /** Resends the oldest first and one at a time. */
  resendRange(
    accountId: AccountId,
    filter: ResendFilter,
    page: Page,
    options: { readonly actions: readonly CallbackAction[]; readonly now: number },
  ): Promise<{ resent: number; nextAfter: string | null }>;
  /** Deletes deliveries settled before that time, with their attempts. Returns how many. */
  deleteSettled(before: number, limit: number): Promise<number>;
  queueFacts(): Promise<QueueFacts>;
  /** How many were given up since that time, counted up to the limit. */
  failedSince(since: number, limit: number): Promise<number>;
}

export interface OutboxEvent {
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  /** After the commit: revoking an earlier certificate leaves an order `issued`. */
  readonly orderStatus: OrderStatus;
  readonly certificateId: CertificateId;
  readonly action: CallbackAction;
  readonly createdAt: number;
}

export interface Outbox {
  add(event: OutboxEvent): Promise<void>;
}

/** For the service's own work, over all accounts. */
export interface ExpiryNotices {
  /** Locks the cursor of the threshold until the transaction ends. A new threshold begins at `start`. */
  lockCursor(days: number, start: number): Promise<NoticeCursor>;
  moveCursor(days: number, cursor: NoticeCursor): Promise<void>;
  /**
   * Examines the next `limit` issued certificates, and returns those of accounts that list the action. `last` if the page is
   * full.
   */
  page(due: DueNotices, limit: number): Promise<{ candidates: CertificateRef[]; last: NoticeCursor | undefined }>;
}

/** Callback settings. Secrets are sealed before they are written. */
export interface Callbacks {
  find(accountId: AccountId): Promise<CallbackSettings | undefined>;
  /** Of those accounts that have any. */
  findAll(accountIds: readonly AccountId[]): Promise<CallbackSettings[]>;
  /** Locks the settings until the transaction ends. */
  findForUpdate(accountId: AccountId): Promise<CallbackSettings | undefined>;
  /** Replaces the settings but keeps an existing signing secret. Returns what is stored. */
  save(settings: CallbackSettings): Promise<CallbackSettings>;
  /** The former secret keeps signing until `formerUntil`. Undefined if there are no settings. */
  rotateSecret(
    accountId: AccountId,
    secret: Secret,
    times: { readonly now: number; readonly formerUntil: number },
  ): Promise<CallbackSettings | undefined>;
  /** False if there were no settings. */
  delete(accountId: AccountId): Promise<boolean>;
}
