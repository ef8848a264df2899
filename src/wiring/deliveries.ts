// Wires callback delivery: the dispatcher with its background chores, and the delivery log.

import type { CallbackConfig } from '../config/config.ts';
import type { CallOut, OutboundPolicy } from '../domain/egress/outbound.ts';
import type { AccountId } from '../domain/ids.ts';
import { type Dispatcher, deliverCallbacks } from '../usecases/callbacks/deliver-callbacks.ts';
import { type ManageDeliveries, manageDeliveries } from '../usecases/callbacks/manage-deliveries.ts';
import { type NotifyExpiryTools, notifyExpiry } from '../usecases/callbacks/notify-expiry.ts';
import { repairSchedules } from '../usecases/callbacks/repair-schedules.ts';
import type { App } from './app.ts';
import { type Chore, logUnexpected } from './background.ts';

export interface DeliveryServices {
  readonly dispatcher: Dispatcher;
  readonly deliveries: ManageDeliveries;
  readonly deliveryChores: readonly Chore[];
}

/** For retries, and for events that other instances left. */
const POLL_MS = 1_000;
const REPAIR_MS = 10_000;
const NOTIFY_MS = 60_000;
const ATTEMPT_MS = 15_000;

interface Egress {
  readonly callOut: CallOut;
  /** Connections of deliveries; closed with the dispatcher. */
  readonly kept: Disposable;
  readonly policyFor: (accountId: AccountId) => OutboundPolicy;
}

export function openDeliveries(
  { store, newId, log, metrics: { deliveries: metrics } }: App,
  config: CallbackConfig,
  { callOut, kept, policyFor }: Egress,
): DeliveryServices {
  const { sharedNow } = store;
  const dispatcher = deliverCallbacks({
    ...{ store, now: sharedNow, newId, callOut, schedule: config.schedule },
    random: Math.random,
    policyFor: (accountId) => ({ ...policyFor(accountId), totalMs: ATTEMPT_MS }),
    limits: { total: config.atOnce, perAccount: config.perAccount, perHost: config.perHost },
    observer: {
      firstAttempt: metrics.firstAttempt,
      attempted({ id, accountId, orderId, action }, { number, ms }, outcome) {
        metrics.attempted(outcome);
        log({
          ...{ event: 'callback_attempt', delivery_id: id, account_id: accountId, order_id: orderId },
          ...{ action, number, outcome, ms },
        });
      },
      gaveUp({ id, accountId, orderId, action }, attempts) {
        metrics.gaveUp();
        log({
          ...{ event: 'callback_gave_up', delivery_id: id, account_id: accountId },
          ...{ order_id: orderId, action, attempts },
        });
      },
    },
    onError: logUnexpected(log, 'deliver'),
  });

  const notices: NotifyExpiryTools = {
    ...{ store, now: sharedNow, newId, noticeDays: config.noticeDays },
    onNotice({ accountId, orderId, certificateId }, days) {
      metrics.expiryNotice(days);
      log({
        ...{ event: 'expiry_notice', account_id: accountId, order_id: orderId },
        ...{ certificate_id: certificateId, days },
      });
    },
  };

  return {
    dispatcher: {
      ...dispatcher,
      stop: (withinMs) => dispatcher.stop(withinMs).finally(() => kept[Symbol.dispose]()),
    },
    deliveries: manageDeliveries(store, sharedNow, newId),
    deliveryChores: [
      { name: 'deliver', everyMs: POLL_MS, run: () => dispatcher.poll() },
      { name: 'notify_expiry', everyMs: NOTIFY_MS, run: (stopping) => notifyExpiry(notices, stopping) },
      { name: 'repair_schedules', everyMs: REPAIR_MS, run: repairSchedules(store, sharedNow, config.schedule) },
    ],
  };
}
