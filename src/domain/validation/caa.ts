// CAA (RFC 8659, with the parameters of RFC 8657): whether a domain permits this CA to issue for a name. Absent records
// permit every CA. Fails closed: unreadable records and failed lookups permit none.
import type { Localized } from '../../kernel/locale.ts';
import { hostOf, isAddress, isWildcard } from '../certificate/names.ts';
import { type CaaRecord, type DnsAnswer, type DomainAnswer, ownerOf } from './dns.ts';
import {
  type IssueValue,
  isOurIssuer,
  isTag,
  type Obstacle,
  partition,
  quote,
  readIssueValue,
  valuesOf,
} from './issue-value.ts';
import { type LookupProblem, lookupProblem } from './lookup-failure.ts';
import { caaMethod } from './method.ts';

const CRITICAL = 128;
/** Tags that are enforced or safe to ignore. A critical property with any other tag might forbid the issuance. */
const KNOWN_TAGS: readonly string[] = ['issue', 'issuewild', 'iodef'];

interface CaaRules {
  /** The issuer domain names of this CA. */
  readonly issuers: readonly string[];
  /** Of the account that asks, the one to publish first. */
  readonly accountUris: readonly string[];
  /** The methods by which the name was proven; empty if it was not. */
  readonly methods: readonly string[];
}

export type CaaVerdict =
  /** The domain whose records permit it; null if no domain up to the root has records. */
  | { readonly kind: 'permitted'; readonly domain: string | null }
  | { readonly kind: 'forbidden'; readonly domain: string; readonly reason: Localized }
  | ({ readonly domain: string } & LookupProblem);

/** Returns the domains to look up for a name: its host and every parent, without the root. None for an IP address (RFC 8738, 7). */
export function caaDomains(name: string): string[] {
  if (isAddress(name)) return [];
  const domains: string[] = [];
  for (let rest = hostOf(name); ; rest = rest.slice(rest.indexOf('.') + 1)) {
    domains.push(rest);
    if (!rest.includes('.')) return domains;
  }
}

/** A missing answer counts as a failed lookup. */
const NOT_ASKED: DnsAnswer<never> = { kind: 'failed', reason: 'dns_failure' };

/** The nearest domain with records decides. Levels above it, or above a failed one, may be missing. */
export function judgeCaa(name: string, levels: readonly DomainAnswer<CaaRecord>[], rules: CaaRules): CaaVerdict {
  for (const domain of caaDomains(name)) {
    const answer = levels.find((level) => level.domain === domain)?.answer ?? NOT_ASKED;
    if (answer.kind === 'failed') return { domain, ...lookupProblem('CAA', domain, answer) };
    if (answer.kind === 'absent' || answer.records.length === 0) continue;
    const why = obstacleIn(answer.records, isWildcard(name), rules);
    if (why === null) return { kind: 'permitted', domain };
    const at = ownerOf(domain, answer);
    return {
      kind: 'forbidden',
      domain,
      reason: { en: `CAA at ${at.en}: ${why.en}`, zh: `${at.zh} 的 CAA 记录：${why.zh}` },
    };
  }
  return { kind: 'permitted', domain: null };
}

/** Returns why a record set forbids issuance, or null. */
function obstacleIn(records: readonly CaaRecord[], isForWildcard: boolean, rules: CaaRules): Localized | null {
  const unknown = records.find(({ flags, tag }) => flags & CRITICAL && !KNOWN_TAGS.includes(tag.toLowerCase()));
  if (unknown) return quote(unknown.tag, UNKNOWN_CRITICAL);
  const valued = (tag: string) => records.filter((one) => one.tag.toLowerCase() === tag).map(({ value }) => value);
  const wild = isForWildcard ? valued('issuewild') : [];
  const values = wild.length > 0 ? wild : valued('issue');
  // Record sets without issue properties, such as iodef alone, restrict nothing: `why` is null.
  const { passed, why } = partition(
    values.map(readIssueValue),
    obstacles(wild.length > 0 ? 'issuewild' : 'issue', rules),
  );
  return passed.length > 0 ? null : why;
}

const UNKNOWN_CRITICAL: Localized = {
  en: 'the property is critical and not known here. Remove it, or its critical flag.',
  zh: '该属性被标记为关键，但本机构无法识别，请移除该属性或其关键标志。',
};

const BAD_TAG: Localized = {
  en: 'the tag of a parameter has letters, digits and hyphens only. Correct it.',
  zh: '参数标签只能由字母、数字和连字符组成，请更正。',
};

/** Why one property may not permit. An issuer with a final dot is outside the grammar and does not match. */
const obstacles = (tag: string, { issuers, accountUris, methods }: CaaRules): readonly Obstacle<IssueValue>[] => [
  [
    ({ issuer }) => !isOurIssuer(issuer, issuers),
    () => ({
      en: `this authority is not among those permitted. Add the record: 0 ${tag} "${issuers[0] ?? ''}"`,
      zh: `本机构不在允许之列，请添加记录：0 ${tag} "${issuers[0] ?? ''}"`,
    }),
  ],
  [
    ({ parameters, fault }) => fault !== null || parameters.some((parameter) => !isTag(parameter.tag)),
    ({ fault }) => fault ?? BAD_TAG,
  ],
  [
    ({ parameters }) => !isSatisfied(valuesOf(parameters, 'accounturi'), (uri) => accountUris.includes(uri)),
    ({ parameters }) =>
      quote(valuesOf(parameters, 'accounturi').join(' '), {
        en: `only this account is permitted. Remove accounturi, or set it once to ${accountUris[0]}`,
        zh: `仅允许该账户，请移除 accounturi，或将其设为唯一的 ${accountUris[0]}`,
      }),
  ],
  [
    ({ parameters }) => !isSatisfied(valuesOf(parameters, 'validationmethods'), (list) => lists(list, methods)),
    ({ parameters }) =>
      quote(valuesOf(parameters, 'validationmethods').join(' '), {
        en: `only names proven by these methods are permitted. Remove validationmethods${methods.length === 0 ? '.' : `, or list ${caaMethod(methods[0] ?? '')} in a single one.`}`,
        zh: `仅允许以这些方式验证的域名，请移除 validationmethods${methods.length === 0 ? '。' : `，或只设置一个并列出 ${caaMethod(methods[0] ?? '')}。`}`,
      }),
  ],
];

/** RFC 8657: a property with two accounturi permits nothing; two validationmethods are treated alike. */
const isSatisfied = (values: readonly string[], test: (value: string) => boolean): boolean =>
  values.length <= 1 && values.every(test);

const lists = (list: string, methods: readonly string[]): boolean =>
  /^[A-Za-z0-9-]+(,[A-Za-z0-9-]+)*$/.test(list) &&
  methods.some((method) => list.split(',').includes(caaMethod(method)));
