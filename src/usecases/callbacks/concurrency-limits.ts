// Concurrency limits of callback tests and of deliveries: in total, per account and per host. Nothing queues here: without
// a free slot a test is refused, and a delivery stays in its lane.
import type { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { keyCounts } from '../../kernel/concurrency.ts';
import type { Localized } from '../../kernel/locale.ts';
import { type LimitOwner, limitReached } from '../access/in-flight.ts';

export interface ConcurrencyLimits {
  readonly total: number;
  readonly perAccount: number;
  readonly perHost: number;
}

const TOTAL = 'total';
const accountKey = (accountId: AccountId): string => `account ${accountId}`;
const hostKey = (host: string): string => `host ${host}`;

/** Refuses at once if there is no free slot: with `request_too_fast` or `service_busy`, by whose limit it is. */
export type AcquireTestSlot = (accountId: AccountId, host: string) => Promise<Disposable>;

/** The slot, or whose limit is reached. */
export type TestSlots = (accountId: AccountId, host: string) => Disposable | LimitOwner;

export function testSlots({ total, perAccount, perHost }: ConcurrencyLimits): TestSlots {
  const inFlight = keyCounts();
  return (accountId, host) => {
    const bounds = [
      // First: what an account can remedy itself is told, even if the service is full as well.
      [accountKey(accountId), perAccount, 'account'],
      [hostKey(host), perHost, 'service'],
      [TOTAL, total, 'service'],
    ] as const;
    const [, , owner] = bounds.find(([key, max]) => inFlight.count(key) >= max) ?? [];
    return owner ?? inFlight.add(bounds.map(([key]) => key));
  };
}

const NO_SLOT = {
  account: {
    en: 'As many callback tests are under way for this account as may be at once. Wait until one has ended, and try again.',
    zh: '该账户正在进行的回调测试已达上限，请等待其中一个结束后重试。',
  },
  service: {
    en: 'Too many callback tests are under way in the service, or to this host. Try again shortly.',
    zh: '服务中或发往该主机的回调测试过多，请稍后重试。',
  },
} as const satisfies Record<LimitOwner, Localized>;

export const noFreeTestSlot = (owner: LimitOwner): Refusal => limitReached(owner, NO_SLOT[owner]);

export interface SlotRequest {
  readonly accountId: AccountId;
  readonly host: string;
  /** A first attempt, to a receiver without recent failures. Half of the slots are reserved for these. */
  readonly isFirst: boolean;
}

export interface DeliverySlots {
  /** Undefined if there is no free slot. */
  tryAcquire(request: SlotRequest): Disposable | undefined;
  isFree(request: SlotRequest): boolean;
  /** How many more the account may have in flight to the host, at most. */
  freeFor(accountId: AccountId, host: string): number;
  inFlight(accountId: AccountId): number;
  isFull(): boolean;
}

export function deliverySlots({ total, perAccount, perHost }: ConcurrencyLimits): DeliverySlots {
  const { count, add } = keyCounts();
  const boundsOf = ({ accountId, host, isFirst }: SlotRequest) =>
    [
      [TOTAL, total],
      // An account never has more than what is left for others: slow receivers leave slots for the next account.
      [accountKey(accountId), Math.min(perAccount, total - count(TOTAL), perHost - count(hostKey(host)))],
      [hostKey(host), perHost],
      ...(isFirst ? [] : [['retries', Math.floor(total / 2)] as const]),
    ] as const;
  const areFree = (bounds: ReturnType<typeof boundsOf>) => bounds.every(([key, max]) => count(key) < max);
  return {
    isFree: (request) => areFree(boundsOf(request)),
    tryAcquire(request) {
      const bounds = boundsOf(request);
      return areFree(bounds) ? add(bounds.map(([key]) => key)) : undefined;
    },
    freeFor(accountId, host) {
      const left = Math.min(perAccount, total - count(TOTAL), perHost - count(hostKey(host)));
      return Math.max(0, left - count(accountKey(accountId)));
    },
    inFlight: (accountId) => count(accountKey(accountId)),
    isFull: () => count(TOTAL) >= total,
  };
}
