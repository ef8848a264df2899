// Concurrency limits of callback tests and of deliveries: in total, per account and per host. Nothing queues here: without
// a free slot a test is refused, and a delivery stays in its lane.
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { keyCounts } from '../../kernel/concurrency.ts';

export interface ConcurrencyLimits {
  readonly total: number;
  readonly perAccount: number;
  readonly perHost: number;
}

const TOTAL = 'total';
const accountKey = (accountId: AccountId): string => `account ${accountId}`;
const hostKey = (host: string): string => `host ${host}`;

/** Refuses with `service_busy` at once if there is no free slot. */
export type AcquireTestSlot = (accountId: AccountId, host: string) => Promise<Disposable>;

/** Undefined if there is no free slot. */
export type TestSlots = (accountId: AccountId, host: string) => Disposable | undefined;

export function testSlots({ total, perAccount, perHost }: ConcurrencyLimits): TestSlots {
  const inFlight = keyCounts();
  return (accountId, host) => {
    const bounds = [
      [TOTAL, total],
      [accountKey(accountId), perAccount],
      [hostKey(host), perHost],
    ] as const;
    const isFree = bounds.every(([key, max]) => inFlight.count(key) < max);
    return isFree ? inFlight.add(bounds.map(([key]) => key)) : undefined;
  };
}

export const noFreeTestSlot = (): Refusal =>
  new Refusal('service_busy', {
    retryAfterSeconds: 1,
    reason: {
      en: 'Too many callback tests are under way. Wait until one has ended, and try again.',
      zh: '正在进行的回调测试过多，请等待其中一个结束后重试。',
    },
  });

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
  const isFree = (request: SlotRequest) => boundsOf(request).every(([key, max]) => count(key) < max);
  return {
    isFree,
    tryAcquire: (request) => (isFree(request) ? add(boundsOf(request).map(([key]) => key)) : undefined),
    freeFor(accountId, host) {
      const left = Math.min(perAccount, total - count(TOTAL), perHost - count(hostKey(host)));
      return Math.max(0, left - count(accountKey(accountId)));
    },
    inFlight: (accountId) => count(accountKey(accountId)),
    isFull: () => count(TOTAL) >= total,
  };
}
