// Conditions of the two writes of an issuance, in SQL.
import { sql } from 'kysely';
import type { PublicKey } from '../../../domain/certificate/public-key.ts';
import { listedAs } from '../../ca/rsa-numbers.ts';

/** The order as a decision has read it, locked on an engine that locks rows. */
export const orderAsRead = (
  slot: { readonly order_id: string; readonly account_id: string; readonly revision: number },
  locksRows: boolean,
) => sql`select id from certificate_order
  where id = ${slot.order_id} and account_id = ${slot.account_id} and revision = ${slot.revision}
  ${locksRows ? sql`for update` : sql``}`;

/** A key, and the account that it is certified for. */
export interface Unblocked {
  readonly account_id: string;
  readonly unblocked: string | null;
  readonly unblocked_modulus: string | null;
}

export function unblocked(key: PublicKey | null): Omit<Unblocked, 'account_id'> {
  const [fingerprint, modulus] = key ? listedAs(key) : [null, null];
  return { unblocked: fingerprint, unblocked_modulus: modulus };
}

/** Whether a key is on the blocklist. Nothing is, for no key. */
export const isBlocked = ({ account_id, unblocked, unblocked_modulus }: Unblocked) => sql`(
  exists (select 1 from blocked_key where fingerprint = ${unblocked})
  or exists (select 1 from blocked_key where fingerprint = ${unblocked_modulus})
  or exists (select 1 from reported_key where account_id = ${account_id} and fingerprint = ${unblocked}))`;
