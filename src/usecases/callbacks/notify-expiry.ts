// Tells accounts that asked for it that a certificate ends soon. The cursor of a threshold is locked while its notices are
// written and moves in the same transaction: across instances and crashes each notice is written once.
import { cursorAfter, dueNotices, endsUnreplaced } from '../../domain/callbacks/expiry.ts';
import type { OutboxEvent } from '../../domain/callbacks/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { Repositories, Store } from '../../domain/store.ts';

/** Certificates examined in one transaction, which locks the orders of those that are notified. */
const PAGE = 100;
/** Bounds one run for each threshold; the next run continues. */
const MAX_PAGES = 50;

export interface NotifyExpiryTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  /** Thresholds, the highest first. */
  readonly noticeDays: readonly number[];
  /** For metrics and the log. */
  readonly onNotice: (ref: CertificateRef, days: number) => void;
}

/** Returns how many notices it wrote. */
export async function notifyExpiry(tools: NotifyExpiryTools, stopping?: AbortSignal): Promise<number> {
  const { store, noticeDays, onNotice } = tools;
  const now = tools.now();
  let total = 0;
  for (const [index, days] of noticeDays.entries()) {
    for (let pages = 0; pages < MAX_PAGES && !stopping?.aborted; pages += 1) {
      const threshold = { days, nextDays: noticeDays[index + 1] ?? 0, now };
      const { events, hasMore } = await store.transaction((tx) => writePage(tx, tools.newId, threshold));
      for (const event of events) onNotice(event, days);
      total += events.length;
      if (!hasMore) break;
    }
  }
  return total;
}

interface Threshold {
  readonly days: number;
  readonly nextDays: number;
  readonly now: number;
}

async function writePage(tx: Repositories, newId: NewId, { days, nextDays, now }: Threshold) {
  const due = dueNotices(days, nextDays, await tx.expiryNotices.lockCursor(days, now), now);
  const { candidates, last } = await tx.expiryNotices.page(due, PAGE);
  const events: OutboxEvent[] = [];
  // All orders before the first event, which locks its account: others lock an order before its account.
  for (const { accountId, orderId, certificateId } of candidates) {
    const found = await tx.orders.findForUpdate(accountId, orderId);
    const certificate = await tx.certificates.find(accountId, certificateId);
    if (!found || !certificate || !endsUnreplaced(found.order, certificate)) continue;
    const { status: orderStatus } = found.order;
    const about = { accountId, orderId, orderStatus, certificateId };
    events.push({ id: newId(), ...about, action: 'order:expiring', createdAt: now });
  }
  for (const event of events) await tx.outbox.add(event);
  await tx.expiryNotices.moveCursor(days, cursorAfter(due, last));
  return { events, hasMore: last !== undefined };
}
