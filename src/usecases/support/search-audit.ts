// Searches the audit log for the operator, across accounts. Reads only.
import type { AuditEntry, AuditFilter, AuditSubject } from '../../domain/access/ports.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Store } from '../../domain/store.ts';
import { type FoundKind, spellingsOf } from '../../domain/support/ports.ts';

export interface AuditQuery extends Omit<AuditFilter, 'about'> {
  readonly order?: string | undefined;
  readonly certificate?: string | undefined;
}

export interface AuditPage {
  /** Newest first. */
  readonly entries: readonly AuditEntry[];
  readonly nextAfter: string | null;
}

/** Throws `order_not_found` or `cert_not_found`. Of the store's bounded reads it makes at most `maxReads` for a page. */
export type SearchAudit = (query: AuditQuery, page: Page, maxReads?: number) => Promise<AuditPage>;

/** For operators: ten million rows. A search that gives up says where to go on. */
const MAX_READS = 500;

export function searchAudit(store: Store): SearchAudit {
  return async ({ order, certificate, ...filter }, { after, limit }, maxReads = MAX_READS) => {
    const subject = await subjectOf(store, order, certificate);
    const accountId = filter.accountId ?? subject?.accountId;
    const entries: AuditEntry[] = [];
    let next: string | null | undefined = after;
    for (let reads = 0; next !== null && entries.length < limit && reads < maxReads; reads += 1) {
      const page = { after: next, limit: limit - entries.length };
      const read = await store.audit.search({ ...filter, accountId, about: subject?.about }, page);
      entries.push(...read.entries);
      next = read.nextAfter;
    }
    return { entries, nextAfter: next ?? null };
  };
}

interface Subject {
  readonly about: AuditSubject;
  /** Narrows the search to the rows of one account, which an index has. */
  readonly accountId: AccountId;
}

/** The account that the id belongs to; null or undefined if there is none. */
export const accountOf = async (store: Store, kind: FoundKind, id: string): Promise<AccountId | null | undefined> =>
  (await store.finder.find(spellingsOf(id), 1)).find((one) => one.kind === kind && one.text === id)?.accountId;

async function subjectOf(store: Store, order?: string, certificate?: string): Promise<Subject | undefined> {
  if (certificate !== undefined) {
    const accountId = await accountOf(store, 'certificate', certificate);
    if (!accountId) throw new Refusal('cert_not_found');
    return { about: { certificateId: certificate }, accountId };
  }
  if (order === undefined) return undefined;
  const accountId = await accountOf(store, 'order', order);
  if (!accountId) throw new Refusal('order_not_found');
  return { about: { orderId: order }, accountId };
}
