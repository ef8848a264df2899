// Challenges: what the applicant must publish for a name, and where. An order's instructions and a check's question are
// the same Challenge. Pure; DNS and HTTP answers are fetched elsewhere.
import type { Localized } from '../../kernel/locale.ts';
import type { OfferedDcvMethod } from '../catalog/products.ts';
import { hostOf, isAddress, isWildcard, type RegistrableDomain } from '../certificate/names.ts';
import type { DcvScope, DomainValidation } from '../certificate/order.ts';
import { PERSIST_LABEL, persistRecord } from './dns-persist.ts';
import { offeredAs, type ProvingMethod } from './method.ts';

const DNS_LABEL = '_dnsauth';
/** The value is in the file, never in the path: a server that echoes the requested path must not pass. */
const FILE_PATH = '/.well-known/pki-validation/fileauth.txt';

export interface Challenge<Method extends ProvingMethod = OfferedDcvMethod> {
  readonly name: string;
  readonly method: Method;
  /** The authorization domain name: the host of the name, or its registrable domain. */
  readonly domain: string;
  /** The owner name of a TXT record, or the path of a file. */
  readonly path: string;
  /** The text to publish there. */
  readonly value: string;
}

export interface ChallengeFacts {
  /** Returns a value that is unguessable, and different for every certificate and domain. */
  readonly valueFor: (domain: string) => string;
  /** The first one is written into records. */
  readonly issuers: readonly string[];
  readonly accountUri: string;
  readonly registrableDomain: RegistrableDomain;
}

/** A web server speaks for its own name or address only, and DNS for names only. */
export const canProve = (method: ProvingMethod, name: string): boolean =>
  offeredAs(method) === 'file' ? !isWildcard(name) : !isAddress(name);

export function challengeFor(
  name: string,
  method: OfferedDcvMethod,
  { dcvScope, persistUntil, persistPolicy }: DomainValidation,
  { valueFor, issuers, accountUri, registrableDomain }: ChallengeFacts,
): Challenge {
  const domain = authorizationDomain(name, dcvScope, registrableDomain);
  switch (method) {
    case 'dns':
      return { name, method, domain, path: `${DNS_LABEL}.${domain}`, value: valueFor(domain) };
    case 'file':
      return { name, method, domain, path: FILE_PATH, value: valueFor(domain) };
    case 'dns-persist': {
      const [issuer = ''] = issuers;
      const value = persistRecord({ issuer, accountUri, persistUntil, persistPolicy });
      return { name, method, domain, path: `${PERSIST_LABEL}.${domain}`, value };
    }
  }
}

/**
 * Returns why the record of a `dns-persist` challenge cannot pass if published as shown, or null. The order may ask for
 * such a record, for instance policy `fqdn` and scope `base_domain` for a name below it; a record already in DNS may still authorize more.
 */
export function shortfallOf(
  { name, method, domain }: Challenge,
  { persistPolicy, persistUntil }: DomainValidation,
  now: number,
): Localized | null {
  if (method !== 'dns-persist') return null;
  if (persistUntil !== null && persistUntil < Math.floor(now / 1000)) return EXPIRED;
  if (persistPolicy === 'wildcard' || isWildcard(name) || domain === name) return null;
  return {
    en: `The record shown is good for ${domain} only. For ${name}, change the order's persist_policy to wildcard with PUT …/dcv-method.`,
    zh: `所示记录只对 ${domain} 有效。如需用于 ${name}，请通过 PUT …/dcv-method 将 persist_policy 改为 wildcard。`,
  };
}

const EXPIRED: Localized = {
  en: "The record shown has expired. Send a later persist_until, or 0, with PUT …/dcv-method and dcv_method 'dns-persist'.",
  zh: '所示记录已过期，请通过 PUT …/dcv-method（dcv_method 为 dns-persist）发送更晚的 persist_until 或 0。',
};

/** Names without a registrable domain, as in private-trust products, are their own authorization domain. */
function authorizationDomain(name: string, scope: DcvScope, registrableDomain: RegistrableDomain): string {
  const host = hostOf(name);
  return scope === 'base_domain' ? (registrableDomain(host) ?? host) : host;
}

/**
 * Returns the keys under which a stored proof covers this name: the name, and its registrable domain with a leading
 * dot, because a proof of the registrable domain covers all names below it.
 */
export function coveringProofs(name: string, registrableDomain: RegistrableDomain): string[] {
  const base = registrableDomain(hostOf(name));
  return base === undefined ? [name] : [name, `.${base}`];
}

/** Returns the key under which the proof of a passed challenge is stored. */
export const proofKey = (
  { name, domain }: Pick<Challenge, 'name' | 'domain'>,
  scope: DcvScope,
  registrableDomain: RegistrableDomain,
): string => (scope === 'base_domain' && registrableDomain(domain) === domain ? `.${domain}` : name);
