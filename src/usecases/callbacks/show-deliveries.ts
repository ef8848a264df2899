// What accounts and operators do with deliveries: look at them, and have one or a range of them sent again. The settings
// of the moment decide here too: what they hold back is not sent because somebody asks for it.

import type { Actor } from '../../domain/access/credential.ts';
import type { CallbackSettings } from '../../domain/callbacks/callback.ts';
import { type Delivery, type DeliveryAttempt, type DeliveryState, heldBack } from '../../domain/callbacks/delivery.ts';
import type { DeliveryFilter } from '../../domain/callbacks/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Store } from '../../domain/store.ts';

export type ShownDelivery = Delivery & { readonly attempted: readonly DeliveryAttempt[] };

export type ResendFilter = DeliveryFilter & { readonly state: Exclude<DeliveryState, 'pending'> };

export interface ShowDeliveries {
  /** The newest first. */
  list(
    accountId: AccountId,
    filter: DeliveryFilter,
    page: Page,
  ): Promise<{ deliveries: ShownDelivery[]; nextAfter: string | null }>;
  /** Refuses with `delivery_not_found`, `callback_not_configured` or `callback_paused`. */
  resend(by: Actor, id: string): Promise<ShownDelivery>;
  /** The oldest first, one after the other; events whose action is not enabled stay. Refuses like `resend`. */
  resendRange(by: Actor, filter: ResendFilter, page: Page): Promise<{ resent: number; nextAfter: string | null }>;
}

export function showDeliveries(store: Store, now: Clock, newId: NewId): ShowDeliveries {
  const auditOf = (by: Actor, subject: string, details: Record<string, string | number | null>) => ({
    ...({ id: newId(), at: now(), ...by, action: 'callback:resent', subject, details } as const),
  });
  return {
    async list(accountId, filter, page) {
      const { deliveries, nextAfter } = await store.deliveries.list(accountId, filter, page);
      const attempts = await store.deliveries.attemptsOf(deliveries.map(({ id }) => id));
      return { deliveries: deliveries.map((one) => ({ ...one, attempted: attempts.get(one.id) ?? [] })), nextAfter };
    },

    resend: (by, id) =>
      store.transaction(async (tx) => {
        const delivery = await tx.deliveries.find(by.accountId, id);
        if (!delivery) throw new Refusal('delivery_not_found');
        const settings = sendable(await tx.callbacks.find(by.accountId));
        if (heldBack(settings, delivery.action)) throw new Refusal('callback_paused');
        await tx.deliveries.resend(by.accountId, id, now());
        await tx.audit.append(auditOf(by, id, {}));
        const attempts = await tx.deliveries.attemptsOf([id]);
        const after = (await tx.deliveries.find(by.accountId, id)) ?? delivery;
        return { ...after, attempted: attempts.get(id) ?? [] };
      }),

    resendRange: (by, filter, page) =>
      store.transaction(async (tx) => {
        const { enabledActions } = sendable(await tx.callbacks.find(by.accountId));
        const range = await tx.deliveries.resendRange(by.accountId, filter, enabledActions, page, now());
        const { state, orderId = null, action = null, since = null, until = null } = filter;
        const details = { state, order_id: orderId, action, since, until, resent: range.resent };
        await tx.audit.append(auditOf(by, by.accountId, details));
        return range;
      }),
  };
}

function sendable(settings: CallbackSettings | undefined): CallbackSettings {
  if (!settings) throw new Refusal('callback_not_configured');
  if (settings.isDisabled) throw new Refusal('callback_paused');
  return settings;
}
