// Which part of a name somebody registered, by the public suffix list. Private suffixes count too: nobody but their
// owner should get a wildcard over all customers of a hosting provider.
import { parse } from 'tldts';

/** example.co.uk for www.example.co.uk; undefined for a public suffix itself, and below a suffix nobody knows. */
export function registrableDomain(name: string): string | undefined {
  const options = { allowPrivateDomains: true, validateHostname: false, detectIp: false };
  const { domain, isIcann, isPrivate } = parse(name, options);
  return (isIcann || isPrivate) && domain !== null ? domain : undefined;
}
