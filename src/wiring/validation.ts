// The part of the application that asks the outside world about names: resolvers as perspectives, the outbound function
// with the rules for files, and the values that holders of names are asked to publish.

import { createHmac } from 'node:crypto';
import { dnsLookups } from '../adapters/dns/lookups.ts';
import { registrableDomain } from '../adapters/dns/public-suffix.ts';
import { callOut } from '../adapters/egress/call-out.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import type { AddressRule } from '../domain/egress/addresses.ts';
import type { AccountId } from '../domain/ids.ts';
import { checkDomains } from '../usecases/validation/check-domains.ts';
import type { CheckingTools } from '../usecases/validation/check-names.ts';

const USER_AGENT = 'Reseal-Validation/1';
const FILE_MS = 10_000;

/** What the sandbox puts in the place of the world. */
export interface NamesOutside {
  readonly dnsServers: readonly string[];
  readonly allow: readonly AddressRule[];
  readonly httpPort: number;
}

export function openValidation(
  config: Config,
  now: Clock,
  /** Of the service: who does not know it cannot tell which value belongs to an order. */
  secret: Uint8Array,
  outside?: NamesOutside,
): CheckingTools {
  const { issuers, accountBase, perspectives, allow, httpPort } = config.validation;
  const primary = outside?.dnsServers ?? config.dnsServers;
  const views = [primary, ...perspectives.map((one) => [one])];
  const accountUri = (accountId: AccountId) => accountBase + accountId;
  return {
    checks: checkDomains({
      perspectives: views.map((dnsServers) => ({
        dns: dnsLookups(dnsServers),
        callOut: callOut({ dnsServers, extraRoots: [], userAgent: USER_AGENT }),
      })),
      issuers,
      accountUri,
      registrableDomain,
      now,
      filePort: outside?.httpPort ?? httpPort,
      filePolicy: { allow: [...allow, ...(outside?.allow ?? [])], deny: config.callbacks.deny, totalMs: FILE_MS },
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
