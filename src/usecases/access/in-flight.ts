// How many operations of a kind an account may have in flight. Each of these may hold its request for seconds, because it
// waits for names of the caller's choosing, or costs much more than its request. Nothing queues here: callers retry.
import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { keyCounts } from '../../kernel/concurrency.ts';
import type { Localized } from '../../kernel/locale.ts';

/** Whose limit was reached. A client waits for its own; of the service's it may turn to another instance. */
export type LimitOwner = 'account' | 'service';
const CODES = { account: 'request_too_fast', service: 'service_busy' } as const satisfies Record<LimitOwner, ErrorCode>;

export const limitReached = (owner: LimitOwner, reason?: Localized): Refusal =>
  new Refusal(CODES[owner], { retryAfterSeconds: 1, ...(reason && { reason }) });

const NAMES = {
  placement: { en: 'orders are being placed', zh: '订单正在提交' },
  dry_run: { en: 'dry runs are under way', zh: '预演正在进行' },
  domain_check: { en: 'checks of names are under way', zh: '域名检查正在进行' },
} as const satisfies Record<string, Localized>;

export type BoundedOperation = keyof typeof NAMES;
export type InFlightLimits = Readonly<Record<BoundedOperation, number>>;

/** Refuses with `request_too_fast` at once if there is no free slot. Dispose of the result to release the slot. */
export type AcquireSlot = (operation: BoundedOperation, accountId: AccountId) => Promise<Disposable>;

/** The slot, or whose limit is reached. */
export type OperationSlots = (operation: BoundedOperation, accountId: AccountId) => Disposable | 'account';

export function operationSlots(limits: InFlightLimits): OperationSlots {
  const { count, add } = keyCounts();
  return (operation, accountId) => {
    const key = `${operation} ${accountId}`;
    return count(key) < limits[operation] ? add([key]) : 'account';
  };
}

export const tooManyInFlight = (operation: BoundedOperation): Refusal => {
  const { en, zh } = NAMES[operation];
  return limitReached('account', {
    en: `As many ${en} for this account as may be at once. Wait until one has ended, and try again.`,
    zh: `该账户的${zh}，数量已达上限，请等待其中一个结束后重试。`,
  });
};
