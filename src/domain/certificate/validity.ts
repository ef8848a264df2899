// How long a certificate lives, to the second. Wishes are shortened and never refused for being long; what cannot be
// a wish at all is refused. Whether the term of an order has ended is decided where its status is, and whether an issuer
// may still sign where it is chosen; here neither may lead to a certificate that outlives it, or ends before it begins.
import { invalid, Refusal } from '../errors.ts';

const SECOND = 1000;
const DAY = 86_400 * SECOND;

export interface ValidityWish {
  /** Milliseconds, like every moment here. */
  readonly now: number;
  readonly validityDays?: number | undefined;
  readonly customExpirationDate?: string | undefined;
  readonly maxDays: number;
  /** The first moment at which nothing is owed any more. */
  readonly termEndsAt: number;
  /** The last moment of the issuer: who is gone can vouch for nobody. */
  readonly issuerNotAfter: number;
}

/** Both ends lie on whole seconds, since X.509 knows no less, and both seconds are part of the validity. */
export interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

export function validityOf(wish: ValidityWish): Validity {
  const { now, validityDays, customExpirationDate, maxDays, termEndsAt, issuerNotAfter } = wish;
  const notBefore = wholeSecond(now);
  const notAfter = Math.min(
    validityDays === undefined ? Infinity : lastSecond(notBefore, daysAsked(validityDays)),
    customExpirationDate === undefined ? Infinity : endAsked(customExpirationDate, notBefore),
    lastSecond(notBefore, maxDays),
    wholeSecond(termEndsAt) - SECOND,
    wholeSecond(issuerNotAfter),
  );
  if (notAfter > notBefore) return { notBefore, notAfter };
  throw new Refusal('order_state_conflict', {
    reason: {
      en: 'The term of the order is over, or too near its end for another certificate. Place a new order.',
      zh: '订单期限已结束或即将结束，无法再签发证书，请重新下单。',
    },
  });
}

export const wholeSecond = (at: number): number => Math.floor(at / SECOND) * SECOND;

/** The last second counts, so that a day has 86 400 of them and not one more. */
const lastSecond = (notBefore: number, days: number): number => notBefore + days * DAY - SECOND;

function daysAsked(days: number): number {
  if (Number.isInteger(days) && days >= 1) return days;
  throw invalid(
    'certificate.validity_days',
    'validity_days is a whole number of at least 1.',
    'validity_days 须为不小于 1 的整数。',
  );
}

function endAsked(text: string, notBefore: number): number {
  const end = expirationDate(text);
  if (end === undefined) {
    throw badDate(
      'custom_expiration_date is a real date, YYYY-MM-DD, or an RFC 3339 date-time such as 2027-01-31T12:00:00Z.',
      'custom_expiration_date 须为真实日期 YYYY-MM-DD，或 RFC 3339 日期时间，如 2027-01-31T12:00:00Z。',
    );
  }
  if (end > notBefore) return end;
  throw badDate('custom_expiration_date must lie in the future.', 'custom_expiration_date 必须是将来的时间。');
}

const badDate = (en: string, zh: string): Refusal =>
  new Refusal('invalid_parameters', { field: 'certificate.custom_expiration_date', reason: { en, zh } });

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** The last second that is asked for; undefined when the text is neither of the two forms or names no real moment. */
function expirationDate(text: string): number | undefined {
  const day = startOfDay(text);
  return day === undefined ? parseDateTime(text) : day + DAY - SECOND;
}

/** An RFC 3339 date-time, its fraction of a second left out; undefined when the text is none or names no real moment. */
export function parseDateTime(text: string): number | undefined {
  const [, date = '', hour, minute, second, sign, offsetHour = '0', offsetMinute = '0'] = DATE_TIME.exec(text) ?? [];
  const start = startOfDay(date);
  if (start === undefined) return undefined;
  const time = clock(hour, minute, second);
  const offset = clock(offsetHour, offsetMinute, '0');
  if (time === undefined || offset === undefined) return undefined;
  return start + time - (sign === '-' ? -offset : offset);
}

/** Undefined for the 30th of February: Date would quietly make it March. */
function startOfDay(date: string): number | undefined {
  const [, year, month, day] = DATE.exec(date) ?? [];
  if (day === undefined) return undefined;
  const start = Date.UTC(Number(year), Number(month) - 1, Number(day));
  return new Date(start).toISOString().startsWith(date) ? start : undefined;
}

/** Milliseconds since midnight. A leap second has no place in Unix time, and nobody knows the next one. */
function clock(hour: string | undefined, minute: string | undefined, second: string | undefined): number | undefined {
  const [h, m, s] = [Number(hour), Number(minute), Number(second)];
  return h <= 23 && m <= 59 && s <= 59 ? ((h * 60 + m) * 60 + s) * SECOND : undefined;
}
