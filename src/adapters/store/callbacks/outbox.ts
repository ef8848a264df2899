// Transactional outbox: events are written in the transaction of the fact they announce, with their body in the account's
// language. An account without callback settings gets suppressed events, so that it fills no queue.
import { sql } from 'kysely';
import { callbackBody } from '../../../domain/callbacks/callback.ts';
import type { Outbox, OutboxEvent } from '../../../domain/callbacks/ports.ts';
import type { Locale } from '../../../kernel/locale.ts';
import type { Engine } from '../engine/engine.ts';
import { type Prepared, prepared, statement } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

interface EventRow
  extends Pick<
    Schema['outbox'],
    'id' | 'account_id' | 'order_id' | 'order_status' | 'certificate_id' | 'action' | 'created_at'
  > {
  readonly body_en: string;
  readonly body_zh: string;
}

export function eventRow({
  id,
  accountId,
  orderId,
  orderStatus,
  certificateId,
  action,
  createdAt,
}: OutboxEvent): EventRow {
  const bodyIn = (locale: Locale) =>
    JSON.stringify(callbackBody(action, { orderId, orderStatus, certificateId }, locale));
  return {
    id,
    action,
    account_id: accountId,
    order_id: orderId,
    order_status: orderStatus,
    certificate_id: certificateId,
    created_at: createdAt,
    body_en: bodyIn('en'),
    body_zh: bodyIn('zh-CN'),
  };
}

/** Inserts an event, as the last statement of a batch or alone, and returns its state. */
export const insertEvent = (batches?: Engine['batches']): Prepared<EventRow, Pick<Schema['outbox'], 'state'>> =>
  prepared((db, slot: EventRow) =>
    statement<Pick<Schema['outbox'], 'state'>>(
      db,
      sql`insert into outbox (id, account_id, order_id, order_status, certificate_id, action, created_at, begun_at, body,
          state, reason, is_new, settled_at, in_order, due_at, lease, attempts, tries)
        select ${slot.id}, account.id, ${slot.order_id}, ${slot.order_status}, ${slot.certificate_id}, ${slot.action},
          ${slot.created_at}, ${slot.created_at},
          case account.locale when 'zh-CN' then cast(${slot.body_zh} as text) else cast(${slot.body_en} as text) end,
          case when callback_settings.account_id is null then 'suppressed' else 'pending' end,
          case when callback_settings.account_id is null then 'not_configured' end,
          case when callback_settings.account_id is null then 0 else 1 end,
          case when callback_settings.account_id is null then cast(${slot.created_at} as bigint) end,
          0, null, null, 0, 0
        from ${batches?.members('', 'cross join') ?? sql``} account
          left join callback_settings on callback_settings.account_id = account.id
        where account.id = ${slot.account_id} and ${batches?.isDecided ?? sql`true`}
        ${batches?.returning('certificate_id', 'state') ?? sql`returning state`}`,
    ),
  );
const insert = insertEvent();

/** Calls `onPending` before the commit, which may still fail: the listener must wait for it. */
export const outboxIn = (db: Db, onPending: () => void): Outbox => ({
  async add(event) {
    const [row] = await insert(db, eventRow(event));
    if (!row) throw new Error(`there is no account ${event.accountId} for an event`);
    if (row.state === 'pending') onPending();
  },
});
