// Quotas of an account: how many of its orders may wait for a certificate, and how much it may store. They bound what an
// account costs while it sends nothing; what it may have in flight is bounded elsewhere.
import { Refusal } from '../errors.ts';

/** Of one account, as limits. */
export interface Quotas {
  /** Orders that wait for a certificate, the first or a reissue. */
  readonly openOrders: number;
  readonly storedBytes: number;
}

/** What of an account its quotas are judged by. */
export interface AccountUsage {
  /** What the operator has set for this account; null for the default. */
  readonly quotas: { readonly [Name in keyof Quotas]: number | null };
  /** As last counted: certificates of the last minutes are missing. */
  readonly storedBytes: number;
}

/** Left out: unchanged. Null: the default again. */
export type QuotaChange = Partial<AccountUsage['quotas']>;

/** Operators set stored bytes in these. */
export const MIB = 1024 * 1024;

/** Of orders, or of MiB. */
export const MAX_QUOTA = 100_000_000;

/** What is stored of a certificate beside its CSR and its names: itself, its keys, its event, its rows of the audit log. */
export const BYTES_PER_CERTIFICATE = 4096;

export const quotasOf = ({ quotas }: Pick<AccountUsage, 'quotas'>, defaults: Quotas): Quotas => ({
  openOrders: quotas.openOrders ?? defaults.openOrders,
  storedBytes: quotas.storedBytes ?? defaults.storedBytes,
});

export function requireStorage(account: AccountUsage, defaults: Quotas): void {
  const { storedBytes: limit } = quotasOf(account, defaults);
  const { storedBytes: used } = account;
  if (used < limit) return;
  throw exceeded(
    { quota: 'stored_bytes', used, limit },
    {
      en: 'The certificates of this account take as much room as it may have. Ask the operator to raise the quota stored_bytes.',
      zh: '该账户的证书占用的存储空间已达上限，请联系运营方提高 stored_bytes 配额。',
    },
  );
}

/** Before one more begins to wait. */
export function requireRoomToWait(used: number, limit: number): void {
  if (used < limit) return;
  throw exceeded(
    { quota: 'open_orders', used, limit },
    {
      en: `As many orders of this account wait for validation as may (${limit}). Publish their records, or cancel some with PUT /openapi/v3/orders/{id}/cancel; else ask the operator to raise the quota open_orders.`,
      zh: `该账户等待验证的订单已达上限（${limit}）。请先发布其验证记录，或通过 PUT /openapi/v3/orders/{id}/cancel 取消部分订单，也可联系运营方提高 open_orders 配额。`,
    },
  );
}

const exceeded = (
  details: { readonly quota: 'open_orders' | 'stored_bytes'; readonly used: number; readonly limit: number },
  reason: { readonly en: string; readonly zh: string },
): Refusal => new Refusal('quota_exceeded', { reason, details });
