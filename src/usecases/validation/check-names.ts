// Checks the names of a certificate just before it is issued: CAA for every name, and control of those without a stored
// proof. Callers decide what the results mean for the certificate.

import type { Catalog, Product } from '../../domain/catalog/products.ts';
import { hostOf, isAddress, isWildcard, type RegistrableDomain } from '../../domain/certificate/names.ts';
import type { DomainValidation } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { AccountId, CertificateId, NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { type Challenge, type ChallengeFacts, canProve, challengeFor } from '../../domain/validation/challenge.ts';
import { type CheckResult, type FailedCheck, failed, type NameFinding } from '../../domain/validation/check-result.ts';
import { offeredAs, type ProvingMethod } from '../../domain/validation/method.ts';
import { mapLimit } from '../../kernel/concurrency.ts';
import type { Audit } from '../access/audit.ts';
import type { CheckDomains } from './check-domains.ts';
import type { AskingProduct } from './fetch-file.ts';

export interface CheckingTools {
  readonly checks: CheckDomains;
  readonly challengeFacts: (accountId: AccountId, certificateId: CertificateId) => ChallengeFacts;
}

export interface ValidationTools extends CheckingTools {
  readonly store: Store;
  readonly products: Catalog;
  readonly now: Clock;
  readonly newId: NewId;
  readonly audit: Audit;
  readonly registrableDomain: RegistrableDomain;
}

/** Results by name. A missing entry means not checked; treat it as failed. */
export interface CheckResults {
  /** The names that were to be checked. Entries may still be missing: CAA is skipped once a control check failed. */
  readonly names: readonly string[];
  readonly control: ReadonlyMap<string, CheckResult>;
  readonly caa: ReadonlyMap<string, CheckResult>;
}

export const NOTHING_CHECKED: CheckResults = { names: [], control: new Map(), caa: new Map() };

/** How many names of a certificate are checked in parallel. */
export const NAMES_AT_ONCE = 8;
/**
 * Deadlines for all checks of a certificate. Short while a caller waits: the rest is checked again later. `bySchedule`
 * must stay below the lease under which the worker checks.
 */
export const CHECK_LIMITS_MS = { issuing: 6_000, onRequest: 8_000, bySchedule: 60_000 } as const;

interface NamesToCheck {
  readonly accountId: AccountId;
  /** Undefined if the operator no longer offers it. */
  readonly product: (Pick<Product, 'dcvMethods'> & AskingProduct) | undefined;
  readonly names: readonly string[];
  /** Names with a stored proof, each with the methods of its proofs. */
  readonly provenBy: ReadonlyMap<string, readonly string[]>;
  readonly dcv: DomainValidation;
  /** The URL of the ACME account that asks, if one does. */
  readonly acmeAccount?: string | undefined;
  /** The pending certificate, to which challenge values belong. Persistent records do not depend on it. */
  readonly certificateId?: CertificateId;
  readonly limitMs: number;
  /** Aborted when the service shuts down. */
  readonly stopping?: AbortSignal | undefined;
}

/** Looks up CAA only if all control checks passed. */
export async function checkNames(tools: CheckingTools, request: NamesToCheck): Promise<CheckResults> {
  const { names, limitMs, stopping } = request;
  const unproven = unprovenOf(request);
  const deadline = checkDeadline(limitMs, stopping);
  try {
    const control = unproven.length === 0 ? NO_RESULTS : await controlResults(tools, request, unproven, deadline);
    if (!unproven.every((name) => control.get(name)?.isOk)) return { names, control, caa: NO_RESULTS };
    return { names, control, caa: await caaResults(tools, request, deadline) };
  } finally {
    deadline[Symbol.dispose]();
  }
}

const NO_RESULTS: ReadonlyMap<string, CheckResult> = new Map();

function controlResults(
  tools: CheckingTools,
  request: NamesToCheck,
  unproven: readonly string[],
  deadline: CheckDeadline,
): Promise<Map<string, CheckResult>> {
  const { accountId, acmeAccount, product, dcv } = request;
  const challenges = challengesOf(tools, { ...request, names: unproven });
  return resultsOf(unproven, (name) => {
    const challenge = challenges.get(name);
    return challenge && product
      ? deadline.run(
          (signal) => tools.checks.control(challenge, { accountId, acmeAccount, product, signal }),
          challenge.method,
        )
      : Promise.resolve(notProvable(name, dcv));
  });
}

/** For a request that is not carried out: what CAA says, proven or not. */
export async function checkCaaAlone(tools: CheckingTools, request: NamesToCheck): Promise<Map<string, CheckResult>> {
  using deadline = checkDeadline(request.limitMs);
  return await caaResults(tools, request, deadline);
}

const caaResults = (
  { checks }: CheckingTools,
  { accountId, acmeAccount, names, provenBy, dcv }: NamesToCheck,
  deadline: CheckDeadline,
): Promise<Map<string, CheckResult>> =>
  resultsOf(names, (name) => {
    const methods = provenBy.get(name) ?? askedMethods(dcv, acmeAccount);
    return deadline.run((signal) => checks.caa(name, methods, { accountId, acmeAccount, signal }));
  });

/** By which names without a stored proof are proven. A persistent record that an ACME account asks for is a challenge of ACME. */
const askedMethods = ({ dcvMethod }: DomainValidation, acmeAccount: string | undefined): string[] => {
  if (dcvMethod === 'dns-persist' && acmeAccount !== undefined) return ['dns-persist-01'];
  return dcvMethod === null ? [] : [dcvMethod];
};

/** Returns no challenge for names that the order's method cannot prove. */
export function challengesOf(
  { challengeFacts }: CheckingTools,
  { accountId, product, names, dcv, certificateId = '' }: Omit<NamesToCheck, 'provenBy' | 'limitMs'>,
): Map<string, Challenge> {
  const method = product?.dcvMethods.find((one) => one === dcv.dcvMethod);
  if (!method) return new Map();
  const facts = challengeFacts(accountId, certificateId);
  const provable = names.filter((name) => canProve(method, name));
  // A wildcard needs a record with policy=wildcard, which serves the name it stands on as well: one record, not two.
  const wildcardHosts = new Set(names.filter(isWildcard).map(hostOf));
  const dcvOf = (name: string): DomainValidation =>
    wildcardHosts.has(hostOf(name)) ? { ...dcv, persistPolicy: 'wildcard' } : dcv;
  return new Map(provable.map((name) => [name, challengeFor(name, method, dcvOf(name), facts)]));
}

async function resultsOf(
  names: readonly string[],
  check: (name: string) => Promise<CheckResult>,
): Promise<Map<string, CheckResult>> {
  const results = await mapLimit(NAMES_AT_ONCE, names, check);
  return new Map(results.map((result, index) => [names[index] ?? '', result]));
}

interface CheckDeadline extends Disposable {
  run(check: (signal: AbortSignal) => Promise<CheckResult>, method?: ProvingMethod): Promise<CheckResult>;
}

/** Checks that share one deadline: then running ones are aborted, and new ones not started. */
export function checkDeadline(limitMs: number, stopping?: AbortSignal): CheckDeadline {
  const ended = new AbortController();
  const { signal } = ended;
  /** Of checks that were started; those that are done heed it no more. */
  const giveUp: (() => void)[] = [];
  let running = 0;
  const end = () => {
    ended.abort();
    for (const one of giveUp) one();
  };
  const timer = setTimeout(end, limitMs);
  if (stopping?.aborted) end();
  stopping?.addEventListener('abort', end);
  return {
    run(check, method) {
      const tooSlow = method && offeredAs(method) === 'file' ? TOO_SLOW_SERVER : TOO_SLOW;
      if (signal.aborted) return Promise.resolve(tooSlow);
      running += 1;
      return new Promise((resolve, reject) => {
        giveUp.push(() => resolve(tooSlow));
        check(signal).then(
          (result) => {
            running -= 1;
            resolve(result);
          },
          (error) => {
            running -= 1;
            reject(error);
          },
        );
      });
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      stopping?.removeEventListener('abort', end);
      // Others of the same request, after one has failed: no one waits for them.
      if (running > 0) ended.abort();
    },
  };
}

const TOO_SLOW = failed('dns_failure', 'The answer took too long.', '查询超时。');
const TOO_SLOW_SERVER = { ...TOO_SLOW, problem: 'http_failure', failure: 'response_timeout' } as const;
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

const NOT_BY_DNS = failed(
  'unauthorized',
  'DNS never proves an IP address. Choose the method file with PUT …/dcv-method.',
  'DNS 方式不能验证 IP 地址，请通过 PUT …/dcv-method 改用文件方式。',
);

/** The result for a name without a challenge. */
export const notProvable = (name: string, { dcvMethod }: DomainValidation): CheckResult =>
  dcvMethod === 'file' ? NOT_BY_FILE : isAddress(name) ? NOT_BY_DNS : NO_METHOD;

export const unprovenOf = ({ names, provenBy }: Pick<NamesToCheck, 'names' | 'provenBy'>): string[] =>
  names.filter((name) => !provenBy.has(name));

export const isClear = (
  { control, caa }: CheckResults,
  { names, unproven }: { readonly names: readonly string[]; readonly unproven: readonly string[] },
): boolean => unproven.every((name) => control.get(name)?.isOk) && names.every((name) => caa.get(name)?.isOk);

/** Returns the failed checks by name, for the order to show. A control failure takes precedence over CAA. */
export function findingsOf({ control, caa }: CheckResults, at: number): Record<string, NameFinding> {
  const failures = (of: NameFinding['of'], results: ReadonlyMap<string, CheckResult>): [string, NameFinding][] =>
    [...results].flatMap(([name, result]) => (result.isOk ? [] : [[name, { at, of, ...failureOf(result) }]]));
  return Object.fromEntries([...failures('caa', caa), ...failures('control', control)]);
}

const failureOf = ({ isOk: _, failure: __, ...finding }: FailedCheck): Omit<FailedCheck, 'isOk'> => finding;

/** For how long the resolvers may repeat the answers that a certificate waits for to change. */
export const cachedFor = (findings: Readonly<Record<string, NameFinding>>): number =>
  Math.max(0, ...Object.values(findings).map(({ at, cachedUntil = at }) => cachedUntil - at));

/** Whether the applicant must first see the order's instructions: challenge values are unknown before. */
export const needsInstruction = (unproven: readonly string[], { dcvMethod }: DomainValidation): boolean =>
  unproven.length > 0 && dcvMethod !== 'dns-persist';
