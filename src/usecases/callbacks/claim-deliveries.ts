// Taking work: what is due in the lane of one account, as much of it as there are places for, each under a lease that is
// durable before anything is sent. What the settings of this moment hold back is set aside instead.
import type { CallbackSettings } from '../../domain/callbacks/callback.ts';
import {
  heldBack,
  isAiling,
  isClosed,
  isInOrderTaken,
  type Lane,
  LEASE_MS,
  type SuppressionReason,
} from '../../domain/callbacks/delivery.ts';
import type { WaitingEvent } from '../../domain/callbacks/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import type { OutboundUrl } from '../../domain/egress/outbound.ts';
import { callbackUrl } from '../../domain/egress/url.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { DeliverySlots, Place } from './delivery-slots.ts';

/** A lane without a place is looked at again then, unless one becomes free before. */
const CROWDED_MS = 2_000;
/** Set aside at once. */
const MAX_HELD_BACK = 500;

export interface Claimed {
  readonly event: WaitingEvent;
  readonly settings: CallbackSettings;
  readonly url: OutboundUrl;
  readonly token: string;
  readonly slot: Disposable;
}

export interface LaneWork {
  readonly claimed: readonly Claimed[];
  /** There is more; null when there is not. */
  readonly waitsFor: Place | 'nothing' | null;
}

export interface ClaimTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly slots: DeliverySlots;
}

const NOTHING: LaneWork = { claimed: [], waitsFor: null };

/** Places are given back when the transaction fails: what was not leased is not sent. */
export function claimDeliveries({ store, now, newId, slots }: ClaimTools): (accountId: AccountId) => Promise<LaneWork> {
  return async (accountId) => {
    using places = new DisposableStack();
    const work = await store.transaction(async (tx) => {
      const lane = await tx.callbackLanes.take(accountId);
      if (!lane) return NOTHING;
      if (isClosed(lane, now())) {
        await tx.callbackLanes.save({ ...lane, notBefore: lane.closedUntil });
        return NOTHING;
      }
      const settings = await tx.callbacks.find(accountId);
      const url = settings && urlOf(settings);
      return settings && url && !settings.isDisabled
        ? await claimIn(tx, lane, settings, url, places)
        : await setAside(tx, lane, settings?.isDisabled ? 'disabled' : 'not_configured');
    });
    places.move();
    return work;
  };

  async function setAside(tx: Repositories, lane: Lane, reason: SuppressionReason): Promise<LaneWork> {
    const at = now();
    const due = [
      ...(await tx.deliveryQueue.dueEvents(lane.accountId, at, false, MAX_HELD_BACK)),
      ...(isInOrderTaken(lane, at) ? [] : await tx.deliveryQueue.dueEvents(lane.accountId, at, true, MAX_HELD_BACK)),
    ];
    if (due.length > 0) await tx.deliveryQueue.suppress(idsOf(due), reason, at);
    await tx.callbackLanes.save({ ...lane, notBefore: 0 });
    return { claimed: [], waitsFor: due.length < MAX_HELD_BACK ? null : 'nothing' };
  }

  async function claimIn(
    tx: Repositories,
    lane: Lane,
    settings: CallbackSettings,
    url: OutboundUrl,
    places: DisposableStack,
  ): Promise<LaneWork> {
    const { accountId } = lane;
    const at = now();
    // One at a time finds out whether an ailing receiver is back.
    const room = isAiling(lane) ? Math.min(1, 1 - slots.underWay(accountId)) : slots.roomOf(accountId);
    const due = room > 0 ? await dueIn(tx, lane, at, room) : [];
    const token = newId();
    const claimed: Claimed[] = [];
    const unwanted: WaitingEvent[] = [];
    let crowded: Place = { accountId, host: url.host, isFirst: lane.failures === 0 };
    for (const event of due) {
      if (heldBack(settings, event.action)) {
        unwanted.push(event);
        continue;
      }
      const place = { accountId, host: url.host, isFirst: event.tries === 0 && lane.failures === 0 };
      const slot = slots.take(place);
      if (slot) claimed.push({ event, settings, url, token, slot: places.use(slot) });
      else crowded = place;
    }
    const until = at + LEASE_MS;
    if (claimed.length > 0) await tx.deliveryQueue.lease(idsOf(claimed.map(({ event }) => event)), { token, until });
    if (unwanted.length > 0) await tx.deliveryQueue.suppress(idsOf(unwanted), 'action_not_enabled', at);
    const inOrderUntil = claimed.some(({ event }) => event.inOrder) ? until : lane.inOrderUntil;
    const isFull = due.length >= room || claimed.length + unwanted.length < due.length;
    await tx.callbackLanes.save({ ...lane, inOrderUntil, notBefore: isFull ? at + CROWDED_MS : 0 });
    if (unwanted.length > 0 && isFull) return { claimed, waitsFor: 'nothing' };
    // The one attempt of an ailing lane opens it, or closes it: there is nothing to wait for besides.
    return { claimed, waitsFor: isFull && !isAiling(lane) ? crowded : null };
  }

  /** Of those that were asked for in order there is one at a time, and it is the oldest. */
  async function dueIn(tx: Repositories, lane: Lane, at: number, room: number) {
    const { accountId } = lane;
    const next = isInOrderTaken(lane, at) ? [] : await tx.deliveryQueue.dueEvents(accountId, at, true, 1);
    return [...next, ...(await tx.deliveryQueue.dueEvents(accountId, at, false, room - next.length))];
  }
}

const idsOf = (events: readonly WaitingEvent[]): string[] => events.map(({ id }) => id);

/** What was saved under looser rules than today's cannot be called. */
function urlOf({ url }: CallbackSettings): OutboundUrl | undefined {
  try {
    return callbackUrl(url);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
