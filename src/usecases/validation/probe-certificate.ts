// Checks a tls-alpn-01 challenge: a handshake on port 443 of a name, through the outbound function, and a look at the
// certificate that the server shows.

import { faultOf, type ReadAlpnCertificate } from '../../domain/acme/alpn-certificate.ts';
import { ALPN_PROTOCOL } from '../../domain/acme/challenge.ts';
import { parseAddress } from '../../domain/egress/addresses.ts';
import type { OutboundPolicy, ProbeTls } from '../../domain/egress/outbound.ts';
import type { Challenge } from '../../domain/validation/challenge.ts';
import { type CheckResult, failed, PASSED } from '../../domain/validation/check-result.ts';
import type { DnsLookups } from '../../domain/validation/dns.ts';
import type { ProvingMethod } from '../../domain/validation/method.ts';
import { type AskingProduct, acquireFetch, type ControlContext, unreachable } from './fetch-file.ts';

interface ProbeTools {
  readonly tlsPort: number;
  readonly filePolicy: (product: AskingProduct) => OutboundPolicy;
  readonly readAlpnCertificate: ReadAlpnCertificate;
}

interface Vantage {
  readonly probeTls: ProbeTls;
  readonly dns: Pick<DnsLookups, 'isReachable'>;
}

export async function probeCertificate(
  { tlsPort: port, filePolicy, readAlpnCertificate }: ProbeTools,
  { probeTls, dns }: Vantage,
  { domain: host, path: serverName, value: digest }: Challenge<ProvingMethod>,
  { accountId: owner, signal, product }: ControlContext,
): Promise<CheckResult> {
  using _slot = await acquireFetch(owner);
  const url = { scheme: 'https', host, literal: parseAddress(host) ?? null, port, target: '' } as const;
  const policy = filePolicy(product);
  const outcome = await probeTls({ url, serverName, protocol: ALPN_PROTOCOL, policy, owner, signal });
  const shown = `${host} (port 443)`;
  if (outcome.kind !== 'shown') return await unreachable(shown, outcome, dns);
  const { hasAgreed, certificate, isPrivate } = outcome;
  const fault = hasAgreed ? faultOf(readAlpnCertificate(certificate), host, digest) : NO_PROTOCOL;
  if (!fault) return isPrivate ? { isOk: true, isPrivate } : PASSED;
  return failed(
    'wrong_value',
    `${shown} was asked for ${serverName}: ${fault.en}`,
    `${shown}（${serverName}）：${fault.zh}`,
  );
}

const NO_PROTOCOL = {
  en: `it did not choose ${ALPN_PROTOCOL}. Another server may have answered.`,
  zh: `未选择 ${ALPN_PROTOCOL} 协议。应答的可能是另一台服务器。`,
};
