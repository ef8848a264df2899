// List deliveries, resend one or a range of them, and resume a lane. None of it overrides the current settings: what they
// suppress is not sent.

import type { Actor } from '../../domain/access/credential.ts';
import { actionsOf, type CallbackSettings } from '../../domain/callbacks/callback.ts';
import { type Delivery, type DeliveryAttempt, suppressionReason } from '../../domain/callbacks/delivery.ts';
import type { DeliveryFilter, ResendFilter } from '../../domain/callbacks/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';

export type DeliveryWithAttempts = Delivery & { readonly attempted: readonly DeliveryAttempt[] };

export interface ManageDeliveries {
  /** Newest first. */
  list(
    accountId: AccountId,
    filter: DeliveryFilter,
    page: Page,
  ): Promise<{ deliveries: DeliveryWithAttempts[]; nextAfter: string | null }>;
  /** Refuses with `delivery_not_found`. */
  show(accountId: AccountId, id: string): Promise<DeliveryWithAttempts>;
  /** Refuses with `delivery_not_found`, `callback_not_configured` or `callback_paused`. */
  resend(by: Actor, id: string): Promise<DeliveryWithAttempts>;
  /** Oldest first and one at a time. Skips events whose action is not enabled. Refuses like `resend`. */
  resendRange(by: Actor, filter: ResendFilter, page: Page): Promise<{ resent: number; nextAfter: string | null }>;
  /** Closes the circuit breaker: what is pending is tried at once. Refuses like `resend`. */
  resumeLane(by: Actor): Promise<void>;
}

export function manageDeliveries(store: Store, now: Clock, newId: NewId): ManageDeliveries {
  const audit = auditLog({ now, newId });
  return {
    async list(accountId, filter, page) {
      const { deliveries, nextAfter } = await store.deliveries.list(accountId, filter, page);
      const attempts = await store.deliveries.attemptsOf(deliveries.map(({ id }) => id));
      return { deliveries: deliveries.map((one) => ({ ...one, attempted: attempts.get(one.id) ?? [] })), nextAfter };
    },

    async show(accountId, id) {
      const delivery = await store.deliveries.find(accountId, id);
      if (!delivery) throw new Refusal('delivery_not_found');
      return { ...delivery, attempted: (await store.deliveries.attemptsOf([id])).get(id) ?? [] };
    },

    resend: (by, id) =>
      store.transaction(async (tx) => {
        const delivery = await tx.deliveries.find(by.accountId, id);
        if (!delivery) throw new Refusal('delivery_not_found');
        const settings = requireActive(await tx.callbacks.find(by.accountId));
        if (suppressionReason(settings, delivery.action)) throw new Refusal('callback_paused');
        await tx.deliveries.resend(by.accountId, id, now());
        await audit(tx, by, 'callback:resent', id);
        const attempts = await tx.deliveries.attemptsOf([id]);
        const after = (await tx.deliveries.find(by.accountId, id)) ?? delivery;
        return { ...after, attempted: attempts.get(id) ?? [] };
      }),

    resendRange: (by, filter, page) =>
      store.transaction(async (tx) => {
        const actions = actionsOf(requireActive(await tx.callbacks.find(by.accountId)));
        const range = await tx.deliveries.resendRange(by.accountId, filter, page, { actions, now: now() });
        const { state, orderId = null, action = null, since = null, until = null } = filter;
        const details = { state, order_id: orderId, action, since, until, resent: range.resent };
        await audit(tx, by, 'callback:resent', by.accountId, details);
        return range;
      }),

    resumeLane: (by) =>
      store.transaction(async (tx) => {
        requireActive(await tx.callbacks.find(by.accountId));
        await tx.callbackLanes.restart(by.accountId, tx.sharedNow());
        await audit(tx, by, 'callback:resumed', by.accountId);
      }),
  };
}

function requireActive(settings: CallbackSettings | undefined): CallbackSettings {
  if (!settings) throw new Refusal('callback_not_configured');
  if (settings.isDisabled) throw new Refusal('callback_paused');
  return settings;
}
