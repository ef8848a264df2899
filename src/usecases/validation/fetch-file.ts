// Fetches a validation file from port 80 of a name, through the outbound function. Follows at most five redirects, to
// http on port 80 or https on 443 of a name, never to an IP address; each hop is resolved and vetted like the first
// (SSRF). Any final status but 200 fails. What the file must be depends on the method.

import type { Product } from '../../domain/catalog/products.ts';
import type { CallOut, FailureReason, OutboundPolicy, Outcome, Unreached } from '../../domain/egress/outbound.ts';
import type { Challenge } from '../../domain/validation/challenge.ts';
import { type CheckResult, failed, PASSED } from '../../domain/validation/check-result.ts';
import type { DnsLookups, LookupContext } from '../../domain/validation/dns.ts';
import { type FileTarget, fileTarget, redirectTarget, type WebPorts } from '../../domain/validation/file-target.ts';
import { quoteSome } from '../../domain/validation/issue-value.ts';
import { OUR_RESOLVER } from '../../domain/validation/lookup-failure.ts';
import type { ProvingMethod } from '../../domain/validation/method.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';
import type { Localized } from '../../kernel/locale.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);

/** Each holds a socket for seconds. In this process, shared out between accounts. */
const FETCHES_AT_ONCE = 128;
export const acquireFetch = fairSemaphore(FETCHES_AT_ONCE);

export type AskingProduct = Pick<Product, 'trust' | 'validationNetworks'>;

export interface ControlContext extends LookupContext {
  /** Decides which addresses are asked. */
  readonly product: AskingProduct;
}

interface FileTools extends WebPorts {
  readonly filePolicy: (product: AskingProduct) => OutboundPolicy;
}

interface Vantage {
  readonly callOut: CallOut;
  readonly dns: Pick<DnsLookups, 'isReachable'>;
}

export async function fetchFile(
  { filePolicy, ...ports }: FileTools,
  { callOut, dns }: Vantage,
  { method, domain, path, value }: Challenge<ProvingMethod>,
  { accountId: owner, signal, product }: ControlContext,
): Promise<CheckResult> {
  using _fetch = await acquireFetch(owner);
  const form = method === 'http-01' ? WHOLE : LINES;
  const policy = { ...filePolicy(product), ...form.policy };
  let isPrivate = false;
  let target: FileTarget | undefined = fileTarget(domain, path, ports);
  for (let hops = 0; target && hops <= MAX_REDIRECTS; hops += 1) {
    const { url, shown }: FileTarget = target;
    const outcome = await callOut({ url, method: 'GET', headers: {}, body: '', policy, owner, signal });
    if (outcome.kind !== 'answered') return await unreachable(shown, outcome, dns);
    isPrivate ||= outcome.isPrivate;
    if (!REDIRECTS.has(outcome.status)) return resultOf(shown, { ...outcome, isPrivate }, value, form);
    target = redirectTarget(outcome.headers.location ?? '', target, ports);
  }
  return failed(
    'http_failure',
    `The redirects from ${domain} lead too far, or to an address that is not followed.`,
    `${domain} 的重定向次数过多，或指向不予跟随的地址。`,
  );
}

const isUnresolved = (reason: FailureReason): boolean => reason === 'dns_timeout' || reason === 'dns_failure';

/** The result for a server that could not be asked. */
export async function unreachable(
  shown: string,
  outcome: Unreached,
  dns: Pick<DnsLookups, 'isReachable'>,
): Promise<CheckResult> {
  if (outcome.kind === 'private') {
    return failed(
      'private_address',
      `${shown} leads to a private address, which is not asked.`,
      `${shown} 指向私有地址，不予访问。`,
    );
  }
  const { reason } = outcome;
  if (isUnresolved(reason) && !(await dns.isReachable()))
    return { isOk: false, problem: 'resolver_unreachable', reason: OUR_RESOLVER };
  const failure = failed('http_failure', `${shown} could not be fetched: ${reason}.`, `无法获取 ${shown}：${reason}。`);
  return { ...failure, failure: reason };
}

interface FileForm {
  readonly policy: Partial<OutboundPolicy>;
  readonly isIn: (body: Buffer, value: string) => boolean;
  readonly wrong: (shown: string) => Localized;
}

const linesOf = (body: Buffer): string[] => body.toString('latin1').split(/\r?\n/);

/** One line is the value: several orders may share a file. */
const LINES: FileForm = {
  policy: {},
  isIn: (body, value) => linesOf(body).some((line) => line.trim() === value),
  wrong: (shown) => ({ en: `No line of ${shown} is the value of this order.`, zh: `${shown} 中没有该订单的值。` }),
};

/** Some spaces more than any key authorization has bytes. A file of more is not judged by its beginning. */
const MAX_WHOLE_BYTES = 1_024;
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d]);

/**
 * The file is the value, and blanks after it (RFC 8555, 8.3). The first request goes without TLS, so that certificates
 * of later ones protect nothing; and the one that is there may be what the new one is to replace.
 */
const WHOLE: FileForm = {
  policy: { maxBodyBytes: MAX_WHOLE_BYTES, dangerouslyTrustsAnyCertificate: true },
  isIn: (body, value) =>
    body.length < MAX_WHOLE_BYTES &&
    body.subarray(0, value.length).toString('latin1') === value &&
    body.subarray(value.length).every((byte) => BLANKS.has(byte)),
  wrong: (shown) => ({ en: `${shown} is not the key authorization.`, zh: `${shown} 的内容不是密钥授权。` }),
};

function resultOf(
  shown: string,
  outcome: Extract<Outcome, { kind: 'answered' }>,
  value: string,
  { isIn, wrong }: FileForm,
): CheckResult {
  const { status, isPrivate } = outcome;
  const body = Buffer.from(outcome.body);
  if (status !== 200) {
    return failed('http_failure', `${shown} answers ${status}, not 200.`, `${shown} 返回 ${status}，而不是 200。`);
  }
  if (isIn(body, value)) return isPrivate ? { isOk: true, isPrivate } : PASSED;
  // What only an operator's rule lets us read is not for the caller.
  const found = isPrivate ? null : quoteSome(linesOf(body));
  const { en, zh } = wrong(shown);
  return failed('wrong_value', found ? `${en} Found: ${found.en}.` : en, found ? `${zh}实际为：${found.zh}。` : zh);
}
