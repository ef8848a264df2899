// The dispatcher: polls for due events when woken, claims them lane by lane as slots allow, and sends them. Several
// instances may share a store; leases keep them apart. A crash loses nothing: the only state outside the store is a hint
// which lanes to poll before they are due.

import { FAULTY_LANE_MS } from '../../domain/callbacks/delivery.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { mapLimit } from '../../kernel/concurrency.ts';
import { type AttemptTools, attemptDelivery } from './attempt-delivery.ts';
import { type ClaimedDelivery, type ClaimTools, claimDeliveries, type LaneClaim } from './claim-deliveries.ts';
import { type ConcurrencyLimits, deliverySlots } from './concurrency-limits.ts';
import { dispatcherTurns, type TurnPurpose } from './dispatcher-turns.ts';

export interface Dispatcher {
  /** Polls in the background. Returns at once. */
  wake(): void;
  /** Claims what it can, and resolves when that is in flight. Never rejects. */
  poll(): Promise<void>;
  /** Claims nothing more. Resolves when all attempts have ended; those that exceed `withinMs` are canceled and released. */
  stop(withinMs: number): Promise<void>;
}

export type DispatcherTools = Omit<AttemptTools, 'turns'> &
  Omit<ClaimTools, 'slots'> & {
    readonly limits: ConcurrencyLimits;
    readonly onError: (error: unknown) => void;
  };

const NEW_PER_POLL = 500;
const LANES_PER_POLL = 64;
/** Lanes of one transaction. While it runs it holds their locks, and on SQLite the writer. */
const LANES_PER_CLAIM = 16;
const CLAIMS_AT_ONCE = 4;
/** Lanes beyond that are found by their due time only. */
const MAX_BACKLOG = 256;

export function deliverCallbacks(tools: DispatcherTools): Dispatcher {
  const { store, now, onError } = tools;
  const slots = deliverySlots(tools.limits);
  const claim = claimDeliveries({ ...tools, slots });
  const turns = dispatcherTurns();
  const attempt = attemptDelivery({ ...tools, turns });
  const stopping = new AbortController();
  const inFlight = new Set<Promise<void>>();
  /** Lanes with more due events than slots. */
  const backlog = new Map<AccountId, NonNullable<LaneClaim['remaining']>>();
  let isStopped = false;
  /** What the next poll is for. */
  let requested: TurnPurpose | undefined;
  let polling: Promise<void> | undefined;

  function send(claimed: ClaimedDelivery): void {
    const { accountId, inOrder } = claimed.event;
    const onEnd = () => {
      const isAwaited = slots.isFull() || backlog.has(accountId);
      claimed.slot[Symbol.dispose]();
      // The slot is used again in the turn that records the outcome.
      if (isAwaited) wake();
    };
    const sending = attempt(claimed, stopping.signal, onEnd)
      // Nothing is lost: the lease expires, and the event is sent again.
      .catch(onError)
      .finally(() => {
        inFlight.delete(sending);
        if (!isStopped && !backlog.has(accountId)) void request(inOrder ? 'claim' : 'record');
      });
    inFlight.add(sending);
    turns.noteSent();
  }

  const mayClaim = (remaining: LaneClaim['remaining'] | undefined) =>
    remaining === 'ready' || (remaining != null && slots.isFree(remaining));

  /** A lane that fails must not stop the others. */
  async function workLanes(accountIds: readonly AccountId[], due: ReadonlySet<AccountId>): Promise<void> {
    if (isStopped || slots.isFull()) return;
    try {
      // The first lanes of a backlog may take all slots that were free. A due one gets another due time in any case.
      const isWorthwhile = (accountId: AccountId) => due.has(accountId) || mayClaim(backlog.get(accountId));
      for (const [accountId, { claimed, remaining }] of await claim.fromLanes(accountIds, isWorthwhile)) {
        backlog.delete(accountId);
        if (remaining && backlog.size < MAX_BACKLOG) backlog.set(accountId, remaining);
        if (remaining === 'ready') requested = 'claim';
        for (const one of claimed) send(one);
      }
    } catch (error) {
      // A busy store recovers soon; a fault of a lane itself does not.
      const [accountId, ...others] = accountIds;
      if (!(error instanceof Refusal) && others.length > 0) {
        for (const one of accountIds) await workLanes([one], due);
        return;
      }
      for (const one of accountIds) backlog.delete(one);
      onError(error);
      if (accountId !== undefined && !(error instanceof Refusal)) await postpone(accountId).catch(onError);
    }
  }

  const postpone = (accountId: AccountId): Promise<void> =>
    store.transaction(async (tx) => {
      const lane = await tx.callbackLanes.tryLock(accountId);
      if (lane) await tx.callbackLanes.save({ ...lane, notBefore: now() + FAULTY_LANE_MS });
    });

  async function claimNew(): Promise<void> {
    // What is new in a lane with a backlog waits behind it.
    const { claimed, hasOthers } = await claim
      .fromNew(NEW_PER_POLL, (accountId) => !isStopped && !backlog.has(accountId))
      .catch((error) => {
        if (error instanceof Refusal) throw error;
        // A fault of one lane, which is reported when it is worked alone.
        return { claimed: [], hasOthers: true };
      });
    for (const one of claimed) send(one);
    if (!hasOthers) return;
    const moved = await store.transaction((tx) => tx.deliveryQueue.enqueueNew(NEW_PER_POLL, now()));
    if (moved === NEW_PER_POLL) requested = 'claim';
  }

  async function pollOnce(): Promise<void> {
    const free = [...backlog].filter(([, remaining]) => mayClaim(remaining)).map(([id]) => id);
    if (await store.deliveryQueue.hasNew()) await claimNew();
    // The end of an attempt wakes the dispatcher again.
    if (slots.isFull()) return;
    const due = await store.callbackLanes.due(now(), LANES_PER_POLL);
    if (due.length === LANES_PER_POLL) requested = 'claim';
    const lanes = [...new Set([...due, ...free])];
    const batches = Array.from({ length: Math.ceil(lanes.length / LANES_PER_CLAIM) }, (_, index) =>
      lanes.slice(index * LANES_PER_CLAIM, (index + 1) * LANES_PER_CLAIM),
    );
    // Concurrent claims share a commit on SQLite; each takes a connection on PostgreSQL.
    const isDue = new Set(due);
    await mapLimit(CLAIMS_AT_ONCE, batches, (batch) => workLanes(batch, isDue));
  }

  async function pollWhileRequested(): Promise<void> {
    try {
      while (requested && !isStopped) {
        await turns.next(requested);
        requested = undefined;
        await pollOnce();
      }
    } catch (error) {
      onError(error);
    } finally {
      polling = undefined;
    }
  }

  function request(purpose: TurnPurpose): Promise<void> {
    if (requested !== 'claim') requested = purpose;
    turns.hasten(requested);
    polling ??= pollWhileRequested();
    return polling;
  }

  const poll = (): Promise<void> => request('claim');

  function wake(): void {
    if (!isStopped) void poll();
  }

  return {
    wake,
    poll,
    async stop(withinMs) {
      isStopped = true;
      const deadline = setTimeout(() => stopping.abort(), withinMs);
      await polling;
      while (inFlight.size > 0) await Promise.all(inFlight);
      clearTimeout(deadline);
    },
  };
}
