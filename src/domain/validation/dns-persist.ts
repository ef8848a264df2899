// Persistent DNS records (ADR 0015): writes one, parses one, and decides whether the published ones authorize an
// account for a name. The whole plain form is in this file, so that another form can be added beside it.
import type { Localized } from '../../kernel/locale.ts';
import { hostOf, isWildcard, type RegistrableDomain, withoutFinalDot } from '../certificate/names.ts';
import type { PersistPolicy } from '../certificate/order.ts';
import { caaDomains } from './caa.ts';
import type { DomainAnswer } from './dns.ts';
import { isOurIssuer, type Obstacle, partition, quote, readIssueValue, valuesOf } from './issue-value.ts';
import { type LookupProblem, lookupProblem } from './lookup-failure.ts';

export const PERSIST_LABEL = '_validation-persist';

interface PersistBinding {
  readonly issuer: string;
  readonly accountUri: string;
  readonly persistUntil: number | null;
  readonly persistPolicy: PersistPolicy;
}

/** Returns the exact text to publish. "No expiry" leaves persistUntil out: a record with 0 is expired. */
export function persistRecord({ issuer, accountUri, persistUntil, persistPolicy }: PersistBinding): string {
  return [
    issuer,
    `accounturi=${accountUri}`,
    ...(persistPolicy === 'wildcard' ? ['policy=wildcard'] : []),
    ...(persistUntil !== null && persistUntil > 0 ? [`persistUntil=${persistUntil}`] : []),
  ].join('; ');
}

interface PersistRecord {
  readonly kind: 'record';
  readonly accountUri: string;
  readonly isWildcard: boolean;
  /** Unix seconds, inclusive; null is "no expiry". */
  readonly until: number | null;
}
interface MalformedRecord {
  readonly kind: 'malformed';
  readonly reason: Localized;
}

/** Returns `other` for records of other CAs, however malformed: only ours is judged. */
export function parsePersistRecord(
  text: string,
  issuers: readonly string[],
): { readonly kind: 'other' } | MalformedRecord | PersistRecord {
  const { issuer, parameters, fault } = readIssueValue(text);
  if (!isOurIssuer(withoutFinalDot(issuer), issuers)) return { kind: 'other' };
  if (fault) return malformed(fault);
  const twice = KNOWN_TAGS.find((tag) => valuesOf(parameters, tag.toLowerCase()).length > 1);
  if (twice !== undefined) return malformed(quote(twice, TWICE));
  const [accountUri = ''] = valuesOf(parameters, 'accounturi');
  // Mandatory, as in Boulder: a record without the tag is a mistake to report, not an authorization of another account.
  if (accountUri === '') return malformed(NO_ACCOUNT);
  const [policy = ''] = valuesOf(parameters, 'policy');
  const [until = null] = valuesOf(parameters, 'persistuntil');
  if (until !== null && !/^-?[0-9]+$/.test(until)) return malformed(quote(until, NO_INTEGER));
  return {
    kind: 'record',
    accountUri,
    isWildcard: policy.toLowerCase() === 'wildcard',
    until: until === null ? null : seconds(until),
  };
}

const KNOWN_TAGS = ['accounturi', 'policy', 'persistUntil'];
const malformed = (reason: Localized): MalformedRecord => ({ kind: 'malformed', reason });

/** Clamped to safe integers: any number of digits is valid, and means far future or long past. */
const seconds = (digits: string): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number(digits), Number.MAX_SAFE_INTEGER));

const TWICE: Localized = { en: 'the parameter is there twice. Remove one.', zh: '参数重复，请移除其中一个。' };
const NO_ACCOUNT: Localized = {
  en: 'accounturi is missing or empty. Add the one that the order shows.',
  zh: '缺少 accounturi 或其值为空，请填写订单中显示的值。',
};
const NO_INTEGER: Localized = {
  en: 'persistUntil is a time in Unix seconds, in digits only. Correct or remove it.',
  zh: 'persistUntil 须为 Unix 秒时间戳，只能由数字组成，请更正或移除。',
};

/**
 * Returns the domains whose records count for a name: its host, then its parents up to the registrable domain. A public
 * suffix is shared by unrelated registrants; without a registrable domain only the host counts.
 */
export function persistDomains(name: string, registrableDomain: RegistrableDomain): string[] {
  const host = hostOf(name);
  const top = registrableDomain(host);
  return caaDomains(name).filter(
    (domain) => domain === host || (top !== undefined && `.${domain}`.endsWith(`.${top}`)),
  );
}

interface PersistRules {
  readonly issuers: readonly string[];
  /** Of the account that asks, the one to publish first. */
  readonly accountUris: readonly string[];
  /** Milliseconds. */
  readonly now: number;
}

export type PersistVerdict =
  | { readonly kind: 'authorized'; readonly domain: string; readonly until: number | null }
  | {
      readonly kind: 'no_record' | 'malformed' | 'unauthorized';
      readonly domain: string;
      readonly reason: Localized;
    }
  | ({ readonly domain: string } & LookupProblem);

/**
 * Takes levels in the order of `persistDomains`. A record of ours at the name itself is decisive; without one the
 * parents count, nearest first. A failed lookup might have held a record, so levels above it are not trusted.
 */
export function judgePersist(
  name: string,
  levels: readonly DomainAnswer<string>[],
  rules: PersistRules,
): PersistVerdict {
  const host = hostOf(name);
  // A missing answer for the host counts as failed. Answers for domains that are not its parents are ignored.
  const own = levels.find(({ domain }) => domain === host) ?? { domain: host, answer: NOT_ASKED };
  const above = levels.filter(({ domain }) => host.endsWith(`.${domain}`));
  let nearestProblem: PersistVerdict | null = null;
  for (const { domain, answer } of [own, ...above]) {
    if (answer.kind === 'failed') return { domain, ...lookupProblem('TXT', `${PERSIST_LABEL}.${domain}`, answer) };
    if (answer.kind === 'absent') continue;
    const isOwn = domain === host;
    const verdict = judgeLevel(domain, answer.records, { ...rules, needsWildcard: !isOwn || isWildcard(name) });
    if (verdict && (isOwn || verdict.kind === 'authorized')) return verdict;
    nearestProblem ??= verdict;
  }
  return nearestProblem ?? { kind: 'no_record', domain: host, reason: missing(host) };
}

const NOT_ASKED = { kind: 'failed', reason: 'dns_failure' } as const;

interface LevelRules extends PersistRules {
  readonly needsWildcard: boolean;
}

/** Returns null when none of the records is ours. A single record must meet all rules; records are not combined. */
function judgeLevel(domain: string, texts: readonly string[], rules: LevelRules): PersistVerdict | null {
  const parsed = texts.map((text) => parsePersistRecord(text, rules.issuers));
  const records = parsed.filter((one) => one.kind === 'record');
  const { passed, why } = partition(records, obstacles(domain, rules));
  if (passed.length > 0) return { kind: 'authorized', domain, until: latest(passed) };
  const broken = parsed.find((one) => one.kind === 'malformed');
  if (broken) return { kind: 'malformed', domain, reason: about(domain, broken.reason) };
  return why && { kind: 'unauthorized', domain, reason: about(domain, why) };
}

const obstacles = (
  domain: string,
  { accountUris, now, needsWildcard }: LevelRules,
): readonly Obstacle<PersistRecord>[] => [
  [
    (record) => !accountUris.includes(record.accountUri),
    (record) =>
      quote(record.accountUri, {
        en: `this is another account. Publish accounturi=${accountUris[0]}`,
        zh: `这是另一个账户，请发布 accounturi=${accountUris[0]}`,
      }),
  ],
  [
    ({ until }) => until !== null && (until <= 0 || Math.floor(now / 1000) > until),
    ({ until }) => ({
      en: `it has expired (persistUntil=${until}). Publish a later time, or none.`,
      zh: `记录已过期（persistUntil=${until}），请发布更晚的时间，或不设过期时间。`,
    }),
  ],
  [
    (record) => needsWildcard && !record.isWildcard,
    () => ({
      en: `it is good for ${domain} alone. Add policy=wildcard, so that wildcards and names below are covered.`,
      zh: `记录仅适用于 ${domain} 本身，请添加 policy=wildcard 以覆盖通配符和下级域名。`,
    }),
  ],
];

/** The expiry of the record that lasts longest: DNS returns records in any order. */
const latest = (records: readonly PersistRecord[]): number | null =>
  records.reduce<number | null>(
    (last, { until }) => (last === null || until === null ? null : Math.max(last, until)),
    0,
  );

const about = (domain: string, why: Localized): Localized => ({
  en: `The TXT record at ${PERSIST_LABEL}.${domain}: ${why.en}`,
  zh: `${PERSIST_LABEL}.${domain} 的 TXT 记录：${why.zh}`,
});
const missing = (host: string): Localized => ({
  en: `There is no TXT record of this authority at ${PERSIST_LABEL}.${host} yet. Publish the one that the order shows.`,
  zh: `${PERSIST_LABEL}.${host} 目前没有本机构的 TXT 记录，请发布订单中显示的记录。`,
});
