// The dispatcher: looks for events to deliver whenever it is woken, takes what there are places for, lane by lane, and
// sends it. Many instances may do so on one store; leases keep them from doing the same. It holds nothing that a crash
// could lose: what it knows besides the store is only which lanes are worth a look before they say so themselves.

import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { type AttemptTools, attemptDelivery } from './attempt-delivery.ts';
import { type Claimed, type ClaimTools, claimDeliveries, type LaneWork } from './claim-deliveries.ts';
import { type DeliveryLimits, deliverySlots, type Place } from './delivery-slots.ts';

export interface DeliverCallbacks {
  /** There may be something to do. Returns at once. */
  wake(): void;
  /** Looks, takes what it can, and resolves when that is under way. */
  look(): Promise<void>;
  /** Takes nothing more. Resolves when what was under way has ended, or was given back after so long. */
  stop(withinMs: number): Promise<void>;
}

export type DeliverTools = AttemptTools &
  Omit<ClaimTools, 'slots'> & {
    readonly limits: DeliveryLimits;
    readonly onError: (error: unknown) => void;
  };

const SORTED_AT_ONCE = 500;
const LANES_AT_ONCE = 64;
const LANES_SIDE_BY_SIDE = 4;
const FAULTY_MS = 60_000;
const GATHER_MS = 8;
/** More than that are found by their due time alone. */
const MAX_REMEMBERED = 256;

export function deliverCallbacks(tools: DeliverTools): DeliverCallbacks {
  const { store, now, onError } = tools;
  const slots = deliverySlots(tools.limits);
  const claim = claimDeliveries({ ...tools, slots });
  const attempt = attemptDelivery(tools);
  const stopping = new AbortController();
  const underWay = new Set<Promise<void>>();
  /** Lanes with more to do, and what they wait for. */
  const crowded = new Map<string, Place | 'nothing'>();
  let isStopped = false;
  let isAsked = false;
  let looking: Promise<void> | undefined;
  let gathering: Promise<void> | undefined;

  /**
   * Where more waits than there are places for, attempts that end within a moment are noted together, and their places
   * taken by others in the same commit: one fsync for several.
   */
  function gathered(): Promise<void> {
    gathering ??= sleep(GATHER_MS).then(() => {
      gathering = undefined;
      wake();
    });
    return gathering;
  }

  function send(claimed: Claimed): void {
    const { accountId } = claimed.event;
    const onEnd = async () => {
      claimed.slot[Symbol.dispose]();
      if (crowded.has(accountId)) await gathered();
    };
    const sending = attempt(claimed, stopping.signal, onEnd)
      // The lease will end, and the event be sent again: nothing is lost.
      .catch(onError)
      .finally(() => {
        underWay.delete(sending);
        if (!crowded.has(accountId)) wake();
      });
    underWay.add(sending);
  }

  function remember(accountId: AccountId, { waitsFor }: LaneWork): void {
    crowded.delete(accountId);
    if (waitsFor && crowded.size < MAX_REMEMBERED) crowded.set(accountId, waitsFor);
    if (waitsFor === 'nothing') isAsked = true;
  }

  /** A lane that cannot be worked on is no reason to leave the others alone; it has its turn later. */
  async function workLane(accountId: AccountId): Promise<void> {
    try {
      const work = await claim(accountId);
      remember(accountId, work);
      for (const claimed of work.claimed) send(claimed);
    } catch (error) {
      crowded.delete(accountId);
      onError(error);
      // A store that is busy will answer soon; what is wrong with the lane itself will not change so fast.
      if (!(error instanceof Refusal)) await putOff(accountId).catch(onError);
    }
  }

  const putOff = (accountId: AccountId): Promise<void> =>
    store.transaction(async (tx) => {
      const lane = await tx.callbackLanes.take(accountId);
      if (lane) await tx.callbackLanes.save({ ...lane, notBefore: now() + FAULTY_MS });
    });

  /** A few at once: their commits are one on the embedded database, and each takes a connection on the other. */
  async function workLanes(accountIds: Iterable<string>): Promise<void> {
    const left = accountIds[Symbol.iterator]();
    const worker = async () => {
      for (let next = left.next(); !next.done && !isStopped && !slots.isFull(); next = left.next()) {
        await workLane(next.value);
      }
    };
    await Promise.all(Array.from({ length: LANES_SIDE_BY_SIDE }, worker));
  }

  async function round(): Promise<void> {
    const free = [...crowded].filter(([, place]) => place === 'nothing' || slots.hasRoom(place)).map(([id]) => id);
    if (await store.deliveryQueue.hasNew()) {
      const sorted = await store.transaction((tx) => tx.deliveryQueue.sortNew(SORTED_AT_ONCE, now()));
      if (sorted === SORTED_AT_ONCE) isAsked = true;
    }
    // Without a place there is nothing to take: lanes are left alone until an attempt ends.
    if (slots.isFull()) return;
    const due = await store.callbackLanes.due(now(), LANES_AT_ONCE);
    if (due.length === LANES_AT_ONCE) isAsked = true;
    await workLanes(new Set([...due, ...free]));
  }

  async function lookAll(): Promise<void> {
    try {
      while (isAsked && !isStopped) {
        isAsked = false;
        await round();
      }
    } catch (error) {
      onError(error);
    } finally {
      looking = undefined;
    }
  }

  function look(): Promise<void> {
    isAsked = true;
    looking ??= lookAll();
    return looking;
  }

  function wake(): void {
    if (!isStopped) void look();
  }

  return {
    wake,
    look,
    async stop(withinMs) {
      isStopped = true;
      const deadline = setTimeout(() => stopping.abort(), withinMs);
      await looking;
      while (underWay.size > 0) await Promise.all(underWay);
      clearTimeout(deadline);
    },
  };
}
