// Events to call back, written with the fact they announce. What one says is decided here and now, in the language of
// its account, and so is whether there is anybody to say it to: an account without settings fills no queue.
import { sql } from 'kysely';
import { callbackBody } from '../../../domain/callbacks/callback.ts';
import type { Outbox } from '../../../domain/callbacks/ports.ts';
import type { Locale } from '../../../kernel/locale.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

type Given = Pick<
  Schema['outbox'],
  'id' | 'account_id' | 'order_id' | 'order_status' | 'certificate_id' | 'action' | 'created_at'
> & { readonly body_en: string; readonly body_zh: string };

const insert = prepared((db, given: Given) => {
  const { id, account_id, order_id, order_status, certificate_id, action, created_at, body_en, body_zh } = given;
  const hasSettings = sql`exists (select 1 from callback_settings where account_id = ${account_id})`;
  const either = <T>(configured: string, otherwise: string) =>
    sql<T>`case when ${hasSettings} then ${sql.raw(configured)} else ${sql.raw(otherwise)} end`;
  return db
    .insertInto('outbox')
    .values({
      ...{ id, account_id, order_id, order_status, certificate_id, action, created_at },
      body: sql<string>`(select case locale when 'zh-CN' then cast(${body_zh} as text) else cast(${body_en} as text) end
      from account where id = ${account_id})`,
      state: either<'pending' | 'suppressed'>("'pending'", "'suppressed'"),
      reason: either<null | 'not_configured'>('null', "'not_configured'"),
      is_new: either<number>('1', '0'),
      settled_at: sql<number | null>`case when ${hasSettings} then null else cast(${created_at} as bigint) end`,
      begun_at: created_at,
      ...{ in_order: 0, due_at: null, lease: null, attempts: 0, tries: 0 },
    })
    .returning('state');
});

/** `onWaiting` is told at once, though the transaction may still fail: whoever acts on it waits for the commit. */
export const outboxIn = (db: Db, onWaiting: () => void): Outbox => ({
  async add({ id, accountId, orderId, orderStatus, certificateId, action, createdAt }) {
    const bodyIn = (locale: Locale) =>
      JSON.stringify(callbackBody(action, { orderId, orderStatus, certificateId }, locale));
    const [row] = await insert(db, {
      ...{ id, action, account_id: accountId, order_id: orderId, order_status: orderStatus },
      ...{ certificate_id: certificateId, created_at: createdAt },
      ...{ body_en: bodyIn('en'), body_zh: bodyIn('zh-CN') },
    });
    if (row?.state === 'pending') onWaiting();
  },
});
