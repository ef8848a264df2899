// Lists over all accounts, for operators: accounts by a text, orders that wait, callback lanes. Reads only.
import type { Account } from '../../domain/access/account.ts';
import { isBreakerOpen, isDegraded, type LaneState } from '../../domain/callbacks/delivery.ts';
import { timeOf } from '../../domain/ids.ts';
import type { Listed, Page } from '../../domain/page.ts';
import type { Store } from '../../domain/store.ts';
import { type LaneOverview, spellingsOf, type WaitingOrder } from '../../domain/support/ports.ts';

export interface ListAllAccounts {
  /** By a part of the name, or by the id of the account or of one of its keys. */
  accounts(text: string, page: Page): Promise<Listed<Account>>;
  /** Those that wait longest first. */
  waiting(page: Page): Promise<Listed<WaitingOrder>>;
  lanes(onlyDegraded: boolean, page: Page): Promise<Listed<LaneOverview & { readonly state: LaneState }>>;
}

/** Of the store's bounded reads: a hundred thousand accounts. A search that gives up says where to go on. */
const MAX_READS = 50;

export function listAllAccounts(store: Store): ListAllAccounts {
  async function byId(id: string): Promise<Account | undefined> {
    const found = await store.finder.find(spellingsOf(id), 1);
    const accountId = found.find(({ kind }) => kind === 'account' || kind === 'key')?.accountId;
    return accountId ? await store.accounts.find(accountId) : undefined;
  }

  return {
    async accounts(given, { after, limit }) {
      const text = given.trim();
      const known = timeOf(text) === undefined ? undefined : await byId(text);
      if (known) return { rows: [known], nextAfter: null };
      const rows: Account[] = [];
      let next: string | null | undefined = after;
      for (let reads = 0; next !== null && rows.length < limit && reads < MAX_READS; reads += 1) {
        const read = await store.allAccounts.accounts(text, { after: next, limit: limit - rows.length });
        rows.push(...read.rows);
        next = read.nextAfter;
      }
      return { rows, nextAfter: next ?? null };
    },

    waiting: (page) => store.allAccounts.waiting(page),

    async lanes(onlyDegraded, page) {
      const { rows, nextAfter } = await store.allAccounts.lanes(onlyDegraded, page);
      const now = store.sharedNow();
      return { rows: rows.map((row) => ({ ...row, state: stateOf(row, now) })), nextAfter };
    },
  };
}

function stateOf({ lane }: LaneOverview, now: number): LaneState {
  if (lane.isHeld) return 'held';
  if (!isDegraded(lane)) return 'healthy';
  return isBreakerOpen(lane, now) ? 'closed' : 'degraded';
}
