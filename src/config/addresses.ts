// The addresses that go into certificates and DNS records. The store records them, so that every instance and every
// command writes the same ones (ADR 0040). Configured values bind; values derived from the listening address do not, because
// a restart on another port must stay possible. Pure: wiring/addresses.ts reads and writes the record.
import { EXIT, Problem } from '../kernel/problem.ts';
import { hostName } from './values.ts';
import type { VARIABLES } from './variables.ts';

interface AddressKind {
  readonly variable: keyof typeof VARIABLES;
  /** What stops working when it changes. */
  readonly breaks: string;
}

export const ADDRESSES = {
  public_url: {
    variable: 'RESEAL_PUBLIC_URL',
    breaks:
      'Persistent DNS records name account URIs under it: names validated by one must publish a new record before their next certificate. Callers must use the new URL.',
  },
  pki_url: {
    variable: 'RESEAL_PKI_URL',
    breaks:
      'Certificates already issued name the old one until they expire: keep /ca/, /crl/ and /ocsp answering there as well.',
  },
  issuer_names: {
    variable: 'RESEAL_ISSUER_NAMES',
    breaks:
      'CAA records and persistent DNS records that name only a name you remove no longer allow this service to issue.',
  },
} as const satisfies Record<string, AddressKind>;

export type AddressName = keyof typeof ADDRESSES;
export const ADDRESS_NAMES = Object.keys(ADDRESSES) as AddressName[];
/** Issuer names are joined by commas, as in the variable. */
export type Addresses = Readonly<Record<AddressName, string>>;

export interface AddressRecord {
  /** From variables or `reseal address set`: binding. */
  readonly configured: Readonly<Partial<Addresses>>;
  /** What certificates and records carry: configured, else derived. */
  readonly used: Addresses;
}

/** Issuer domain name of a service whose URL has no DNS name. */
const DEFAULT_ISSUER = 'ca.reseal.test';

/** `listening` is where the service listens, and its public URL unless one is configured. */
export function usedAddresses(configured: Partial<Addresses>, listening: string): Addresses {
  const public_url = configured.public_url ?? listening;
  // RESEAL_HOST is not validated here, so the URL may not parse; listening on it fails later.
  const host = URL.parse(public_url)?.hostname ?? '';
  return {
    public_url,
    // Plain HTTP: checking the server certificate of an HTTPS status URL would need its status first.
    pki_url: configured.pki_url ?? public_url.replace(/^https:/, 'http:'),
    issuer_names: configured.issuer_names ?? ('value' in hostName(host) ? host : DEFAULT_ISSUER),
  };
}

/** Throws a Problem that names each configured value which differs from the recorded one. */
export function requireSameAddresses(configured: Partial<Addresses>, recorded: Partial<Addresses>): void {
  const differing = ADDRESS_NAMES.filter(
    (name) => configured[name] !== undefined && recorded[name] !== undefined && configured[name] !== recorded[name],
  );
  if (differing.length === 0) return;
  const lines = differing.map(
    (name) => `${ADDRESSES[name].variable} is ${configured[name]} here, and ${recorded[name]} in the store`,
  );
  throw new Problem(
    EXIT.configuration,
    `this store belongs to a service with other addresses, which are in its certificates and DNS records:\n  ${lines.join('\n  ')}`,
    'Correct the variables, or the choice of the store. To change an address deliberately, see: reseal address set --help',
  );
}

export function parseAddressRecord(text: string | undefined): AddressRecord | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as AddressRecord);
}
