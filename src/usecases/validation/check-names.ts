// Everything about the names of a certificate that only the outside world knows, asked just before it is issued: CAA for
// every name, and the proofs that are not kept. What the answers mean for the certificate is decided by whoever asked.

import type { Catalog, Product } from '../../domain/catalog/products.ts';
import { isWildcard } from '../../domain/certificate/names.ts';
import type { DcvMethod, DomainValidation } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { AccountId, CertificateId, NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { type Challenge, type ChallengeFacts, challengeFor } from '../../domain/validation/challenge.ts';
import { type CheckResult, type Finding, failed } from '../../domain/validation/check-result.ts';
import { mapLimit } from '../../kernel/concurrency.ts';
import type { CheckDomains } from './check-domains.ts';

export interface CheckingTools {
  readonly checks: CheckDomains;
  readonly challengeFacts: (accountId: AccountId, certificateId: CertificateId) => ChallengeFacts;
}

/** What every validation use case works with. */
export interface ValidationTools extends CheckingTools {
  readonly store: Store;
  readonly products: Catalog;
  readonly now: Clock;
  readonly newId: NewId;
  readonly registrableDomain: (name: string) => string | undefined;
}

/** By name. What is not in it was not asked, which is no permission either. */
export interface CheckResults {
  /** Those that were asked about, though perhaps not everything: the first obstacle is enough. */
  readonly names: ReadonlySet<string>;
  readonly control: ReadonlyMap<string, CheckResult>;
  readonly caa: ReadonlyMap<string, CheckResult>;
}

export const NOTHING_CHECKED: CheckResults = { names: new Set(), control: new Map(), caa: new Map() };

const AT_ONCE = 8;
/**
 * How long a look may take. While somebody waits, what is not known by then is asked again later; by itself the service
 * has more patience, and still less than the claim under which it looks.
 */
export const CHECK_LIMITS_MS = { issuing: 6_000, onRequest: 8_000, bySchedule: 60_000 } as const;

export interface NamesToCheck {
  readonly accountId: AccountId;
  /** Undefined when it is not offered any more. */
  readonly product: Pick<Product, 'dcvMethods'> | undefined;
  readonly names: readonly string[];
  /** Those of them that need not be proven now, and the methods by which they are. */
  readonly provenBy: ReadonlyMap<string, readonly string[]>;
  readonly dcv: DomainValidation;
  /** The one that waits; a persistent record is the same for all. */
  readonly certificateId?: CertificateId;
  readonly limitMs: number;
  /** Ends it early: the service stops. */
  readonly stopping?: AbortSignal | undefined;
}

/** CAA is only asked when nothing else is in the way. */
export async function checkNames(tools: CheckingTools, look: NamesToCheck): Promise<CheckResults> {
  const { accountId, names, provenBy, dcv, limitMs, stopping } = look;
  const unproven = unprovenOf(look);
  const inTime = within(limitMs, stopping);
  const challenges = challengesOf(tools, { ...look, names: unproven });
  const control = await resultsOf(unproven, (name) => {
    const challenge = challenges.get(name);
    return challenge
      ? inTime((signal) => tools.checks.control(challenge, { accountId, signal }), challenge.method)
      : Promise.resolve(notProvable(dcv));
  });
  const about = { names: new Set(names), control };
  if ([...control.values()].some(({ isOk }) => !isOk)) return { ...about, caa: new Map() };
  const caa = await resultsOf(names, (name) => {
    const methods = provenBy.get(name) ?? (dcv.dcvMethod === null ? [] : [dcv.dcvMethod]);
    return inTime((signal) => tools.checks.caa(name, methods, { accountId, signal }));
  });
  return { ...about, caa };
}

export function challengesOf(
  { challengeFacts }: CheckingTools,
  { accountId, product, names, dcv, certificateId = '' }: Omit<NamesToCheck, 'provenBy' | 'limitMs'>,
): Map<string, Challenge> {
  const method = product?.dcvMethods.find((one) => one === dcv.dcvMethod);
  if (!method) return new Map();
  const facts = challengeFacts(accountId, certificateId);
  const provable = method === 'file' ? names.filter((name) => !isWildcard(name)) : names;
  return new Map(provable.map((name) => [name, challengeFor(name, method, dcv, facts)]));
}

const resultsOf = async (
  names: readonly string[],
  check: (name: string) => Promise<CheckResult>,
): Promise<Map<string, CheckResult>> =>
  new Map(await mapLimit(AT_ONCE, names, async (name) => [name, await check(name)] as const));

/** Then whatever is under way is given up, and nothing further is asked. */
export function within(limitMs: number, stopping?: AbortSignal) {
  const limit = AbortSignal.timeout(limitMs);
  const signal = stopping ? AbortSignal.any([limit, stopping]) : limit;
  return async (check: (signal: AbortSignal) => Promise<CheckResult>, method?: DcvMethod): Promise<CheckResult> => {
    const tooSlow = { ...TOO_SLOW, problem: method === 'file' ? 'http_failure' : TOO_SLOW.problem } as const;
    if (signal.aborted) return tooSlow;
    const { promise, resolve } = Promise.withResolvers<CheckResult>();
    const end = () => resolve(tooSlow);
    signal.addEventListener('abort', end);
    return await Promise.race([check(signal), promise]).finally(() => signal.removeEventListener('abort', end));
  };
}

const TOO_SLOW = failed('dns_failure', 'The answer took too long.', '查询超时。');
const NOT_BY_FILE = failed(
  'unauthorized',
  'A file never proves a wildcard. Choose a DNS method with PUT …/dcv-method.',
  '文件方式不能验证通配符域名，请通过 PUT …/dcv-method 改用 DNS 方式。',
);
const NO_METHOD = failed(
  'unauthorized',
  'The product does not offer the validation method of the order any more. Choose another one.',
  '该产品已不再提供订单的验证方式，请更换。',
);

/** For a name that the order's method cannot prove. */
export const notProvable = ({ dcvMethod }: DomainValidation): CheckResult =>
  dcvMethod === 'file' ? NOT_BY_FILE : NO_METHOD;

export const unprovenOf = ({ names, provenBy }: Pick<NamesToCheck, 'names' | 'provenBy'>): string[] =>
  names.filter((name) => !provenBy.has(name));

export const isClear = (
  { control, caa }: CheckResults,
  { names, unproven }: { readonly names: readonly string[]; readonly unproven: readonly string[] },
): boolean => unproven.every((name) => control.get(name)?.isOk) && names.every((name) => caa.get(name)?.isOk);

/** For the order to show. */
export function findingsOf({ control, caa }: CheckResults, at: number): Record<string, Finding> {
  const told = (of: Finding['of'], results: ReadonlyMap<string, CheckResult>): [string, Finding][] =>
    [...results].flatMap(([name, result]) =>
      result.isOk ? [] : [[name, { at, of, problem: result.problem, reason: result.reason }]],
    );
  return Object.fromEntries([...told('caa', caa), ...told('control', control)]);
}

/** Whether the order has to be shown to its holder first: a value to publish is not known before. */
export const needsInstruction = (unproven: readonly string[], { dcvMethod }: DomainValidation): boolean =>
  unproven.length > 0 && dcvMethod !== 'dns-persist';
