// What an account has used of its quotas, for callers and operators.
import type { Account } from '../../domain/access/account.ts';
import { type Quotas, quotasOf } from '../../domain/access/quota.ts';
import type { Repositories } from '../../domain/store.ts';

export type QuotaUse = { readonly [Name in keyof Quotas]: { readonly used: number; readonly limit: number } };

/** More than any account may have, also after its limit was lowered. */
const MOST_COUNTED = 1_000_000;

/** Counts open orders now; stored bytes are those of the account as it was read. */
export async function quotaUse(
  { waiting }: Pick<Repositories, 'waiting'>,
  account: Account,
  defaults: Quotas,
): Promise<QuotaUse> {
  const { openOrders, storedBytes } = quotasOf(account, defaults);
  return {
    openOrders: { used: await waiting.count(account.id, MOST_COUNTED), limit: openOrders },
    storedBytes: { used: account.storedBytes, limit: storedBytes },
  };
}
