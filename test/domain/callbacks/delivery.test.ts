// Retry delays and the circuit breaker of a lane: tables and properties.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CallbackSettings } from '../../../src/domain/callbacks/callback.ts';
import {
  afterFailure,
  FAILURES_TO_OPEN,
  type Lane,
  retryAfterOf,
  retryDelay,
  retryWindow,
  suppressionReason,
} from '../../../src/domain/callbacks/delivery.ts';
import { firstIdAt, idMaker } from '../../../src/domain/ids.ts';
import { Secret } from '../../../src/domain/secret.ts';

const NOW = Date.UTC(2026, 10, 15);
const SCHEDULE = [5_000, 30_000, 300_000];
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LANE: Lane = {
  accountId: 'a',
  failures: 0,
  openCount: 0,
  openUntil: 0,
  degradedSince: 0,
  inOrderUntil: 0,
  hasInOrder: false,
  isHeld: false,
};

test('a delay is its schedule entry ±20 %, and at least the Retry-After, up to a day', () => {
  const chance = fc.double({ min: 0, max: 1, noNaN: true });
  const asked = fc.option(fc.integer({ min: 1, max: 10 ** 12 }));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), chance, asked, (tries, luck, retryAfter) => {
      const wait = SCHEDULE[tries - 1];
      const delay = retryDelay(SCHEDULE, tries, luck, retryAfter);
      if (wait === undefined) return delay === null;
      const least = Math.max(wait * 0.8, Math.min(retryAfter ?? 0, DAY));
      return delay !== null && delay >= least - 1 && delay <= Math.max(wait * 1.2, Math.min(retryAfter ?? 0, DAY)) + 1;
    }),
  );
  assert.deepEqual([retryDelay(SCHEDULE, 1, 0, null), retryDelay(SCHEDULE, 1, 1, null)], [4_000, 6_000]);
  assert.ok(retryWindow(SCHEDULE) > SCHEDULE.reduce((sum, ms) => sum + ms * 1.2, 0));
});

test('Retry-After is seconds or a date, and anything else is ignored', () => {
  const table: [text: string | undefined, expected: number | null][] = [
    [undefined, null],
    ['', null],
    ['0', null],
    ['7', 7_000],
    [' 7 ', 7_000],
    ['007', 7_000],
    ['-7', null],
    ['+7', null],
    ['7.5', null],
    ['7, 8', null],
    ['1e3', null],
    ['９', null],
    ['9'.repeat(400), null],
    [new Date(NOW + 60_000).toUTCString(), 60_000],
    [new Date(NOW).toUTCString(), null],
    [new Date(NOW - 60_000).toUTCString(), null],
    ['Sun, 99 Nov 2026 99:99:99 GMT', null],
    ['2026-11-16T00:00:00Z', null],
    ['tomorrow', null],
  ];
  for (const [text, expected] of table) {
    assert.equal(retryAfterOf(text === undefined ? {} : { 'retry-after': text }, NOW), expected, text);
  }
});

test('the circuit opens after consecutive failures, longer each time, and concurrent failures count once', () => {
  let lane = LANE;
  for (let count = 1; count < FAILURES_TO_OPEN; count += 1)
    lane = afterFailure(lane, { startedAt: NOW, now: NOW, schedule: SCHEDULE });
  assert.deepEqual([lane.openCount, lane.openUntil], [0, 0]);
  lane = afterFailure(lane, { startedAt: NOW, now: NOW, schedule: SCHEDULE });
  assert.deepEqual([lane.openCount, lane.openUntil], [1, NOW + 5_000]);
  for (let count = 0; count < 20; count += 1)
    lane = afterFailure(lane, { startedAt: NOW, now: NOW + 15_000, schedule: SCHEDULE });
  assert.deepEqual([lane.openCount, lane.openUntil], [1, NOW + 5_000], 'they began before the circuit opened');
  const pauses = [30_000, 300_000, 300_000, 300_000];
  for (const pause of pauses) {
    const at = lane.openUntil;
    lane = afterFailure(lane, { startedAt: at, now: at, schedule: SCHEDULE });
    assert.equal(lane.openUntil - at, pause);
  }
  const long = afterFailure({ ...LANE, failures: 50, openCount: 9 }, { startedAt: NOW, now: NOW, schedule: [DAY] });
  assert.equal(long.openUntil, NOW + HOUR, 'never for longer than an hour');
});

test('settings decide which events are suppressed, with the most lasting reason first', () => {
  const settings: CallbackSettings = {
    ...{ accountId: 'a', url: 'https://x.example/', accessKey: new Secret('k'), signingSecret: new Secret('s') },
    ...{ former: null, isDisabled: false, enabledActions: null, updatedAt: NOW },
  };
  assert.equal(suppressionReason(undefined, 'order:issued'), 'not_configured');
  assert.equal(suppressionReason(settings, 'order:issued'), null);
  assert.equal(suppressionReason({ ...settings, isDisabled: true }, 'order:issued'), 'disabled');
  const paused: CallbackSettings = { ...settings, isDisabled: true, enabledActions: [] };
  assert.equal(suppressionReason(paused, 'order:issued'), 'action_not_enabled', 'it stays so after the pause');
  assert.equal(
    suppressionReason({ ...settings, enabledActions: ['order:revoked'] }, 'order:issued'),
    'action_not_enabled',
  );
  assert.equal(suppressionReason({ ...settings, enabledActions: ['order:revoked'] }, 'order:revoked'), null);
});

test('firstIdAt separates ids made before a time from those made since', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2 ** 45 }),
      fc.uint8Array({ minLength: 10, maxLength: 10 }),
      (time, bytes) => {
        const idAt = (at: number) =>
          idMaker(
            () => at,
            () => bytes,
          )();
        assert.ok(idAt(time - 1) < firstIdAt(time) && firstIdAt(time) <= idAt(time));
        assert.equal(firstIdAt(time).length, idAt(time).length);
      },
    ),
  );
});
