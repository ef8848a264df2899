// What the holder of a name must show, and where: the instruction an order gives, and the question a check asks, are
// this one thing. Pure; the answers come from DNS and web servers elsewhere.
import type { Localized } from '../../kernel/locale.ts';
import type { OfferedDcvMethod } from '../catalog/products.ts';
import { hostOf } from '../certificate/names.ts';
import type { DcvScope, DomainValidation } from '../certificate/order.ts';
import { PERSIST_LABEL, persistRecord } from './dns-persist.ts';

export const DNS_LABEL = '_dnsauth';
/** The value is in the file and never in the address: who only echoes what was asked for proves nothing. */
export const FILE_PATH = '/.well-known/pki-validation/fileauth.txt';

export interface Challenge {
  readonly name: string;
  readonly method: OfferedDcvMethod;
  /** Whose control is asked for: the host of the name, or its registrable domain. */
  readonly domain: string;
  /** The name of a TXT record, or the path of a file. */
  readonly path: string;
  /** The text that must stand there. */
  readonly value: string;
}

export interface ChallengeFacts {
  /** Differs for every certificate and domain, and nobody can guess it. */
  readonly valueFor: (domain: string) => string;
  /** The first one is written into records. */
  readonly issuers: readonly string[];
  readonly accountUri: string;
  readonly registrableDomain: (name: string) => string | undefined;
}

export function challengeFor(
  name: string,
  method: OfferedDcvMethod,
  { dcvScope, persistUntil, persistPolicy }: DomainValidation,
  { valueFor, issuers, accountUri, registrableDomain }: ChallengeFacts,
): Challenge {
  const domain = askedDomain(name, dcvScope, registrableDomain);
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
 * A persistent record of policy `fqdn` is good for its own name only. Whoever asks for it, and for more, is served what
 * was asked for, and told that it will not do; a record that is there already may say more than the order does.
 */
export function shortfallOf(
  { name, method, domain }: Challenge,
  { persistPolicy, persistUntil }: DomainValidation,
  now: number,
): Localized | null {
  if (method !== 'dns-persist') return null;
  if (persistUntil !== null && persistUntil < Math.floor(now / 1000)) return EXPIRED;
  if (persistPolicy === 'wildcard' || domain === name) return null;
  return {
    en: `The record shown is good for ${domain} only. For ${name}, change the order's persist_policy to wildcard with PUT …/dcv-method.`,
    zh: `所示记录只对 ${domain} 有效。如需用于 ${name}，请通过 PUT …/dcv-method 将 persist_policy 改为 wildcard。`,
  };
}

const EXPIRED: Localized = {
  en: "The record shown has expired. Send a later persist_until, or 0, with PUT …/dcv-method and dcv_method 'dns-persist'.",
  zh: '所示记录已过期，请通过 PUT …/dcv-method（dcv_method 为 dns-persist）发送更晚的 persist_until 或 0。',
};

/** A name without a registrable domain, as private products have them, stands for itself. */
export function askedDomain(
  name: string,
  scope: DcvScope,
  registrableDomain: (name: string) => string | undefined,
): string {
  const host = hostOf(name);
  return scope === 'base_domain' ? (registrableDomain(host) ?? host) : host;
}

/**
 * The names under which a proof is kept that serves for this one. Whoever has proven a registrable domain has proven
 * what is below: such a proof is kept with a dot in front.
 */
export function coveringProofs(name: string, registrableDomain: (name: string) => string | undefined): string[] {
  const base = registrableDomain(hostOf(name));
  return base === undefined ? [name] : [name, `.${base}`];
}

/** Under which name the proof that answered a challenge is kept. */
export const proofOf = (
  { name, domain }: Pick<Challenge, 'name' | 'domain'>,
  scope: DcvScope,
  registrableDomain: (name: string) => string | undefined,
): string => (scope === 'base_domain' && registrableDomain(domain) === domain ? `.${domain}` : name);
