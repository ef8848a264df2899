// Registrable domains by the public suffix list. Private suffixes count: a wildcard over all customers of a hosting
// provider is only for the owner of the suffix.
import { parse } from 'tldts';

/** Returns example.co.uk for www.example.co.uk; undefined for a public suffix, and for names under an unknown one. */
export function registrableDomain(name: string): string | undefined {
  const options = { allowPrivateDomains: true, validateHostname: false, detectIp: false };
  const { domain, isIcann, isPrivate } = parse(name, options);
  return (isIcann || isPrivate) && domain !== null ? domain : undefined;
}
