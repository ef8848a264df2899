import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  addMonths,
  parseDateTime,
  type ValidityRequest,
  validityOf,
} from '../../../src/domain/certificate/validity.ts';
import { Refusal } from '../../../src/domain/errors.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];
const NOW = Date.parse('2026-11-15T12:34:56.789Z');
const THIS_SECOND = Date.parse('2026-11-15T12:34:56Z');
const NOT_BEFORE = Date.parse('2026-11-15T11:34:56Z');
const ISSUER = { notBefore: 0, notAfter: Infinity };

const request = (change: Partial<ValidityRequest> = {}): ValidityRequest => ({
  now: NOW,
  maxDays: 199,
  termEndsAt: NOW + 365 * DAY,
  issuer: ISSUER,
  ...change,
});

const endOf = (change: Partial<ValidityRequest>): string =>
  new Date(validityOf(request(change)).notAfter).toISOString();

const refusedAs = (code: string, field: string | undefined, change: Partial<ValidityRequest>): void => {
  assert.throws(
    () => validityOf(request(change)),
    (error) =>
      error instanceof Refusal && error.code === code && error.facts.field === field && !!error.facts.reason?.zh,
    JSON.stringify(change),
  );
};

test('validity begins an hour ago, and 199 days are not a second longer', () => {
  const { notBefore, notAfter } = validityOf(request());
  assert.equal(notBefore, NOT_BEFORE);
  assert.equal(notAfter - notBefore + 1000, 199 * DAY);
});

test('no certificate begins before its issuer', () => {
  for (const [begins, expected] of [
    [NOT_BEFORE - 1000, NOT_BEFORE],
    [NOT_BEFORE + 1000, NOT_BEFORE + 1000],
    // By a clock that is behind.
    [THIS_SECOND + DAY, THIS_SECOND + DAY],
  ] as const) {
    const { notBefore, notAfter } = validityOf(request({ issuer: { ...ISSUER, notBefore: begins }, validityDays: 30 }));
    assert.deepEqual([notBefore, notAfter], [expected, expected + 30 * DAY - 1000]);
  }
  // Nothing that would end before it begins.
  const later = { ...ISSUER, notBefore: THIS_SECOND + DAY };
  refusedAs('order_state_conflict', undefined, { issuer: later, customExpirationDate: '2026-11-15' });
});

test('the earliest end wins', () => {
  const table: readonly (readonly [Partial<ValidityRequest>, string])[] = [
    [{}, '2027-06-02T11:34:55.000Z'],
    [{ validityDays: 1 }, '2026-11-16T11:34:55.000Z'],
    [{ validityDays: 30 }, '2026-12-15T11:34:55.000Z'],
    [{ validityDays: 199 }, '2027-06-02T11:34:55.000Z'],
    [{ validityDays: 365 }, '2027-06-02T11:34:55.000Z'],
    [{ validityDays: Number.MAX_SAFE_INTEGER }, '2027-06-02T11:34:55.000Z'],
    [{ validityDays: 1e300 }, '2027-06-02T11:34:55.000Z'],
    [{ customExpirationDate: '2026-11-15' }, '2026-11-15T23:59:59.000Z'],
    [{ customExpirationDate: '2027-01-31' }, '2027-01-31T23:59:59.000Z'],
    [{ customExpirationDate: '9999-12-31' }, '2027-06-02T11:34:55.000Z'],
    [{ customExpirationDate: '2027-01-31', validityDays: 5 }, '2026-11-20T11:34:55.000Z'],
    [{ customExpirationDate: '2026-11-18', validityDays: 5 }, '2026-11-18T23:59:59.000Z'],
    [{ customExpirationDate: '2027-01-31T12:00:00Z' }, '2027-01-31T12:00:00.000Z'],
    [{ customExpirationDate: '2027-01-31t12:00:00z' }, '2027-01-31T12:00:00.000Z'],
    [{ customExpirationDate: '2027-01-31T12:00:00.999Z' }, '2027-01-31T12:00:00.000Z'],
    [{ customExpirationDate: '2027-01-31T12:00:00+08:00' }, '2027-01-31T04:00:00.000Z'],
    [{ customExpirationDate: '2027-01-31T22:00:00-05:30' }, '2027-02-01T03:30:00.000Z'],
    [{ customExpirationDate: '2027-01-31T12:00:00-00:00' }, '2027-01-31T12:00:00.000Z'],
    [{ customExpirationDate: '2026-11-15T12:34:57Z' }, '2026-11-15T12:34:57.000Z'],
    [{ maxDays: 1 }, '2026-11-16T11:34:55.000Z'],
    [{ termEndsAt: Date.parse('2026-12-01T00:00:00Z') }, '2026-11-30T23:59:59.000Z'],
    [{ termEndsAt: Date.parse('2026-12-01T00:00:00.500Z') }, '2026-11-30T23:59:59.000Z'],
    [{ termEndsAt: Date.parse('2026-12-01T00:00:00Z'), validityDays: 400 }, '2026-11-30T23:59:59.000Z'],
    [{ issuer: { notBefore: 0, notAfter: Date.parse('2026-12-01T00:00:00Z') } }, '2026-12-01T00:00:00.000Z'],
    [
      { issuer: { notBefore: 0, notAfter: Date.parse('2026-12-01T00:00:00.500Z') }, validityDays: 400 },
      '2026-12-01T00:00:00.000Z',
    ],
    [
      { issuer: { notBefore: 0, notAfter: Date.parse('2026-12-01T00:00:00Z') }, customExpirationDate: '2026-11-18' },
      '2026-11-18T23:59:59.000Z',
    ],
    [
      {
        maxDays: 397,
        now: Date.parse('2027-12-01T00:00:00Z'),
        termEndsAt: Infinity,
        customExpirationDate: '2028-02-29',
      },
      '2028-02-29T23:59:59.000Z',
    ],
  ];
  for (const [change, end] of table) assert.equal(endOf(change), end, JSON.stringify(change));
});

test('invalid numbers of days', () => {
  for (const validityDays of [0, -1, 0.5, 7.5, Number.NaN, Infinity, -Infinity]) {
    refusedAs('invalid_parameters', 'certificate.validity_days', { validityDays });
  }
});

test('dates that are invalid or past', () => {
  for (const customExpirationDate of [
    ...['', ' ', 'tomorrow', '2027', '2027-01', '20270131', '01/02/2027', '2027-1-31', '2027-01-31 ', ' 2027-01-31'],
    ...['2027-02-29', '2027-02-30', '2027-04-31', '2027-13-01', '2027-00-10', '2027-01-00', '2027-01-32', '2100-02-29'],
    ...['+002027-01-31', '-2027-01-31', '12027-01-31', '２０２７-01-31', '2027-01-31\n', '2027-01-31Z', '2027-W04-7'],
    ...[
      '2027-01-31T12:00Z',
      '2027-01-31T12:00:00',
      '2027-01-31 12:00:00Z',
      '2027-01-31T24:00:00Z',
      '2027-01-31T12:60:00Z',
    ],
    ...['2026-12-31T23:59:60Z', '2027-01-31T12:00:61Z', '2027-01-31T12:00:00.Z', '2027-01-31T12:00:00+0800'],
    ...[
      '2027-01-31T12:00:00+24:00',
      '2027-01-31T12:00:00+08:60',
      '2027-01-31T12:00:00 +08:00',
      '2027-01-31T12:00:00ZZ',
    ],
    ...['2027-02-30T12:00:00Z', 'T12:00:00Z', '2027-01-31T', '1799999999', `2027-01-31T12:00:00.${'0'.repeat(99)}Z`],
    ...['2026-11-14', '2026-11-15T12:34:56Z', '2026-11-15T12:34:55Z', '0000-01-01', '0050-01-01', '1999-12-31'],
    ...['2026-11-15T20:34:56+08:00', '2026-11-15T07:34:56-05:00'],
  ]) {
    refusedAs('invalid_parameters', 'certificate.custom_expiration_date', { customExpirationDate });
  }
});

test('years before 1000 are years as well', () => {
  assert.equal(parseDateTime('0009-04-27T00:00:00Z'), Date.parse('0009-04-27T00:00:00Z'));
  assert.equal(parseDateTime('0009-02-30T00:00:00Z'), undefined);
});

test('a term that has ended, or nearly, yields no certificate', () => {
  for (const termEndsAt of [0, NOW - DAY, NOW, THIS_SECOND, THIS_SECOND + 1000, THIS_SECOND + 1999]) {
    refusedAs('order_state_conflict', undefined, { termEndsAt });
  }
  assert.equal(validityOf(request({ termEndsAt: THIS_SECOND + 2000 })).notAfter, THIS_SECOND + 1000);
  // Errors of the request come first: a new order would not fix them.
  refusedAs('invalid_parameters', 'certificate.validity_days', { termEndsAt: 0, validityDays: 0 });
});

test('for any request, both ends are whole seconds within the maximum, the term and the issuer’s validity', () => {
  const moments = fc.integer({ min: 0, max: Date.parse('2200-01-01') });
  fc.assert(
    fc.property(
      moments,
      fc.integer({ min: 1, max: 3650 }),
      fc.integer({ min: 2000, max: 4000 * DAY }),
      fc.option(fc.integer({ min: 1 }), { nil: undefined }),
      fc.option(fc.integer({ min: 1000, max: 4000 * DAY }), { nil: undefined }),
      fc.integer({ min: DAY, max: 4000 * DAY }),
      fc.integer({ min: 0, max: 2 * HOUR }),
      (now, maxDays, term, validityDays, life, issuerLife, issuerAge) => {
        const asked = life === undefined ? undefined : new Date(now + life);
        const [termEndsAt, issuerNotAfter] = [now + term, now + issuerLife];
        const issuer = { notBefore: Math.floor((now - issuerAge) / 1000) * 1000, notAfter: issuerNotAfter };
        const { notBefore, notAfter } = validityOf({
          ...{ now, maxDays, termEndsAt, issuer, validityDays },
          customExpirationDate: asked?.toISOString(),
        });
        assert.ok(notBefore % 1000 === 0 && notAfter % 1000 === 0);
        assert.ok(notBefore <= now && now - notBefore < HOUR + 1000 && now < notAfter + 1000);
        assert.ok(notBefore >= issuer.notBefore && (issuerAge < HOUR || now - notBefore >= HOUR));
        assert.ok(notAfter + 1000 - notBefore <= Math.min(maxDays, validityDays ?? Infinity) * DAY);
        assert.ok(
          notAfter <= issuerNotAfter && notAfter + 1000 <= termEndsAt && notAfter <= (asked?.getTime() ?? Infinity),
        );
      },
    ),
  );
});

test('every calendar day is a date, and every ISO string a date-time', () => {
  const future = fc.integer({ min: Math.ceil(NOW / 1000) + 1, max: Date.parse('9999-12-31T23:59:59Z') / 1000 });
  fc.assert(
    fc.property(future, (seconds) => {
      const text = new Date(seconds * 1000).toISOString();
      const unbounded = { maxDays: 1e9, termEndsAt: 1e18 };
      assert.equal(endOf({ ...unbounded, customExpirationDate: text }), text);
      assert.equal(
        endOf({ ...unbounded, customExpirationDate: text.slice(0, 10) }),
        `${text.slice(0, 10)}T23:59:59.000Z`,
      );
    }),
  );
});

test('months are those of the calendar, and end on a day that there is', () => {
  const table: readonly (readonly [from: string, months: number, to: string])[] = [
    ['2026-11-15T12:34:56.789Z', 1, '2026-12-15T12:34:56.789Z'],
    ['2026-11-15T12:34:56.789Z', 12, '2027-11-15T12:34:56.789Z'],
    ['2026-12-31T23:59:59.999Z', 2, '2027-02-28T23:59:59.999Z'],
    ['2027-12-31T00:00:00.000Z', 2, '2028-02-29T00:00:00.000Z'],
    ['2028-02-29T00:00:00.000Z', 12, '2029-02-28T00:00:00.000Z'],
    ['2026-08-31T00:00:00.000Z', 1, '2026-09-30T00:00:00.000Z'],
    ['2026-10-31T00:00:00.000Z', 120, '2036-10-31T00:00:00.000Z'],
  ];
  for (const [from, months, to] of table) assert.equal(new Date(addMonths(Date.parse(from), months)).toISOString(), to);
});
