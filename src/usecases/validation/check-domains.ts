// Checks a name against DNS and HTTP: does the applicant control it, and does CAA permit issuance? Each perspective
// decides for itself, then the decisions are corroborated. Nothing is written here.

import type { RegistrableDomain } from '../../domain/certificate/names.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CallOut, OutboundPolicy } from '../../domain/egress/outbound.ts';
import type { AccountId } from '../../domain/ids.ts';
import { caaDomains, judgeCaa } from '../../domain/validation/caa.ts';
import type { Challenge } from '../../domain/validation/challenge.ts';
import { type CheckResult, corroborate, failed, PASSED } from '../../domain/validation/check-result.ts';
import type { DnsAnswer, DnsLookups, DomainAnswer, LookupContext } from '../../domain/validation/dns.ts';
import { judgePersist, PERSIST_LABEL, persistDomains } from '../../domain/validation/dns-persist.ts';
import { fetchFile } from './fetch-file.ts';

/** One network vantage point. */
interface Perspective {
  readonly dns: DnsLookups;
  readonly callOut: CallOut;
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
  readonly filePolicy: OutboundPolicy;
}

export interface CheckDomains {
  readonly control: (challenge: Challenge, context: LookupContext) => Promise<CheckResult>;
  /** `methods` are those by which the name is proven. */
  readonly caa: (name: string, methods: readonly string[], context: LookupContext) => Promise<CheckResult>;
}

type PerspectiveCheck = (perspective: Perspective, context: LookupContext) => Promise<CheckResult>;

export function checkDomains(tools: CheckTools): CheckDomains {
  const [primary, ...others] = tools.perspectives;
  const fromAll = async (context: LookupContext, check: PerspectiveCheck) => {
    // Nothing to corroborate, and nothing to abort.
    if (primary && others.length === 0) return await check(primary, context);
    const decided = new AbortController();
    const untilDecided = { ...context, signal: AbortSignal.any([context.signal, decided.signal]) };
    const checks = tools.perspectives.map((perspective) => check(perspective, untilDecided));
    return await firstDecision(checks).finally(() => decided.abort());
  };
  return {
    control: (challenge, context) =>
      fromAll(context, (perspective, until) => CONTROL[challenge.method](tools, perspective, challenge, until)),
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
  challenge: Challenge,
  context: LookupContext,
) => Promise<CheckResult>;

/** One row per method; a new method without a row does not compile. */
const CONTROL: Readonly<Record<Challenge['method'], ControlCheck>> = {
  dns: async (_tools, { dns }, { path, value }, context) => txtResult(path, value, await dns.txt(path, context)),
  file: (tools, { callOut }, challenge, context) => fetchFile(tools, callOut, challenge, context),
  'dns-persist': checkPersist,
};

function txtResult(path: string, value: string, answer: DnsAnswer<string>): CheckResult {
  switch (answer.kind) {
    case 'failed':
      return failed('dns_failure', `DNS did not answer for ${path}.`, `DNS 未能回答 ${path} 的查询。`);
    case 'absent':
      return failed('no_record', `There is no TXT record at ${path}.`, `${path} 没有 TXT 记录。`);
    case 'found':
      return answer.records.some((text) => text.trim() === value)
        ? PASSED
        : failed(
            'wrong_value',
            `None of the TXT records at ${path} has the value of this order.`,
            `${path} 的 TXT 记录中没有该订单的值。`,
          );
  }
}

async function checkPersist(
  { issuers, accountUri, registrableDomain, now }: CheckTools,
  { dns }: Perspective,
  { name }: Challenge,
  context: LookupContext,
): Promise<CheckResult> {
  const levels = await lookUpAll(persistDomains(name, registrableDomain), (domain) =>
    dns.txt(`${PERSIST_LABEL}.${domain}`, context),
  );
  const verdict = judgePersist(name, levels, { issuers, accountUri: accountUri(context.accountId), now: now() });
  return verdict.kind === 'authorized' ? PASSED : { isOk: false, problem: verdict.kind, reason: verdict.reason };
}

async function checkCaa(
  { issuers, accountUri }: CheckTools,
  { dns }: Perspective,
  { name, methods }: { readonly name: string; readonly methods: readonly string[] },
  context: LookupContext,
): Promise<CheckResult> {
  const levels = await lookUpAll(caaDomains(name), (domain) => dns.caa(domain, context));
  const verdict = judgeCaa(name, levels, { issuers, accountUri: accountUri(context.accountId), methods });
  if (verdict.kind === 'permitted') return PASSED;
  const problem = verdict.kind === 'forbidden' ? 'caa_forbidden' : 'dns_failure';
  return { isOk: false, problem, reason: verdict.reason };
}

/** All levels in parallel: in sequence, a deep name would take several times as long. */
const lookUpAll = <Record>(
  domains: readonly string[],
  lookUp: (domain: string) => Promise<DnsAnswer<Record>>,
): Promise<DomainAnswer<Record>[]> =>
  Promise.all(domains.map(async (domain) => ({ domain, answer: await lookUp(domain) })));
