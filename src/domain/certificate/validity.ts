// The validity of a certificate, to the second: the shortest of what was requested, the product's maximum, the order's
// term and the issuer's chain. A request that is too long is shortened, never refused; a malformed one is refused.
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../kernel/durations.ts';
import { invalid, Refusal } from '../errors.ts';

export interface ValidityRequest {
  /** Milliseconds since 1970, like all times here. */
  readonly now: number;
  readonly validityDays?: number | undefined;
  readonly customExpirationDate?: string | undefined;
  readonly maxDays: number;
  /** End of the order's term, exclusive. */
  readonly termEndsAt: number;
  /** No certificate may begin before its issuer, or outlive it. */
  readonly issuer: Validity;
}

/** Whole seconds, as X.509 has them; both ends are inclusive. */
export interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** What we sign begins this much earlier, for verifiers whose clocks are behind. */
const BACKDATE_MS = HOUR_MS;

/** The beginning of what an issuer signs now: never before the issuer itself. */
export const backdated = (now: number, { notBefore }: Pick<Validity, 'notBefore'>): number =>
  floorToSecond(Math.max(now - BACKDATE_MS, notBefore));

export function validityOf(request: ValidityRequest): Validity {
  const { now, validityDays, customExpirationDate, maxDays, termEndsAt, issuer } = request;
  const notBefore = backdated(now, issuer);
  const notAfter = Math.min(
    validityDays === undefined ? Infinity : lastSecond(notBefore, requireDays(validityDays)),
    customExpirationDate === undefined ? Infinity : requireExpiration(customExpirationDate, floorToSecond(now)),
    lastSecond(notBefore, maxDays),
    floorToSecond(termEndsAt) - SECOND_MS,
    floorToSecond(issuer.notAfter),
  );
  if (notAfter > Math.max(notBefore, floorToSecond(now))) return { notBefore, notAfter };
  throw new Refusal('order_state_conflict', {
    reason: {
      en: 'The term of the order is over, or too near its end for another certificate. Place a new order.',
      zh: '订单期限已结束或即将结束，无法再签发证书，请重新下单。',
    },
  });
}

/** Calendar months in UTC. A day that the month does not have is its last one: January 31 and a month is February 28. */
export function addMonths(at: number, months: number): number {
  const date = new Date(at);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  return date.setUTCDate(Math.min(day, lastDay));
}

export const floorToSecond = (at: number): number => Math.floor(at / SECOND_MS) * SECOND_MS;

/** Minus one second, because notAfter is inclusive: a day has 86 400 seconds. */
const lastSecond = (notBefore: number, days: number): number => notBefore + days * DAY_MS - SECOND_MS;

function requireDays(days: number): number {
  if (Number.isInteger(days) && days >= 1) return days;
  throw invalid(
    'certificate.validity_days',
    'validity_days is a whole number of at least 1.',
    'validity_days 须为不小于 1 的整数。',
  );
}

function requireExpiration(text: string, now: number): number {
  const end = expirationDate(text);
  if (end === undefined) {
    throw badDate(
      'custom_expiration_date is a real date, YYYY-MM-DD, or an RFC 3339 date-time such as 2027-01-31T12:00:00Z.',
      'custom_expiration_date 须为真实日期 YYYY-MM-DD，或 RFC 3339 日期时间，如 2027-01-31T12:00:00Z。',
    );
  }
  if (end > now) return end;
  throw badDate('custom_expiration_date must lie in the future.', 'custom_expiration_date 必须是将来的时间。');
}

const badDate = (en: string, zh: string): Refusal => invalid('certificate.custom_expiration_date', en, zh);

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** A date means the last second of that day. Undefined when the text is neither a real date nor an RFC 3339 date-time. */
function expirationDate(text: string): number | undefined {
  const day = startOfDay(text);
  return day === undefined ? parseDateTime(text) : day + DAY_MS - SECOND_MS;
}

/** Parses an RFC 3339 date-time and drops fractions of a second. Undefined when malformed, or not a real date. */
export function parseDateTime(text: string): number | undefined {
  const [, date = '', hour, minute, second, sign, offsetHour = '0', offsetMinute = '0'] = DATE_TIME.exec(text) ?? [];
  const start = startOfDay(date);
  if (start === undefined) return undefined;
  const time = clock(hour, minute, second);
  const offset = clock(offsetHour, offsetMinute, '0');
  if (time === undefined || offset === undefined) return undefined;
  return start + time - (sign === '-' ? -offset : offset);
}

/** Undefined for dates such as February 30, which Date would turn into March. */
function startOfDay(date: string): number | undefined {
  if (!DATE.test(date)) return undefined;
  const start = Date.parse(`${date}T00:00:00Z`);
  return Number.isFinite(start) && new Date(start).toISOString().startsWith(date) ? start : undefined;
}

/** Milliseconds since midnight. Refuses leap seconds, which Unix time does not have. */
function clock(hour: string | undefined, minute: string | undefined, second: string | undefined): number | undefined {
  const [h, m, s] = [Number(hour), Number(minute), Number(second)];
  return h <= 23 && m <= 59 && s <= 59 ? ((h * 60 + m) * 60 + s) * SECOND_MS : undefined;
}
