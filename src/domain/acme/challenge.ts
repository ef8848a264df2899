// The challenges of ACME: which ones a name has, what each asks for, and what a failed check means in ACME's problem types.
// A challenge of ACME is a Challenge of validation/ with a method of its own, and is checked by the same code. Pure.
import type { Product } from '../catalog/products.ts';
import { hostOf, isWildcard } from '../certificate/names.ts';
import { type Address, parseAddress } from '../egress/addresses.ts';
import type { FailureReason } from '../egress/outbound.ts';
import { type Challenge, canProve } from '../validation/challenge.ts';
import type { CheckProblem, FailedCheck } from '../validation/check-result.ts';
import { PERSIST_LABEL } from '../validation/dns-persist.ts';
import { ACME_METHODS, type AcmeMethod, OFFERED_WITH } from '../validation/method.ts';

const DNS_LABEL = '_acme-challenge';
const HTTP_PATH = '/.well-known/acme-challenge/';
/** RFC 8737. */
export const ALPN_PROTOCOL = 'acme-tls/1';

/** The challenges of a name, `*.` included: those that can prove it and whose method the product offers. */
export const challengesFor = (name: string, { dcvMethods }: Pick<Product, 'dcvMethods'>): AcmeMethod[] =>
  ACME_METHODS.filter((method) => dcvMethods.includes(OFFERED_WITH[method]) && canProve(method, name));

/** Whether the client gets a token. A persistent record is bound to an account instead, and stays. */
export const hasToken = (method: AcmeMethod): boolean => method !== 'dns-persist-01';

export interface KeyAuthorization {
  readonly token: string;
  /** The token and the thumbprint of the account key (RFC 8555, 8.1). */
  readonly text: string;
  /** SHA-256 of the text, base64url. */
  readonly digest: string;
}

/** `path` is where the answer is expected: a file, the owner of a TXT record, or the server name of a handshake. */
export function acmeChallenge(
  name: string,
  method: AcmeMethod,
  { token, text, digest }: KeyAuthorization,
): Challenge<AcmeMethod> {
  const domain = hostOf(name);
  const where = { name, method, domain };
  switch (method) {
    case 'http-01':
      return { ...where, path: HTTP_PATH + token, value: text };
    case 'dns-01':
      return { ...where, path: `${DNS_LABEL}.${domain}`, value: digest };
    case 'tls-alpn-01':
      return { ...where, path: serverName(domain), value: digest };
    case 'dns-persist-01':
      // Records are judged by what they say; any number of them may do.
      return { ...where, path: `${PERSIST_LABEL}.${domain}`, value: '' };
  }
}

/** SNI has no IP addresses; their reverse names stand for them (RFC 8738, 6). */
export function serverName(host: string): string {
  const address = parseAddress(host);
  return address ? reverseName(address) : host;
}

const reverseName = (address: Address): string =>
  address.length === 4
    ? `${address.toReversed().join('.')}.in-addr.arpa`
    : `${Buffer.from(address).toString('hex').split('').toReversed().join('.')}.ip6.arpa`;

/** What a persistent record must and may say, for the client that publishes it. */
export interface PersistTerms {
  readonly issuers: readonly string[];
  /** Of the account that the ACME account is bound to; the URL of the ACME account counts as well (ADR 0070). */
  readonly accountUri: string;
  /** A wildcard needs a record with this policy. */
  readonly policy: 'wildcard' | null;
}

export const persistTerms = (name: string, issuers: readonly string[], accountUri: string): PersistTerms => ({
  ...{ issuers, accountUri },
  policy: isWildcard(name) ? 'wildcard' : null,
});

/** The problem types (RFC 8555, 6.7) that a validation can end with. */
export type ChallengeProblemType =
  | 'dns'
  | 'connection'
  | 'tls'
  | 'unauthorized'
  | 'incorrectResponse'
  | 'malformed'
  | 'caa'
  | 'serverInternal';

export function problemType({ problem, failure }: FailedCheck): ChallengeProblemType {
  return (failure && FAILURE_TYPES[failure]) ?? PROBLEM_TYPES[problem];
}

const PROBLEM_TYPES: Readonly<Record<CheckProblem, ChallengeProblemType>> = {
  no_record: 'incorrectResponse',
  wrong_value: 'incorrectResponse',
  malformed: 'malformed',
  unauthorized: 'unauthorized',
  dns_failure: 'dns',
  resolver_unreachable: 'serverInternal',
  // An answer with another status than 200, or redirects that are not followed; other failures are below.
  http_failure: 'incorrectResponse',
  private_address: 'connection',
  caa_forbidden: 'caa',
  perspectives_differ: 'unauthorized',
};

const FAILURE_TYPES: Readonly<Record<FailureReason, ChallengeProblemType>> = {
  name_not_found: 'dns',
  dns_failure: 'dns',
  dns_timeout: 'dns',
  connection_refused: 'connection',
  connection_failed: 'connection',
  connect_timeout: 'connection',
  tls_failed: 'tls',
  tls_timeout: 'tls',
  certificate_untrusted: 'tls',
  certificate_expired: 'tls',
  certificate_not_yet_valid: 'tls',
  certificate_wrong_host: 'tls',
  connection_closed: 'connection',
  response_timeout: 'connection',
  response_invalid: 'connection',
  canceled: 'connection',
};
