// Claims due events of a lane, as many as there are free slots, each under a lease that is durable before anything is
// sent. Events that the current settings exclude are suppressed instead; those of a suspended account wait. New events of
// lanes where nothing else waits are claimed together, without a detour through the queue of their lane.
import type { CallbackSettings } from '../../domain/callbacks/callback.ts';
import {
  DELIVERY_LEASE_MS,
  HELD_LANE_MS,
  isBreakerOpen,
  isDegraded,
  isInOrderLeased,
  type Lane,
  suppressionReason,
} from '../../domain/callbacks/delivery.ts';
import type { PendingEvent } from '../../domain/callbacks/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import type { OutboundUrl } from '../../domain/egress/outbound.ts';
import { callbackUrl } from '../../domain/egress/url.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { DeliverySlots, SlotRequest } from './concurrency-limits.ts';

/** A lane without a free slot is due again after this time; the dispatcher comes earlier if one becomes free. */
const NO_SLOT_MS = 2_000;
const MAX_SUPPRESSED = 500;

export interface ClaimedDelivery {
  readonly event: PendingEvent;
  readonly settings: CallbackSettings;
  readonly url: OutboundUrl;
  readonly token: string;
  readonly slot: Disposable;
}

export interface LaneClaim {
  readonly claimed: readonly ClaimedDelivery[];
  /** What else is due in the lane: nothing (null), more once that slot is free, or more at once. */
  readonly remaining: SlotRequest | 'ready' | null;
}

export interface ClaimTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly slots: DeliverySlots;
}

const NOTHING: LaneClaim = { claimed: [], remaining: null };

type Accepts = (accountId: AccountId) => boolean;

export interface ClaimDeliveries {
  /** One transaction for several lanes. Leaves out those that `isWorthwhile` no longer holds for when their turn comes. */
  fromLanes(accountIds: readonly AccountId[], isWorthwhile?: Accepts): Promise<ReadonlyMap<AccountId, LaneClaim>>;
  /**
   * Claims new events of idle lanes that `isWorthwhile` accepts. The others stay new: a transaction that holds some lanes must not
   * wait for others.
   */
  fromNew(limit: number, isWorthwhile: Accepts): Promise<NewClaim>;
}

interface NewClaim {
  readonly claimed: readonly ClaimedDelivery[];
  /** Others are new. */
  readonly hasOthers: boolean;
}

export function claimDeliveries({ store, now, newId, slots }: ClaimTools): ClaimDeliveries {
  /** Releases the slots if the transaction fails: an event without a lease is not sent. */
  async function claiming<T>(
    work: (tx: Repositories, token: string, acquired: DisposableStack) => Promise<T>,
  ): Promise<T> {
    using acquired = new DisposableStack();
    const result = await store.transaction((tx) => work(tx, newId(), acquired));
    acquired.move();
    return result;
  }

  return {
    fromLanes: (accountIds, isWorthwhile = () => true) =>
      claiming(async (tx, token, acquired) => {
        const byLane = new Map<AccountId, LaneClaim>();
        for (const accountId of accountIds) {
          if (isWorthwhile(accountId)) byLane.set(accountId, await claimLane(tx, accountId, token, acquired));
        }
        return byLane;
      }),

    fromNew: (limit, isWorthwhile) =>
      claiming(async (tx, token, acquired) => {
        const events = await tx.deliveryQueue.newEvents(limit);
        const at = now();
        const targets = await idleTargets(tx, accountsOf(events).filter(isWorthwhile), at);
        const claimed = events.flatMap((event): ClaimedDelivery[] => {
          const { accountId } = event;
          const target = targets.get(accountId);
          if (!target || suppressionReason(target.settings, event.action)) return [];
          const slot = slots.tryAcquire({ accountId, host: target.url.host, isFirst: true });
          return slot ? [{ event, ...target, token, slot: acquired.use(slot) }] : [];
        });
        if (claimed.length > 0) {
          const until = at + DELIVERY_LEASE_MS;
          const leased = claimed.map(({ event }) => event);
          await tx.deliveryQueue.lease(idsOf(leased), { token, until });
          await tx.callbackLanes.wakeBy(accountsOf(leased), until);
        }
        return { claimed, hasOthers: claimed.length < events.length || events.length === limit };
      }),
  };

  /** Where to send what is new, in lanes where it need not wait for anything. */
  async function idleTargets(
    tx: Repositories,
    accountIds: readonly AccountId[],
    at: number,
  ): Promise<ReadonlyMap<AccountId, Pick<ClaimedDelivery, 'settings' | 'url'>>> {
    const idle = accountIds.length > 0 && !slots.isFull() ? await tx.callbackLanes.lockIdle(accountIds, at) : [];
    const found = idle.length > 0 ? await tx.callbacks.findAll(idle) : [];
    return new Map(
      found.flatMap((settings) => {
        const url = urlOf(settings);
        return url ? [[settings.accountId, { settings, url }] as const] : [];
      }),
    );
  }

  async function claimLane(
    tx: Repositories,
    accountId: AccountId,
    token: string,
    acquired: DisposableStack,
  ): Promise<LaneClaim> {
    const lane = await tx.callbackLanes.tryLock(accountId);
    if (!lane) return NOTHING;
    if (lane.isHeld) {
      await tx.callbackLanes.save({ ...lane, notBefore: now() + HELD_LANE_MS });
      return NOTHING;
    }
    if (isBreakerOpen(lane, now())) {
      await tx.callbackLanes.save({ ...lane, notBefore: lane.openUntil });
      return NOTHING;
    }
    const settings = await tx.callbacks.find(accountId);
    const url = settings && urlOf(settings);
    return settings && url && !settings.isDisabled
      ? await claimDue(tx, lane, { settings, url, token }, acquired)
      : await suppressDue(tx, lane, settings);
  }

  async function suppressDue(tx: Repositories, lane: Lane, settings: CallbackSettings | undefined): Promise<LaneClaim> {
    const at = now();
    const { accountId } = lane;
    const due = [
      ...(await tx.deliveryQueue.dueEvents(accountId, at, false, MAX_SUPPRESSED)),
      ...(isInOrderLeased(lane, at) ? [] : await tx.deliveryQueue.dueEvents(accountId, at, true, MAX_SUPPRESSED)),
    ];
    // Without a valid URL there is nothing to send to, whatever else the settings say.
    const reasons = Map.groupBy(due, ({ action }) => suppressionReason(settings, action) ?? 'not_configured');
    for (const [reason, events] of reasons) await tx.deliveryQueue.suppress(idsOf(events), reason, at);
    await tx.callbackLanes.save({ ...lane, notBefore: 0 });
    return { claimed: [], remaining: due.length < MAX_SUPPRESSED ? null : 'ready' };
  }

  async function claimDue(
    tx: Repositories,
    lane: Lane,
    { settings, url, token }: Pick<ClaimedDelivery, 'settings' | 'url' | 'token'>,
    acquired: DisposableStack,
  ): Promise<LaneClaim> {
    const { accountId } = lane;
    const at = now();
    // A degraded receiver is probed with one attempt at a time.
    const room = isDegraded(lane) ? Math.min(1, 1 - slots.inFlight(accountId)) : slots.freeFor(accountId, url.host);
    const due = room > 0 ? await dueIn(tx, lane, at, room) : [];
    const claimed: ClaimedDelivery[] = [];
    const suppressed: PendingEvent[] = [];
    let blocked: SlotRequest = { accountId, host: url.host, isFirst: lane.failures === 0 };
    for (const event of due) {
      if (suppressionReason(settings, event.action)) {
        suppressed.push(event);
        continue;
      }
      const request = { accountId, host: url.host, isFirst: event.tries === 0 && lane.failures === 0 };
      const slot = slots.tryAcquire(request);
      if (slot) claimed.push({ event, settings, url, token, slot: acquired.use(slot) });
      else blocked = request;
    }
    const until = at + DELIVERY_LEASE_MS;
    if (claimed.length > 0) await tx.deliveryQueue.lease(idsOf(claimed.map(({ event }) => event)), { token, until });
    if (suppressed.length > 0) await tx.deliveryQueue.suppress(idsOf(suppressed), 'action_not_enabled', at);
    const inOrderUntil = claimed.some(({ event }) => event.inOrder) ? until : lane.inOrderUntil;
    const hasMore = due.length >= room || claimed.length + suppressed.length < due.length;
    await tx.callbackLanes.save({ ...lane, inOrderUntil, notBefore: hasMore ? at + NO_SLOT_MS : 0 });
    if (suppressed.length > 0 && hasMore) return { claimed, remaining: 'ready' };
    // In a degraded lane the outcome of the probe decides what follows; a free slot changes nothing.
    return { claimed, remaining: hasMore && !isDegraded(lane) ? blocked : null };
  }

  /** Of a replayed range only the oldest event, and only if none is being sent. */
  async function dueIn(tx: Repositories, lane: Lane, at: number, room: number): Promise<PendingEvent[]> {
    const { accountId } = lane;
    const next =
      !lane.hasInOrder || isInOrderLeased(lane, at) ? [] : await tx.deliveryQueue.dueEvents(accountId, at, true, 1);
    return [...next, ...(await tx.deliveryQueue.dueEvents(accountId, at, false, room - next.length))];
  }
}

const idsOf = (events: readonly PendingEvent[]): string[] => events.map(({ id }) => id);
const accountsOf = (events: readonly PendingEvent[]): AccountId[] => [
  ...new Set(events.map(({ accountId }) => accountId)),
];

/** Parsed URLs: settings are read for every claim, and change rarely. */
const parsed = new Map<string, OutboundUrl>();
const MAX_PARSED = 2_000;

/** Undefined for a URL that was saved under looser rules than the current ones. */
function urlOf({ url: text }: CallbackSettings): OutboundUrl | undefined {
  try {
    const url = parsed.get(text) ?? callbackUrl(text);
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(text, url);
    return url;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
