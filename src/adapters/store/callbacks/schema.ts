// The tables of callbacks as Kysely sees them: settings, events, attempts and lanes.
import type { AttemptReason, Delivery, DeliveryState } from '../../../domain/callbacks/delivery.ts';
import type { OrderStatus } from '../../../domain/certificate/order.ts';
import type { OutboxEvent } from '../../../domain/issuance/ports.ts';

export interface DeliverySchema {
  callback_settings: {
    account_id: string;
    url: string;
    sealed_access_key: string;
    sealed_signing_secret: string;
    disabled: number;
    enabled_actions: string | null;
    updated_at: number;
    sealed_former_secret: string | null;
    former_until: number | null;
  };
  outbox: {
    id: string;
    account_id: string;
    order_id: string;
    certificate_id: string;
    action: OutboxEvent['action'];
    created_at: number;
    order_status: OrderStatus;
    body: string;
    state: DeliveryState;
    reason: Delivery['reason'];
    is_new: number;
    in_order: number;
    due_at: number | null;
    lease: string | null;
    attempts: number;
    begun_at: number;
    tries: number;
    settled_at: number | null;
  };
  delivery_attempt: {
    event_id: string;
    number: number;
    at: number;
    ms: number;
    http_status: number | null;
    reason: AttemptReason | null;
    excerpt: string | null;
  };
  callback_lane: {
    account_id: string;
    due_at: number | null;
    failures: number;
    trips: number;
    closed_until: number;
    ailing_since: number;
    in_order_until: number;
  };
}
