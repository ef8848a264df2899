// Registrable domains by the public suffix list. Private suffixes count: a wildcard over all customers of a hosting
// provider is only for the owner of the suffix.
import { parse } from 'tldts';

/** Each step of an issuance asks for the same names again. Bounded, because callers choose the names. */
const MAX_KNOWN = 1_000;
const known = new Map<string, string | undefined>();

/** Returns example.co.uk for www.example.co.uk; undefined for a public suffix, and for names under an unknown one. */
export function registrableDomain(name: string): string | undefined {
  if (known.has(name)) return known.get(name);
  if (known.size === MAX_KNOWN) known.clear();
  const domain = registrableIn(name);
  known.set(name, domain);
  return domain;
}

function registrableIn(name: string): string | undefined {
  const options = { allowPrivateDomains: true, validateHostname: false, detectIp: false };
  const { domain, isIcann, isPrivate } = parse(name, options);
  return (isIcann || isPrivate) && domain !== null ? domain : undefined;
}
