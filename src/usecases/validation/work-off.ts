// Works off a queue in the store that instances share, until nothing in it is due: so many at once, fair across accounts.
// Only as much is claimed as is worked on at once, or leases would expire in memory.
import type { AccountId } from '../../domain/ids.ts';
import { keyCounts } from '../../kernel/concurrency.ts';

/** The work mostly waits for I/O. */
const AT_ONCE = 32;
const PER_ACCOUNT = 8;

export interface DueWork<Item> {
  /** Leases what is due, of any account but `except`, whose share is used up. */
  claim(most: number, except: readonly AccountId[]): Promise<Item[]>;
  /** Ends the lease: it is due again. */
  putBack(item: Item): Promise<void>;
  /** Never throws. */
  run(item: Item): Promise<void>;
}

/** Returns how many items it has worked on. */
export async function workOff<Item extends { readonly accountId: AccountId }>(
  { claim, putBack, run }: DueWork<Item>,
  stopping?: AbortSignal,
): Promise<number> {
  const running = new Set<Promise<void>>();
  const { count, add } = keyCounts();
  const room = () => AT_ONCE - running.size;
  // An account never has more than it leaves free: names that do not answer hold a slot for a minute.
  const isAccountBusy = (accountId: AccountId) => count(accountId) >= Math.min(PER_ACCOUNT, room());
  const begin = (item: Item) => {
    const counted = add([item.accountId]);
    const work = run(item).finally(() => {
      running.delete(work);
      counted[Symbol.dispose]();
    });
    running.add(work);
  };
  let done = 0;
  // Accounts whose share was used up when they were claimed. What is due of them is left alone until a slot is free.
  const busy = new Set<AccountId>();
  for (;;) {
    const most = stopping?.aborted ? 0 : room();
    const claimed = most > 0 ? await claim(most, [...busy]) : [];
    for (const item of claimed) {
      if (isAccountBusy(item.accountId)) {
        busy.add(item.accountId);
        await putBack(item);
        continue;
      }
      begin(item);
      done += 1;
    }
    if (claimed.length > 0 && claimed.length === most) continue;
    if (running.size === 0) return done;
    await Promise.race(running);
    for (const accountId of busy) if (!isAccountBusy(accountId)) busy.delete(accountId);
  }
}
