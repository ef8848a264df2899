// Look at the outside world for a name: does its holder show what was asked for, and does CAA let us issue? Every
// perspective looks for itself and decides for itself; what they decided is then compared. Nothing is written here.

import type { Clock } from '../../domain/clock.ts';
import type { CallOut, OutboundPolicy } from '../../domain/egress/outbound.ts';
import type { AccountId } from '../../domain/ids.ts';
import { caaDomains, judgeCaa } from '../../domain/validation/caa.ts';
import type { Challenge } from '../../domain/validation/challenge.ts';
import { agreementOf, type CheckResult, failed, PASSED } from '../../domain/validation/check-result.ts';
import type { Asking, DnsAnswer, DnsLookups, Level } from '../../domain/validation/dns.ts';
import { judgePersist, PERSIST_LABEL, persistDomains } from '../../domain/validation/dns-persist.ts';
import { fetchFile } from './fetch-file.ts';

/** One place to look from. */
export interface Perspective {
  readonly dns: DnsLookups;
  readonly callOut: CallOut;
}

export interface CheckTools {
  /** The primary one first. */
  readonly perspectives: readonly Perspective[];
  /** The names by which CAA and persistent records mean us. */
  readonly issuers: readonly string[];
  readonly accountUri: (accountId: AccountId) => string;
  readonly registrableDomain: (name: string) => string | undefined;
  readonly now: Clock;
  /** 80, but for a sandbox that may not listen there. */
  readonly filePort: number;
  readonly filePolicy: OutboundPolicy;
}

export interface CheckDomains {
  readonly control: (challenge: Challenge, asking: Asking) => Promise<CheckResult>;
  /** `methods` are those by which the name is proven. */
  readonly caa: (name: string, methods: readonly string[], asking: Asking) => Promise<CheckResult>;
}

export function checkDomains(tools: CheckTools): CheckDomains {
  const agreed = async (asking: Asking, look: (from: Perspective, asking: Asking) => Promise<CheckResult>) => {
    const isDecided = new AbortController();
    const until = { ...asking, signal: AbortSignal.any([asking.signal, isDecided.signal]) };
    return await decided(tools.perspectives.map((from) => look(from, until))).finally(() => isDecided.abort());
  };
  return {
    control: (challenge, asking) =>
      agreed(asking, (from, until) => CONTROL[challenge.method](tools, from, challenge, until)),
    caa: (name, methods, asking) => agreed(asking, (from, until) => caaFrom(tools, from, name, methods, until)),
  };
}

/** As soon as those that are missing cannot change it: one that is silent costs nobody any time, and is asked no more. */
async function decided(looks: readonly Promise<CheckResult>[]): Promise<CheckResult> {
  const views: CheckResult[] = looks.map(() => UNHEARD);
  const { promise, resolve, reject } = Promise.withResolvers<CheckResult>();
  const hearing = looks.map(async (look, index) => {
    views[index] = await look;
    const [primary] = views;
    const isRefused = primary !== UNHEARD && !primary?.isOk;
    if (isRefused || agreementOf(views).isOk) resolve(agreementOf(views));
  });
  Promise.all(hearing).then(() => resolve(agreementOf(views)), reject);
  return await promise;
}

const UNHEARD = failed('dns_failure', 'There is no answer yet.', '尚无应答。');

type ControlCheck = (
  tools: CheckTools,
  from: Perspective,
  challenge: Challenge,
  asking: Asking,
) => Promise<CheckResult>;

/** One row a method; the compiler asks for the row of a new one. */
const CONTROL: Readonly<Record<Challenge['method'], ControlCheck>> = {
  dns: async (_tools, { dns }, { path, value }, asking) => txtResult(path, value, await dns.txt(path, asking)),
  file: (tools, { callOut }, challenge, { signal }) => fetchFile(tools, callOut, challenge, signal),
  'dns-persist': persistFrom,
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

async function persistFrom(
  { issuers, accountUri, registrableDomain, now }: CheckTools,
  { dns }: Perspective,
  { name }: Challenge,
  asking: Asking,
): Promise<CheckResult> {
  const levels = await asked(persistDomains(name, registrableDomain), (domain) =>
    dns.txt(`${PERSIST_LABEL}.${domain}`, asking),
  );
  const verdict = judgePersist(name, levels, { issuers, accountUri: accountUri(asking.accountId), now: now() });
  return verdict.kind === 'authorized' ? PASSED : { isOk: false, problem: verdict.kind, reason: verdict.reason };
}

async function caaFrom(
  { issuers, accountUri }: CheckTools,
  { dns }: Perspective,
  name: string,
  methods: readonly string[],
  asking: Asking,
): Promise<CheckResult> {
  const levels = await asked(caaDomains(name), (domain) => dns.caa(domain, asking));
  const verdict = judgeCaa(name, levels, { issuers, accountUri: accountUri(asking.accountId), methods });
  if (verdict.kind === 'permitted') return PASSED;
  const problem = verdict.kind === 'forbidden' ? 'caa_forbidden' : 'dns_failure';
  return { isOk: false, problem, reason: verdict.reason };
}

/** All levels at once: asked one after another, a deep name would take several times as long. */
const asked = <Record>(
  domains: readonly string[],
  ask: (domain: string) => Promise<DnsAnswer<Record>>,
): Promise<Level<Record>[]> => Promise.all(domains.map(async (domain) => ({ domain, answer: await ask(domain) })));
