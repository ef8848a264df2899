// Transactional outbox: events are written in the transaction of the fact they announce, with their body in the account's
// language. An account without callback settings gets suppressed events, so that it fills no queue.
import { sql } from 'kysely';
import { callbackBody } from '../../../domain/callbacks/callback.ts';
import type { Outbox } from '../../../domain/callbacks/ports.ts';
import type { Locale } from '../../../kernel/locale.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

type EventRow = Pick<
  Schema['outbox'],
  'id' | 'account_id' | 'order_id' | 'order_status' | 'certificate_id' | 'action' | 'created_at'
> & { readonly body_en: string; readonly body_zh: string };

const insert = prepared((db, row: EventRow) => {
  const { id, account_id, order_id, order_status, certificate_id, action, created_at, body_en, body_zh } = row;
  const hasSettings = sql`exists (select 1 from callback_settings where account_id = ${account_id})`;
  const ifConfigured = <T>(then: string, otherwise: string) =>
    sql<T>`case when ${hasSettings} then ${sql.raw(then)} else ${sql.raw(otherwise)} end`;
  return db
    .insertInto('outbox')
    .values({
      ...{ id, account_id, order_id, order_status, certificate_id, action, created_at },
      body: sql<string>`(select case locale when 'zh-CN' then cast(${body_zh} as text) else cast(${body_en} as text) end
      from account where id = ${account_id})`,
      state: ifConfigured<'pending' | 'suppressed'>("'pending'", "'suppressed'"),
      reason: ifConfigured<null | 'not_configured'>('null', "'not_configured'"),
      is_new: ifConfigured<number>('1', '0'),
      settled_at: sql<number | null>`case when ${hasSettings} then null else cast(${created_at} as bigint) end`,
      begun_at: created_at,
      ...{ in_order: 0, due_at: null, lease: null, attempts: 0, tries: 0 },
    })
    .returning('state');
});

/** Calls `onPending` before the commit, which may still fail: the listener must wait for it. */
export const outboxIn = (db: Db, onPending: () => void): Outbox => ({
  async add({ id, accountId, orderId, orderStatus, certificateId, action, createdAt }) {
    const bodyIn = (locale: Locale) =>
      JSON.stringify(callbackBody(action, { orderId, orderStatus, certificateId }, locale));
    const [row] = await insert(db, {
      ...{ id, action, account_id: accountId, order_id: orderId, order_status: orderStatus },
      ...{ certificate_id: certificateId, created_at: createdAt },
      ...{ body_en: bodyIn('en'), body_zh: bodyIn('zh-CN') },
    });
    if (row?.state === 'pending') onPending();
  },
});
