// The settings of domain validation, from the variables that concern it.

import type { AddressRule } from '../domain/egress/addresses.ts';
import { DAY_MS } from '../kernel/durations.ts';
import { hostName } from './values.ts';
import type { Values } from './variables.ts';

export type ValidationConfig = Readonly<{
  /** At least one; the first is written into records. */
  issuers: readonly string[];
  /** What account URIs begin with. */
  accountBase: string;
  perspectives: readonly string[];
  allow: readonly AddressRule[];
  httpPort: number;
  pendingMs: number;
}>;

/** For a service without a name of its own. */
const NO_NAME = 'ca.reseal.test';

export function validationFrom(v: Values): ValidationConfig {
  const base = v.RESEAL_PUBLIC_URL ?? `http://${v.RESEAL_HOST}:${v.RESEAL_PORT}`;
  // The address to listen on may be anything; listening will tell.
  const hostname = URL.parse(base)?.hostname ?? '';
  const own = 'value' in hostName(hostname) ? hostname : NO_NAME;
  return {
    issuers: v.RESEAL_ISSUER_NAMES.length > 0 ? v.RESEAL_ISSUER_NAMES : [own],
    accountBase: `${base}/accounts/`,
    perspectives: v.RESEAL_DNS_PERSPECTIVES,
    allow: v.RESEAL_DCV_ALLOW,
    httpPort: v.RESEAL_DCV_HTTP_PORT,
    pendingMs: v.RESEAL_PENDING_DAYS * DAY_MS,
  };
}
