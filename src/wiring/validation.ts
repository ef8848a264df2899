// Wires domain validation: resolvers as network perspectives, the outbound function with the policy for validation
// files, and challenge values.

import { createHmac } from 'node:crypto';
import { readAlpnCertificate } from '../adapters/ca/alpn-certificate.ts';
import { dnsLookups } from '../adapters/dns/lookups.ts';
import { registrableDomain } from '../adapters/dns/public-suffix.ts';
import type { OnReachability } from '../adapters/dns/server.ts';
import { DEFAULT_LIMITS } from '../adapters/dns/stub-resolver.ts';
import { checkResolvers } from '../adapters/doctor/resolver.ts';
import { addressSlots } from '../adapters/egress/address-slots.ts';
import { callOut, type EgressOptions, probeTls } from '../adapters/egress/call-out.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import type { AddressRule } from '../domain/egress/addresses.ts';
import type { AccountId } from '../domain/ids.ts';
import type { DnsLookups } from '../domain/validation/dns.ts';
import { SECOND_MS } from '../kernel/durations.ts';
import type { Log } from '../kernel/log.ts';
import type { AcmeFaults } from '../sandbox/acme-faults.ts';
import { checkDomains } from '../usecases/validation/check-domains.ts';
import type { CheckingTools } from '../usecases/validation/check-names.ts';
import type { AskingProduct } from '../usecases/validation/fetch-file.ts';
import type { App } from './app.ts';

const USER_AGENT = 'Reseal-Validation/1';
const FETCH_MS = 10_000;
/** Of all accounts together; one account has half of them at most. The host may belong to a third party. */
const FETCHES_PER_ADDRESS = 8;

/** Replaces the internet in a sandbox. */
export interface ValidationNetwork {
  readonly dnsServers: readonly string[];
  readonly allow: readonly AddressRule[];
  readonly httpPort: number;
  readonly tlsPort: number;
  readonly acmeFaults?: AcmeFaults | undefined;
}

interface ValidationParts {
  readonly now: Clock;
  /** The service's secret, without which challenge values cannot be predicted. */
  readonly secret: Uint8Array;
  readonly log: Log;
  readonly metrics: Pick<App['metrics'], 'resolversUnreachable'>;
}

export interface Validation extends CheckingTools {
  /** For readiness: resolvers that cannot be reached, if any. Asks them from time to time; never waits. */
  readonly resolverDetail: () => Readonly<Record<string, unknown>>;
}

export function openValidation(
  config: Config,
  { now, secret, log, metrics }: ValidationParts,
  network?: ValidationNetwork,
): Validation {
  const { issuers, accountBase, perspectives, allow, httpPort, tlsPort } = config.validation;
  const primary = network?.dnsServers ?? config.dnsServers;
  const resolvers = [primary, ...perspectives.map((server) => [server])];
  // Of all perspectives together.
  const slots = addressSlots(FETCHES_PER_ADDRESS);
  const accountUri = (accountId: AccountId) => accountBase + accountId;
  const unreachable = new Set<string>();
  const onReachability: OnReachability = (address, isReachable) => {
    if (isReachable === !unreachable.has(address)) return;
    if (isReachable) unreachable.delete(address);
    else unreachable.add(address);
    metrics.resolversUnreachable(unreachable.size);
    log({ event: isReachable ? 'resolver_reachable' : 'resolver_unreachable', text: address });
  };
  const lookups = resolvers.map((dnsServers) => dnsLookups(dnsServers, DEFAULT_LIMITS, onReachability));
  return {
    resolverDetail: resolverDetail(lookups, unreachable),
    checks: checkDomains({
      perspectives: resolvers.map((dnsServers, index) => {
        const egress: EgressOptions = { dnsServers, extraRoots: [], userAgent: USER_AGENT, addressSlots: slots };
        return { dns: lookups[index]!, callOut: callOut(egress), probeTls: probeTls(egress) };
      }),
      issuers,
      accountUri,
      registrableDomain,
      now,
      filePort: network?.httpPort ?? httpPort,
      tlsPort: network?.tlsPort ?? tlsPort,
      readAlpnCertificate,
      filePolicy: (product) => ({
        // A sandbox's own servers stand for the public internet.
        allow: [...(network?.allow ?? []), ...privateNetworks(product, allow)],
        deny: config.callbacks.deny,
        totalMs: FETCH_MS,
      }),
    }),
    challengeFacts: (accountId, certificateId) => ({
      valueFor: (domain) =>
        createHmac('sha256', secret).update(`domain validation ${certificateId} ${domain}`).digest('hex'),
      issuers,
      accountUri: accountUri(accountId),
      registrableDomain,
    }),
  };
}

/** Under public trust an answer from a private network proves nothing, whatever the operator allows. */
const privateNetworks = (
  { trust, validationNetworks }: AskingProduct,
  allow: readonly AddressRule[],
): readonly AddressRule[] => (trust === 'public' ? [] : [...allow, ...validationNetworks]);

/** However often readiness is asked for. */
const ASK_EVERY_MS = 10 * SECOND_MS;

/** A service without resolvers stays ready: certificates wait, and everything else works. */
function resolverDetail(
  lookups: readonly Pick<DnsLookups, 'isReachable'>[],
  unreachable: ReadonlySet<string>,
): Validation['resolverDetail'] {
  let askedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - askedAt >= ASK_EVERY_MS) {
      askedAt = now;
      for (const { isReachable } of lookups) void isReachable();
    }
    return unreachable.size === 0 ? {} : { resolvers: { unreachable: [...unreachable] } };
  };
}

export const resolverSettings = ({ dnsServers, dnssecTestName, validation }: Config) => ({
  ...{ dnsServers, perspectives: validation.perspectives, testName: dnssecTestName },
});

/** At the start of a service, which does not wait for it. */
export async function warnOfResolvers(config: Config, log: Log, stopping: AbortSignal): Promise<void> {
  const findings = await checkResolvers(resolverSettings(config), stopping);
  if (stopping.aborted) return;
  for (const { state, text, remedy } of findings)
    if (state !== 'ok') log({ event: 'warning', text: `resolver ${text}. ${remedy ?? ''}` });
}
