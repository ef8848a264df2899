// How many of a kind may be under way at once: in all, for each account, and towards each host. Whoever finds no slot
// is told that the service is busy, at once; nobody waits in a queue.

import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';

export interface SlotLimits {
  readonly total: number;
  readonly perAccount: number;
  readonly perHost: number;
}

export interface Slot {
  [Symbol.dispose](): void;
}

export function slots(limits: SlotLimits): (accountId: AccountId, host: string) => Slot {
  const underWay = new Map<string, number>();
  const count = (key: string) => underWay.get(key) ?? 0;
  return (accountId, host) => {
    const bounds = [
      ['all', limits.total],
      [`account ${accountId}`, limits.perAccount],
      [`host ${host}`, limits.perHost],
    ] as const;
    if (bounds.some(([key, most]) => count(key) >= most)) {
      throw new Refusal('service_busy', {
        retryAfterSeconds: 1,
        reason: {
          en: 'Too many callback tests are under way. Wait until one has ended, and try again.',
          zh: '正在进行的回调测试过多，请等待其中一个结束后重试。',
        },
      });
    }
    for (const [key] of bounds) underWay.set(key, count(key) + 1);
    return {
      [Symbol.dispose]() {
        for (const [key] of bounds) {
          const left = count(key) - 1;
          // A key that nobody uses is forgotten, or every host ever tested would be remembered.
          if (left > 0) underWay.set(key, left);
          else underWay.delete(key);
        }
      },
    };
  };
}
