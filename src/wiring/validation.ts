// Wires domain validation: resolvers as network perspectives, the outbound function with the policy for validation
// files, and challenge values.

import { createHmac } from 'node:crypto';
import { dnsLookups } from '../adapters/dns/lookups.ts';
import { registrableDomain } from '../adapters/dns/public-suffix.ts';
import { addressSlots } from '../adapters/egress/address-slots.ts';
import { callOut } from '../adapters/egress/call-out.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import type { AddressRule } from '../domain/egress/addresses.ts';
import type { AccountId } from '../domain/ids.ts';
import { checkDomains } from '../usecases/validation/check-domains.ts';
import type { CheckingTools } from '../usecases/validation/check-names.ts';

const USER_AGENT = 'Reseal-Validation/1';
const FETCH_MS = 10_000;
/** Of all accounts together; one account has half of them at most. The host may belong to a third party. */
const FETCHES_PER_ADDRESS = 8;

/** Replaces the internet in a sandbox. */
export interface ValidationNetwork {
  readonly dnsServers: readonly string[];
  readonly allow: readonly AddressRule[];
  readonly httpPort: number;
}

export function openValidation(
  config: Config,
  now: Clock,
  /** The service's secret, without which challenge values cannot be predicted. */
  secret: Uint8Array,
  network?: ValidationNetwork,
): CheckingTools {
  const { issuers, accountBase, perspectives, allow, httpPort } = config.validation;
  const primary = network?.dnsServers ?? config.dnsServers;
  const resolvers = [primary, ...perspectives.map((server) => [server])];
  // Of all perspectives together.
  const slots = addressSlots(FETCHES_PER_ADDRESS);
  const accountUri = (accountId: AccountId) => accountBase + accountId;
  return {
    checks: checkDomains({
      perspectives: resolvers.map((dnsServers) => ({
        dns: dnsLookups(dnsServers),
        callOut: callOut({ dnsServers, extraRoots: [], userAgent: USER_AGENT, addressSlots: slots }),
      })),
      issuers,
      accountUri,
      registrableDomain,
      now,
      filePort: network?.httpPort ?? httpPort,
      filePolicy: { allow: [...allow, ...(network?.allow ?? [])], deny: config.callbacks.deny, totalMs: FETCH_MS },
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
