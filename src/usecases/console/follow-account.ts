// What changes in an account, as small notices for pages that show it. The source is the store, asked every two seconds, so
// that changes by any process count: the audit log, in which every act is, and the newest deliveries. A notice carries ids
// only; pages read again what they show.
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditEntry } from '../../domain/access/ports.ts';
import type { Delivery } from '../../domain/callbacks/delivery.ts';
import type { Clock } from '../../domain/clock.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { MINUTE_MS, SECOND_MS } from '../../kernel/durations.ts';

export interface Notice {
  /** An action of the audit log, `delivery`, or `many` if more changed than is told one by one. */
  readonly type: string;
  readonly order_id?: string;
  readonly certificate_id?: string;
  readonly event_id?: string;
}

const POLL_MS = 2 * SECOND_MS;
/** Rows are read again for so long: clocks of instances differ, and a row may be committed after a later one. */
const WINDOW_MS = MINUTE_MS;
const MAX_ENTRIES = 100;
const MAX_DELIVERIES = 25;
/** Changes between the reading of a page and its first notice are told as well. */
const OVERLAP_MS = 5 * SECOND_MS;

export type FollowAccount = (accountId: AccountId, signal: AbortSignal) => AsyncGenerator<readonly Notice[]>;

/** Yields at every look, also without notices. Ends when `signal` is aborted; throws what the store throws. */
export const followAccount = (db: Pick<Repositories, 'audit' | 'deliveries'>, now: Clock): FollowAccount =>
  async function* follow(accountId, signal) {
    let seen: ReadonlySet<string> | undefined;
    let states: ReadonlyMap<string, string> | undefined;
    while (!signal.aborted) {
      const since = now() - WINDOW_MS;
      const { entries } = await db.audit.search({ accountId, since }, { limit: MAX_ENTRIES });
      const { deliveries } = await db.deliveries.list(accountId, {}, { limit: MAX_DELIVERIES });
      const [seenBefore, statesBefore] = [seen ?? idsBefore(entries, now() - OVERLAP_MS), states];
      seen = new Set(entries.map(({ id }) => id));
      states = new Map(deliveries.map((one) => [one.id, stateOf(one)]));
      const fresh = entries.filter(({ id, action }) => !seenBefore.has(id) && !isOfConsole(action)).reverse();
      const changed = statesBefore ? deliveries.filter((one) => statesBefore.get(one.id) !== stateOf(one)) : [];
      yield fresh.length >= MAX_ENTRIES
        ? [{ type: 'many' }]
        : [...fresh.map(noticeOf), ...changed.map(({ id, orderId }) => deliveryNotice(id, orderId))];
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  };

const idsBefore = (entries: readonly AuditEntry[], time: number): ReadonlySet<string> =>
  new Set(entries.filter(({ at }) => at < time).map(({ id }) => id));

const stateOf = ({ state, attempts }: Delivery): string => `${state} ${attempts}`;

const isOfConsole = (action: string): boolean => action.startsWith('console:');

const deliveryNotice = (event_id: string, order_id: string): Notice => ({ type: 'delivery', event_id, order_id });

/** What the subject of an action is; those left out concern the account or a key. */
const SUBJECTS: Readonly<Record<string, 'order_id' | 'certificate_id'>> = {
  order: 'order_id',
  certificate: 'certificate_id',
  revocation: 'certificate_id',
  // Its certificate is in the details.
  'certificate:issued': 'order_id',
};

function noticeOf({ action, subject, details }: AuditEntry): Notice {
  const name = SUBJECTS[action] ?? SUBJECTS[action.split(':', 1)[0] ?? ''];
  const { order_id, certificate_id } = details;
  return {
    type: action,
    ...(typeof order_id === 'string' && { order_id }),
    ...(typeof certificate_id === 'string' && { certificate_id }),
    ...(name && { [name]: subject }),
  };
}
