// The part of the application that delivers callbacks: the dispatcher with its chores, and what accounts and operators
// see of it.

import type { CallbackConfig } from '../config/callbacks.ts';
import type { Clock } from '../domain/clock.ts';
import type { CallOut, OutboundPolicy } from '../domain/egress/outbound.ts';
import type { AccountId } from '../domain/ids.ts';
import { type DeliverCallbacks, deliverCallbacks } from '../usecases/callbacks/deliver-callbacks.ts';
import { repairSchedules } from '../usecases/callbacks/repair-schedules.ts';
import { type ShowDeliveries, showDeliveries } from '../usecases/callbacks/show-deliveries.ts';
import type { App } from './app.ts';
import { type Chore, logUnexpected } from './background.ts';

export interface DeliveryServices {
  readonly dispatcher: DeliverCallbacks;
  readonly deliveries: ShowDeliveries;
  readonly deliveryChores: readonly Chore[];
}

/** Finds what other instances have left, and what has become due. */
const LOOK_MS = 1_000;
const COUNT_MS = 15_000;
const FORGET_MS = 60_000;
const FORGOTTEN_AT_ONCE = 500;
const MAX_BATCHES = 100;
const ATTEMPT_MS = 15_000;

interface Outward {
  readonly callOut: CallOut;
  readonly policyFor: (accountId: AccountId) => OutboundPolicy;
}

export function openDeliveries(
  { store, newId, log, metrics: { deliveries: metrics } }: App,
  config: CallbackConfig,
  now: Clock,
  { callOut, policyFor }: Outward,
): DeliveryServices {
  const dispatcher = deliverCallbacks({
    ...{ store, now, newId, callOut, schedule: config.schedule },
    chance: Math.random,
    policyFor: (accountId) => ({ ...policyFor(accountId), totalMs: ATTEMPT_MS }),
    limits: { total: config.atOnce, perAccount: config.perAccount, perHost: config.perHost },
    watch: {
      ...{ attempted: metrics.attempted, firstAttempt: metrics.firstAttempt },
      gaveUp({ id, accountId, orderId, action }, attempts) {
        metrics.gaveUp();
        log({
          ...{ event: 'callback_gave_up', delivery_id: id, account_id: accountId },
          ...{ order_id: orderId, action, attempts },
        });
      },
    },
    onError: logUnexpected(log),
  });

  async function forget(): Promise<void> {
    for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
      const before = now() - config.retentionMs;
      const forgotten = await store.transaction((tx) => tx.deliveries.forget(before, FORGOTTEN_AT_ONCE));
      if (forgotten < FORGOTTEN_AT_ONCE) return;
    }
  }

  return {
    dispatcher,
    deliveries: showDeliveries(store, now, newId),
    deliveryChores: [
      { everyMs: LOOK_MS, run: () => dispatcher.look() },
      { everyMs: COUNT_MS, run: async () => metrics.queue(await store.deliveries.queueFacts(), now()) },
      { everyMs: FORGET_MS, run: forget },
      { everyMs: FORGET_MS, run: () => repairSchedules(store, now, config.schedule) },
    ],
  };
}
