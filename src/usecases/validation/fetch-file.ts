// Fetches a validation file from port 80 of a name, through the outbound function. Follows at most five redirects, to
// http on port 80 or https on 443 of a name, never to an IP address; each hop is resolved and vetted like the first
// (SSRF). Any final status but 200 fails.

import type { Product } from '../../domain/catalog/products.ts';
import type { CallOut, FailureReason, OutboundPolicy, Outcome } from '../../domain/egress/outbound.ts';
import type { Challenge } from '../../domain/validation/challenge.ts';
import { type CheckResult, failed, PASSED } from '../../domain/validation/check-result.ts';
import type { DnsLookups, LookupContext } from '../../domain/validation/dns.ts';
import { type FileTarget, fileTarget, redirectTarget } from '../../domain/validation/file-target.ts';
import { quoteSome } from '../../domain/validation/issue-value.ts';
import { OUR_RESOLVER } from '../../domain/validation/lookup-failure.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);

/** Each holds a socket for seconds. In this process, shared out between accounts. */
const FETCHES_AT_ONCE = 128;
const acquireFetch = fairSemaphore(FETCHES_AT_ONCE);

export type AskingProduct = Pick<Product, 'trust' | 'validationNetworks'>;

export interface ControlContext extends LookupContext {
  /** Decides which addresses are asked. */
  readonly product: AskingProduct;
}

interface FileTools {
  readonly filePort: number;
  readonly filePolicy: (product: AskingProduct) => OutboundPolicy;
}

interface Vantage {
  readonly callOut: CallOut;
  readonly dns: Pick<DnsLookups, 'isReachable'>;
}

export async function fetchFile(
  { filePort, filePolicy }: FileTools,
  { callOut, dns }: Vantage,
  { domain, path, value }: Challenge,
  { accountId: owner, signal, product }: ControlContext,
): Promise<CheckResult> {
  using _fetch = await acquireFetch(owner);
  const policy = filePolicy(product);
  let isPrivate = false;
  let target: FileTarget | undefined = fileTarget(domain, path, filePort);
  for (let hops = 0; target && hops <= MAX_REDIRECTS; hops += 1) {
    const { url, shown }: FileTarget = target;
    const outcome = await callOut({ url, method: 'GET', headers: {}, body: '', policy, owner, signal });
    if (outcome.kind === 'failed' && isUnresolved(outcome.reason) && !(await dns.isReachable()))
      return { isOk: false, problem: 'resolver_unreachable', reason: OUR_RESOLVER };
    if (outcome.kind !== 'answered') return unreachable(shown, outcome);
    isPrivate ||= outcome.isPrivate;
    if (!REDIRECTS.has(outcome.status)) return resultOf(shown, { ...outcome, isPrivate }, value);
    target = redirectTarget(outcome.headers.location ?? '', target, filePort);
  }
  return failed(
    'http_failure',
    `The redirects from ${domain} lead too far, or to an address that is not followed.`,
    `${domain} 的重定向次数过多，或指向不予跟随的地址。`,
  );
}

const isUnresolved = (reason: FailureReason): boolean => reason === 'dns_timeout' || reason === 'dns_failure';

function unreachable(shown: string, outcome: Exclude<Outcome, { kind: 'answered' }>): CheckResult {
  if (outcome.kind === 'private') {
    return failed(
      'private_address',
      `${shown} leads to a private address, which is not asked.`,
      `${shown} 指向私有地址，不予访问。`,
    );
  }
  const { reason } = outcome;
  return failed('http_failure', `${shown} could not be fetched: ${reason}.`, `无法获取 ${shown}：${reason}。`);
}

/** Passes if any line of the file is the value: several orders may share a file. */
function resultOf(shown: string, outcome: Extract<Outcome, { kind: 'answered' }>, value: string): CheckResult {
  const { status, body, isPrivate } = outcome;
  if (status !== 200) {
    return failed('http_failure', `${shown} answers ${status}, not 200.`, `${shown} 返回 ${status}，而不是 200。`);
  }
  const lines = Buffer.from(body).toString('latin1').split(/\r?\n/);
  if (lines.some((line) => line.trim() === value)) return isPrivate ? { isOk: true, isPrivate } : PASSED;
  // What only an operator's rule lets us read is not for the caller.
  const found = isPrivate ? null : quoteSome(lines);
  return failed(
    'wrong_value',
    `No line of ${shown} is the value of this order.${found ? ` Found: ${found.en}.` : ''}`,
    `${shown} 中没有该订单的值。${found ? `实际为：${found.zh}。` : ''}`,
  );
}
