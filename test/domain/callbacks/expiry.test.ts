// Which expiry notices are due: every certificate that comes closer to its end passes each threshold once, however the
// runs are spaced, and after a pause only the nearest threshold counts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cursorAfter, dueNotices, endsUnreplaced, type NoticeCursor } from '../../../src/domain/callbacks/expiry.ts';
import { ORDER_STATUSES } from '../../../src/domain/certificate/order.ts';
import { certificate, issued, NOW, order, revocation } from '../../support/records.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const THRESHOLDS = [30, 14, 7, 1];

/** The notices that a certificate gets which ends at `notAfter`, if runs happen at these times. */
function noticesOf(notAfter: number, runs: readonly number[]): number[] {
  const cursors = new Map<number, NoticeCursor>();
  return runs.flatMap((now) =>
    THRESHOLDS.filter((days, index) => {
      const cursor = cursors.get(days) ?? { dueAt: now, certificateId: '' };
      const due = dueNotices(days, THRESHOLDS[index + 1] ?? 0, cursor, now);
      cursors.set(days, cursorAfter(due, undefined));
      const dueAt = notAfter - days * DAY;
      return dueAt >= due.after.dueAt && dueAt < due.before;
    }),
  );
}

const every = (ms: number, from: number, until: number): number[] =>
  Array.from({ length: Math.ceil((until - from) / ms) }, (_, index) => from + index * ms);

test('each threshold is passed once, whatever the time between runs', () => {
  const end = NOW + 40 * DAY;
  for (const step of [HOUR, 7 * HOUR, DAY, DAY - 1]) {
    assert.deepEqual(noticesOf(end, every(step, NOW, end + DAY)), THRESHOLDS, String(step));
  }
});

test('after a pause over several thresholds only the nearest one is due, and none after the end', () => {
  const end = NOW + 40 * DAY;
  const paused = (daysLeft: number) => noticesOf(end, [NOW, ...every(HOUR, end - daysLeft * DAY, end + DAY)]);
  assert.deepEqual(paused(20), [30, 14, 7, 1]);
  assert.deepEqual(paused(10), [14, 7, 1]);
  assert.deepEqual(paused(6.9), [7, 1]);
  assert.deepEqual(paused(0.5), [1]);
  assert.deepEqual(paused(-0.5), []);
});

test('a threshold that was passed before there were notices is not due', () => {
  assert.deepEqual(noticesOf(NOW + 10 * DAY, every(HOUR, NOW, NOW + 11 * DAY)), [7, 1]);
});

test('a cursor that a clock has moved ahead waits within a day, and is void beyond', () => {
  const ahead = (ms: number) => dueNotices(30, 14, { dueAt: NOW + ms, certificateId: 'c' }, NOW);
  assert.deepEqual(ahead(DAY), { days: 30, after: { dueAt: NOW + DAY, certificateId: 'c' }, before: NOW });
  assert.deepEqual(cursorAfter(ahead(DAY), undefined), { dueAt: NOW + DAY, certificateId: 'c' }, 'it does not go back');
  assert.deepEqual(ahead(366 * DAY).after, { dueAt: NOW - DAY, certificateId: '' });
  assert.deepEqual(cursorAfter(ahead(366 * DAY), undefined), { dueAt: NOW, certificateId: '' });
});

test('only the current, unrevoked certificate of a living order is worth a notice', () => {
  const current = issued('c1');
  const holder = order('o', { currentCertificateId: 'c1' });
  const isWorth = ORDER_STATUSES.filter((status) => endsUnreplaced({ ...holder, status }, current));
  assert.deepEqual(isWorth, ['issued', 'reissuing']);
  assert.ok(!endsUnreplaced({ ...holder, currentCertificateId: 'c2' }, current));
  assert.ok(!endsUnreplaced(holder, { ...current, revocation: revocation({ revokedAt: NOW }) }));
  assert.ok(
    endsUnreplaced(holder, { ...current, revocation: revocation() }),
    'a revocation to come changes nothing yet',
  );
  assert.ok(!endsUnreplaced(holder, certificate('c1')));
});
