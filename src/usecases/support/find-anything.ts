// Finds what a text stands for, in any account, and tells the stories of the orders it leads to. Reads only.
import type { AuditEntry } from '../../domain/access/ports.ts';
import { type AccountId, type OrderId, timeOf } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { type Found, spellingsOf } from '../../domain/support/ports.ts';
import { type Story, tellStory } from './tell-story.ts';

export interface Findings {
  readonly found: readonly Found[];
  /** What the request of that id has changed, oldest first. */
  readonly ofRequest: readonly AuditEntry[];
  /** Of the newest orders. */
  readonly stories: readonly Story[];
  /** Further orders that the text leads to, without their stories. */
  readonly furtherOrders: readonly OrderId[];
}

/** `related`: further ids that lead to orders, such as those of a log line. */
export type FindAnything = (text: string, related?: readonly string[]) => Promise<Findings>;

const MAX_FOUND = 50;
const MAX_STORIES = 3;
const MAX_ENTRIES = 100;

export function findAnything(store: Store): FindAnything {
  const tell = tellStory(store);
  const lookUp = (text: string) => store.finder.find(spellingsOf(text), MAX_FOUND);

  return async (text, related = []) => {
    const found = await lookUp(text);
    const ofRequest = timeOf(text) === undefined ? [] : await requestEntries(text);
    const orders = new Map<OrderId, AccountId>();
    const note = (places: readonly Found[]) => {
      for (const { orderId, accountId } of places) if (orderId && accountId) orders.set(orderId, accountId);
    };
    note(found);
    const ids = ofRequest.flatMap(({ subject, details }) => [subject, String(details.order_id ?? '')]);
    for (const id of new Set([...related, ...ids])) if (timeOf(id) !== undefined) note(await lookUp(id));
    // Ids are ordered by time.
    const newest = [...orders].sort(([one], [other]) => (one < other ? 1 : -1));
    const stories: Story[] = [];
    for (const [orderId, accountId] of newest.slice(0, MAX_STORIES)) {
      const story = await tell(accountId, orderId);
      if (story) stories.push(story);
    }
    return { found, ofRequest, stories, furtherOrders: newest.slice(MAX_STORIES).map(([id]) => id) };
  };

  async function requestEntries(requestId: string): Promise<AuditEntry[]> {
    const { entries } = await store.audit.search({ requestId }, { limit: MAX_ENTRIES });
    return entries.reverse();
  }
}
