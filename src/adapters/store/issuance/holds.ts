// Conditions of the two writes of an issuance, in SQL.
import { sql } from 'kysely';

/** The order as a decision has read it, locked on an engine that locks rows. */
export const orderAsRead = (
  slot: { readonly order_id: string; readonly account_id: string; readonly revision: number },
  locksRows: boolean,
) => sql`select id from certificate_order
  where id = ${slot.order_id} and account_id = ${slot.account_id} and revision = ${slot.revision}
  ${locksRows ? sql`for update` : sql``}`;

/** Whether a key is on the blocklist. Nothing is, for no key. */
export const isBlocked = (fingerprint: string | null, accountId: string) => sql`(
  exists (select 1 from blocked_key where fingerprint = ${fingerprint})
  or exists (select 1 from reported_key where account_id = ${accountId} and fingerprint = ${fingerprint}))`;
