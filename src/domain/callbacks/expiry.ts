// When accounts are told that a certificate ends. Notices of a threshold are written in the order in which they become due,
// and a cursor says how far: the cursor moves with the events, so that none is written twice or left out.
import { DAY_MS } from '../../kernel/durations.ts';
import { type CertificateRecord, statusOf } from '../certificate/certificate.ts';
import type { Order } from '../certificate/order.ts';
import { latestAhead } from '../clock.ts';
import type { CertificateId } from '../ids.ts';

/** In the order of due times; certificates whose notices are due at the same time are ordered by id. */
export interface NoticeCursor {
  readonly dueAt: number;
  /** Empty: before all of that time. */
  readonly certificateId: CertificateId | '';
}

export const MAX_NOTICE_DAYS = 365;

/** A cursor further ahead than this was moved by a clock that was ahead. Within it, the notices wait for the clock. */
export const NOTICE_CLOCK_MS = DAY_MS;

/** Of one threshold: the notices after the cursor that are due before a time. */
export interface DueNotices {
  readonly days: number;
  readonly after: NoticeCursor;
  readonly before: number;
}

/**
 * The notices of a threshold to write now. `nextDays` is the threshold below it, 0 for the lowest: a certificate that has
 * come so close to its end, because the service was down, gets the notice of that threshold only, or none once it has ended.
 */
export function dueNotices(days: number, nextDays: number, cursor: NoticeCursor, now: number): DueNotices {
  const nearest = now - (days - nextDays) * DAY_MS;
  const from = believable(cursor, now);
  return { days, after: from.dueAt < nearest ? startAt(nearest) : from, before: now };
}

const startAt = (dueAt: number): NoticeCursor => ({ dueAt, certificateId: '' });

/** After a clock that was ahead the last day is repeated: a notice that is lost costs more than one that comes twice. */
const believable = (cursor: NoticeCursor, now: number): NoticeCursor =>
  cursor.dueAt > latestAhead(now, NOTICE_CLOCK_MS) ? startAt(now - NOTICE_CLOCK_MS) : cursor;

/** The cursor after a page of notices; `last` is that of a full page, after which there may be more. */
export const cursorAfter = ({ after, before }: DueNotices, last: NoticeCursor | undefined): NoticeCursor =>
  last ?? (after.dueAt > before ? after : startAt(before));

/** Whether its holder must act: it is the one in use, and no reissue or revocation has made that moot. */
export const endsUnreplaced = (order: Order, certificate: CertificateRecord): boolean =>
  (order.status === 'issued' || order.status === 'reissuing') &&
  order.currentCertificateId === certificate.id &&
  statusOf(certificate) === 'issued';
