// Types of environment variables and their parsers. Parsing is strict and rejects with a reason: a misread setting is
// worse than a missing one.
import { isIP } from 'node:net';
import { parseSealKeys } from '../adapters/seal/seal.ts';
import { MAX_NOTICE_DAYS } from '../domain/callbacks/expiry.ts';
import { type AddressRule, type Network, parseAddressRule } from '../domain/egress/addresses.ts';
import type { AccountId } from '../domain/ids.ts';
import type { Rate } from '../domain/rate.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../kernel/durations.ts';

export interface Variable<T> {
  readonly about: string;
  readonly example: string;
  readonly defaultValue: T;
  /** The value, or the reason why the text is invalid. */
  parse(text: string): { value: T } | { reason: string };
}

type Parse<T> = Variable<T>['parse'];

export function text(
  about: string,
  example: string,
  defaultValue: string,
  parse: Parse<string> = anyText,
): Variable<string> {
  return { about, example, defaultValue, parse };
}

export function country(about: string, example: string, defaultValue: string): Variable<string> {
  return {
    ...{ about, example, defaultValue },
    parse: (given) =>
      /^[A-Z]{2}$/.test(given) ? { value: given } : { reason: 'must be two capital letters, such as DE' },
  };
}

export function integer(about: string, defaultValue: number, least: number, most: number): Variable<number> {
  const example = String(defaultValue);
  return {
    about,
    example,
    defaultValue,
    parse(given) {
      if (given.startsWith('tcp://')) {
        return {
          reason:
            'looks like what Kubernetes injects for a Service named "reseal"; set it yourself, or set enableServiceLinks: false in the pod',
        };
      }
      const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
      return value >= least && value <= most
        ? { value }
        : { reason: `must be a whole number from ${least} to ${most}` };
    },
  };
}

export function flag(about: string): Variable<boolean> {
  return {
    ...{ about, example: 'true', defaultValue: false },
    parse: (given) =>
      given === 'true' || given === 'false' ? { value: given === 'true' } : { reason: 'must be true or false' },
  };
}

export function optional<T>(about: string, example: string, parse: Parse<T>): Variable<T | undefined> {
  return { about, example, defaultValue: undefined, parse };
}

export function list<T>(about: string, example: string, parse: Parse<T>): Variable<readonly T[]> {
  return {
    about,
    example,
    defaultValue: [],
    parse(given) {
      const value: T[] = [];
      for (const [index, item] of given.split(',').entries()) {
        const parsed = parse(item.trim());
        if ('reason' in parsed) return { reason: `${parsed.reason} (item ${index + 1})` };
        value.push(parsed.value);
      }
      return { value };
    },
  };
}

export function anyText(given: string) {
  return given.trim() === given ? { value: given } : { reason: 'begins or ends with a blank' };
}

export function publicUrl(given: string) {
  const url = URL.parse(given);
  if (!url || !/^https?:\/\/[^/]/i.test(given)) return { reason: 'must be an http:// or https:// address' };
  if (url.username || url.password || url.search || url.hash) {
    return { reason: 'must be a scheme, a host and at most a path: no user, query or fragment' };
  }
  return { value: `${url.origin}${url.pathname}`.replace(/\/+$/, '') };
}

export function databaseUrl(given: string) {
  return /^postgres(ql)?:\/\//.test(given) && URL.canParse(given)
    ? { value: given }
    : { reason: 'must be a postgres:// address (leave it out for the embedded database)' };
}

export function sealKeyText(given: string) {
  return parseSealKeys(given)
    ? { value: given }
    : { reason: 'must be 32 bytes in base64; several keys, the newest first, are separated by commas' };
}

export function addressOrRange(given: string) {
  const [address = '', length, ...rest] = given.split('/');
  const bits = isIP(address) === 4 ? 32 : 128;
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
  return isIP(address) && isLength && rest.length === 0
    ? { value: given }
    : { reason: 'must be a list of IP addresses or ranges' };
}

export function dnsServer(given: string) {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^[\]]+?))(?::(\d{1,5}))?$/.exec(given) ?? [];
  const isAddress = bracketed ? isIP(bracketed) === 6 : isIP(plain ?? '') === 4 || isIP(given) === 6;
  return isAddress && Number(port ?? 53) <= 65_535
    ? { value: given }
    : { reason: 'must be a list of IP addresses, each with an optional port' };
}

/** A domain name as in CAA records: letters, digits and hyphens, at least two labels. */
export function hostName(given: string): { value: string } | { reason: string } {
  const name = given.toLowerCase().replace(/\.$/, '');
  const isName =
    name.length <= 253 && /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name);
  return isName ? { value: name } : { reason: 'must be a list of domain names, such as ca.example.com' };
}

export function token(given: string) {
  return /^[\x21-\x7e]{16,256}$/.test(given) ? { value: given } : { reason: 'must be 16 to 256 printable characters' };
}

export function logFormat(given: string): { value: 'json' | 'text' } | { reason: string } {
  return given === 'json' || given === 'text' ? { value: given } : { reason: 'must be json or text' };
}

export function addressRule(given: string): { value: AddressRule } | { reason: string } {
  const value = parseAddressRule(given);
  return value
    ? { value }
    : { reason: 'must be a list of IP addresses or ranges, each with an optional port: 10.1.2.3:8443, [fd00::/8]:443' };
}

export function networkOnly(given: string): { value: Network } | { reason: string } {
  const value = parseAddressRule(given);
  return value?.port === null ? { value } : { reason: 'must be a list of IP addresses or ranges, without ports' };
}

/** An address rule for one account, or for all when `accountId` is null. */
export interface AccountRule {
  readonly accountId: AccountId | null;
  readonly rule: AddressRule;
}

export function accountRule(given: string): { value: AccountRule } | { reason: string } {
  const [, accountId = null, text = ''] = /^(?:([0-9a-z]+)=)?(.*)$/.exec(given) ?? [];
  const parsed = addressRule(text);
  return 'reason' in parsed ? parsed : { value: { accountId, rule: parsed.value } };
}

const UNIT_MS = { ms: 1, s: SECOND_MS, min: MINUTE_MS, h: HOUR_MS } as const;
const MAX_RATE = 100_000;

export function rate(given: string): { value: Rate } | { reason: string } {
  const [, count, unit] = /^([1-9]\d{0,5})\/(s|min|h)$/.exec(given) ?? [];
  const burst = Number(count);
  return burst <= MAX_RATE
    ? { value: { burst, everyMs: Math.max(1, Math.round(UNIT_MS[unit as keyof typeof UNIT_MS] / burst)) } }
    : { reason: `must be a number and s, min or h, such as 10/min, and at most ${MAX_RATE}` };
}

const MAX_THRESHOLDS = 10;

/** Whole days, the highest first; none for `none`. */
export function noticeDays(given: string): { value: readonly number[] } | { reason: string } {
  if (given === 'none') return { value: [] };
  const days = given.split(',').map((item) => (/^\s*\d{1,3}\s*$/.test(item) ? Number(item) : Number.NaN));
  const areDays = days.every((one) => one >= 1 && one <= MAX_NOTICE_DAYS);
  return areDays && days.length <= MAX_THRESHOLDS && new Set(days).size === days.length
    ? { value: days.sort((one, other) => other - one) }
    : { reason: `must be none, or at most ${MAX_THRESHOLDS} different whole numbers from 1 to ${MAX_NOTICE_DAYS}` };
}

const MAX_RETRIES = 30;
const MAX_DELAY_MS = 7 * 24 * UNIT_MS.h;

/** Backoff in milliseconds: the delay after the first failure, after the second, and so on. */
export function schedule(given: string): { value: readonly number[] } | { reason: string } {
  const delays = given.split(',').map((item) => {
    const [, count, unit] = /^([1-9]\d{0,6})(ms|s|min|h)$/.exec(item.trim()) ?? [];
    return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  });
  return delays.length <= MAX_RETRIES && delays.every((ms) => ms <= MAX_DELAY_MS)
    ? { value: delays }
    : { reason: `must be at most ${MAX_RETRIES} times, each up to seven days, in ms, s, min or h` };
}
