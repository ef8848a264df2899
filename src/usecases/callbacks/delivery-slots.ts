// How many deliveries may be under way at once in this process: in all, for each account and towards each host. Half of
// the places are for first attempts to receivers that are well; the others may use what is left. Nobody waits here:
// what finds no place stays in its lane.
import type { AccountId } from '../../domain/ids.ts';

export interface DeliveryLimits {
  readonly total: number;
  readonly perAccount: number;
  readonly perHost: number;
}

export interface Place {
  readonly accountId: AccountId;
  readonly host: string;
  /** A first attempt, to a receiver that has not failed lately. */
  readonly isFirst: boolean;
}

export interface DeliverySlots {
  /** Undefined when there is none. */
  take(place: Place): Disposable | undefined;
  hasRoom(place: Place): boolean;
  /** How many more the account may have under way. */
  roomOf(accountId: AccountId): number;
  underWay(accountId: AccountId): number;
  isFull(): boolean;
}

export function deliverySlots({ total, perAccount, perHost }: DeliveryLimits): DeliverySlots {
  const taken = new Map<string, number>();
  const count = (key: string) => taken.get(key) ?? 0;
  const accountKey = (accountId: AccountId) => `account ${accountId}`;
  const boundsOf = ({ accountId, host, isFirst }: Place) =>
    [
      ['all', total],
      // Never more than there is left for the others: a few that are slow leave room for who comes next.
      [accountKey(accountId), Math.min(perAccount, total - count('all'), perHost - count(`host ${host}`))],
      [`host ${host}`, perHost],
      ...(isFirst ? [] : [['repeated', Math.floor(total / 2)] as const]),
    ] as const;
  const hasRoom = (place: Place) => boundsOf(place).every(([key, most]) => count(key) < most);
  return {
    hasRoom,
    underWay: (accountId) => count(accountKey(accountId)),
    roomOf: (accountId) => Math.max(0, Math.min(perAccount - count(accountKey(accountId)), total - count('all'))),
    isFull: () => count('all') >= total,
    take(place) {
      if (!hasRoom(place)) return undefined;
      const keys = boundsOf(place).map(([key]) => key);
      for (const key of keys) taken.set(key, count(key) + 1);
      return {
        [Symbol.dispose]() {
          for (const key of keys) {
            // A key that nobody uses is forgotten, or every host ever called would be remembered.
            if (count(key) > 1) taken.set(key, count(key) - 1);
            else taken.delete(key);
          }
        },
      };
    },
  };
}
