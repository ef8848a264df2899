// Checks a name against DNS and HTTP: does the applicant control it, and does CAA permit issuance? Each perspective
// decides for itself, then the decisions are corroborated. Nothing is written here.

import type { ReadAlpnCertificate } from '../../domain/acme/alpn-certificate.ts';
import type { RegistrableDomain } from '../../domain/certificate/names.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CallOut, OutboundPolicy, ProbeTls } from '../../domain/egress/outbound.ts';
import type { AccountId } from '../../domain/ids.ts';
import { caaDomains, judgeCaa } from '../../domain/validation/caa.ts';
import type { Challenge } from '../../domain/validation/challenge.ts';
import { type CheckResult, corroborate, failed, PASSED } from '../../domain/validation/check-result.ts';
import {
  type DnsAnswer,
  type DnsLookups,
  type DomainAnswer,
  type LookupContext,
  ownerOf,
} from '../../domain/validation/dns.ts';
import { judgePersist, PERSIST_LABEL, persistDomains } from '../../domain/validation/dns-persist.ts';
import { quoteSome } from '../../domain/validation/issue-value.ts';
import { lookupProblem } from '../../domain/validation/lookup-failure.ts';
import type { ProvingMethod } from '../../domain/validation/method.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { type AskingProduct, type ControlContext, fetchFile } from './fetch-file.ts';
import { probeCertificate } from './probe-certificate.ts';

/** One network vantage point. */
interface Perspective {
  readonly dns: DnsLookups;
  readonly callOut: CallOut;
  readonly probeTls: ProbeTls;
}

interface CheckTools {
  /** The primary one first. */
  readonly perspectives: readonly Perspective[];
  /** The issuer domain names of this CA in CAA and persistent records. */
  readonly issuers: readonly string[];
  readonly accountUri: (accountId: AccountId) => string;
  readonly registrableDomain: RegistrableDomain;
  readonly now: Clock;
  /** 80, except in a sandbox, which may not listen there. */
  readonly filePort: number;
  /** 443, likewise. */
  readonly tlsPort: number;
  /** Which addresses are asked depends on the product. */
  readonly filePolicy: (product: AskingProduct) => OutboundPolicy;
  readonly readAlpnCertificate: ReadAlpnCertificate;
}

export interface CheckDomains {
  /** What each perspective sees by itself, the primary one first. */
  readonly controlFrom: readonly ((
    challenge: Challenge<ProvingMethod>,
    context: ControlContext,
  ) => Promise<CheckResult>)[];
  readonly control: (challenge: Challenge<ProvingMethod>, context: ControlContext) => Promise<CheckResult>;
  /** `methods` are those by which the name is proven. */
  readonly caa: (name: string, methods: readonly string[], context: LookupContext) => Promise<CheckResult>;
}

type PerspectiveCheck<Context> = (perspective: Perspective, context: Context) => Promise<CheckResult>;

export function checkDomains(tools: CheckTools): CheckDomains {
  const [primary, ...others] = tools.perspectives;
  const fromAll = <Context extends LookupContext>(context: Context, check: PerspectiveCheck<Context>) => {
    // Nothing to corroborate, and nothing to abort.
    if (primary && others.length === 0) return check(primary, context);
    const decided = new AbortController();
    const untilDecided = { ...context, signal: AbortSignal.any([context.signal, decided.signal]) };
    const checks = tools.perspectives.map((perspective) => check(perspective, untilDecided));
    return firstDecision(checks).finally(() => decided.abort());
  };
  const controlOf = (perspective: Perspective, challenge: Challenge<ProvingMethod>, context: ControlContext) =>
    CONTROL[challenge.method](tools, perspective, challenge, context);
  return {
    controlFrom: tools.perspectives.map(
      (perspective) => (challenge, context) => controlOf(perspective, challenge, context),
    ),
    control: (challenge, context) => fromAll(context, (perspective, until) => controlOf(perspective, challenge, until)),
    caa: (name, methods, context) =>
      fromAll(context, (perspective, until) => checkCaa(tools, perspective, { name, methods }, until)),
  };
}

/** Resolves as soon as outstanding perspectives cannot change the decision: a silent resolver delays nothing. */
async function firstDecision(checks: readonly Promise<CheckResult>[]): Promise<CheckResult> {
  const views: CheckResult[] = checks.map(() => OUTSTANDING);
  const { promise, resolve, reject } = Promise.withResolvers<CheckResult>();
  const settling = checks.map(async (check, index) => {
    views[index] = await check;
    const [primary] = views;
    const hasPrimaryFailed = primary !== OUTSTANDING && !primary?.isOk;
    if (hasPrimaryFailed || corroborate(views).isOk) resolve(corroborate(views));
  });
  Promise.all(settling).then(() => resolve(corroborate(views)), reject);
  return await promise;
}

const OUTSTANDING = failed('dns_failure', 'There is no answer yet.', '尚无应答。');

type ControlCheck = (
  tools: CheckTools,
  perspective: Perspective,
  challenge: Challenge<ProvingMethod>,
  context: ControlContext,
) => Promise<CheckResult>;

/** One row per method; a new method without a row does not compile. */
const CONTROL: Readonly<Record<ProvingMethod, ControlCheck>> = {
  dns: checkTxt,
  file: fetchFile,
  'dns-persist': checkPersist,
  'http-01': fetchFile,
  'dns-01': checkTxt,
  'tls-alpn-01': probeCertificate,
  'dns-persist-01': checkPersist,
};

async function checkTxt(
  { now }: CheckTools,
  { dns }: Perspective,
  { path, value }: Challenge<ProvingMethod>,
  context: LookupContext,
): Promise<CheckResult> {
  const answer = await dns.txt(path, context);
  return { ...txtResult(path, value, answer), ...cacheOf(answer, now()) };
}

function txtResult(path: string, value: string, answer: DnsAnswer<string>): CheckResult {
  switch (answer.kind) {
    case 'failed': {
      const { kind: problem, reason } = lookupProblem('TXT', path, answer);
      return { isOk: false, problem, reason };
    }
    case 'absent': {
      const at = ownerOf(path, answer);
      return failed('no_record', `There is no TXT record at ${at.en} yet.`, `${at.zh} 目前没有 TXT 记录。`);
    }
    case 'found': {
      if (answer.records.some((text) => text.trim() === value)) return PASSED;
      const at = ownerOf(path, answer);
      // A CNAME may lead into a zone that only our resolver can see: its records are not for the caller.
      const found = answer.alias === undefined ? quoteSome(answer.records) : null;
      return failed(
        'wrong_value',
        `None of the TXT records at ${at.en} has the value of this order.${found ? ` Found: ${found.en}.` : ''}`,
        `${at.zh} 的 TXT 记录中没有该订单的值。${found ? `实际为：${found.zh}。` : ''}`,
      );
    }
  }
}

async function checkPersist(
  tools: CheckTools,
  { dns }: Perspective,
  { name }: Challenge<ProvingMethod>,
  context: LookupContext,
): Promise<CheckResult> {
  const { issuers, registrableDomain, now } = tools;
  // All levels in parallel: in sequence, a deep name would take several times as long.
  const domains = persistDomains(name, registrableDomain);
  const answers = await Promise.all(domains.map((domain) => dns.txt(`${PERSIST_LABEL}.${domain}`, context)));
  const levels = levelsOf(domains, answers);
  const verdict = judgePersist(name, levels, { issuers, accountUris: accountUris(tools, context), now: now() });
  const cached = cacheOf(levels.find(({ domain }) => domain === verdict.domain)?.answer, now());
  if (verdict.kind === 'authorized') return { isOk: true, ...cached };
  return { isOk: false, problem: verdict.kind, reason: verdict.reason, ...cached };
}

/** Which URIs name the account that asks (ADR 0070). An ACME account stands for itself and for the account it is bound to. */
const accountUris = ({ accountUri }: CheckTools, { accountId, acmeAccount }: LookupContext): string[] => [
  accountUri(accountId),
  ...(acmeAccount === undefined ? [] : [acmeAccount]),
];

async function checkCaa(
  tools: CheckTools,
  { dns }: Perspective,
  { name, methods }: { readonly name: string; readonly methods: readonly string[] },
  context: LookupContext,
): Promise<CheckResult> {
  const { issuers, now } = tools;
  const domains = caaDomains(name);
  const levels = levelsOf(domains, await dns.caa(domains, context));
  const verdict = judgeCaa(name, levels, { issuers, accountUris: accountUris(tools, context), methods });
  const cached = cacheOf(levels.find(({ domain }) => domain === verdict.domain)?.answer, now());
  if (verdict.kind === 'permitted') return { isOk: true, ...cached };
  const problem = verdict.kind === 'forbidden' ? 'caa_forbidden' : verdict.kind;
  return { isOk: false, problem, reason: verdict.reason, ...cached };
}

/** Until when the resolver may repeat the answer. */
const cacheOf = (answer: DnsAnswer<unknown> | undefined, now: number): Pick<CheckResult, 'cachedUntil'> =>
  answer && 'ttl' in answer && answer.ttl !== undefined ? { cachedUntil: now + answer.ttl * SECOND_MS } : {};

const levelsOf = <Record>(domains: readonly string[], answers: readonly DnsAnswer<Record>[]): DomainAnswer<Record>[] =>
  answers.map((answer, index) => ({ domain: domains[index] ?? '', answer }));
