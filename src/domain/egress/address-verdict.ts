// Which addresses a call to the outside may go to, decided on the number and never on text. An operator's rules can
// narrow and widen that, but not open what no receiver of callbacks can be.

import { type Address, type AddressRule, isInside, MAPPED, type Network, parseNetwork } from './addresses.ts';
import type { OutboundUrl } from './outbound.ts';

export interface AddressRules {
  readonly allow: readonly AddressRule[];
  /** Stronger than allow, and than being public. */
  readonly deny: readonly AddressRule[];
}

/** `allowed` is not public, but an allow rule names it: what it answers is not for the caller's eyes. */
export type AddressVerdict = 'public' | 'allowed' | 'refused';

const networks = (...texts: readonly string[]): Network[] => texts.map((text) => parseNetwork(text)!);
const isInAny = (list: readonly Network[], address: Address): boolean => list.some((one) => isInside(one, address));

const NOT_PUBLIC_IPV4 = networks(
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3', '168.63.129.16'],
);

/** IPv6 is the other way round: its special ranges keep growing, so only global unicast is public, less what is special. */
const GLOBAL_UNICAST = networks('2000::/3');
const NOT_PUBLIC_IPV6 = networks('2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20');

/** A translator turns these into the IPv4 address in their last four bytes, so that address is what counts. */
const NAT64 = networks('64:ff9b::/96');

export function isPublicAddress(address: Address): boolean {
  if (address.length === 4) return !isInAny(NOT_PUBLIC_IPV4, address);
  if (isInAny(NAT64, address)) return isPublicAddress(address.slice(12));
  return isInAny(GLOBAL_UNICAST, address) && !isInAny(NOT_PUBLIC_IPV6, address);
}

/**
 * Never let through, whatever a rule says: a wide rule such as fd00::/8 is meant for a network of one's own, and must
 * not hand out the credentials of the machine. Clouds keep their metadata services at the addresses below besides
 * link-local ones.
 */
const NEVER: readonly Network[] = [
  ...networks('0.0.0.0/8', '::'), // unspecified
  ...networks('169.254.0.0/16', 'fe80::/10'), // link-local
  ...networks('224.0.0.0/3', 'ff00::/8'), // multicast
  MAPPED, // ambiguous
  ...networks('fd00:ec2::/32'), // Amazon
  ...networks('168.63.129.16'), // Azure
  ...networks('fd20:ce::254'), // Google
  ...networks('192.0.0.192', 'fd00:c1::a9fe:a9fe'), // Oracle
  ...networks('100.100.100.200', 'fd00:100::100:200'), // Alibaba
  ...networks('100.96.0.96'), // Volcengine
  ...networks('fd00:42::42'), // Scaleway
  ...networks('fd00:a9fe:a9fe::1'), // Akamai
];

/** Where an IPv6 address that something on the way may turn into IPv4 carries it, by the first of its four bytes. */
const CARRIERS: readonly (readonly [Network[], offset: number])[] = [
  [[...NAT64, ...networks('64:ff9b:1::/48', '::ffff:0:0:0/96')], 12],
  [networks('2002::/16'), 2],
];

function carriedBy(address: Address): Address[] {
  return CARRIERS.filter(([list]) => isInAny(list, address)).map(([, offset]) => address.slice(offset, offset + 4));
}

export function judgeAddress(address: Address, port: number, { allow, deny }: AddressRules): AddressVerdict {
  const names = (rule: AddressRule, one: Address) => isInside(rule, one) && (rule.port ?? port) === port;
  const forms = [address, ...carriedBy(address)];
  if (forms.some((form) => isInAny(NEVER, form) || deny.some((rule) => names(rule, form)))) return 'refused';
  if (isPublicAddress(address)) return 'public';
  return allow.some((rule) => names(rule, address)) ? 'allowed' : 'refused';
}

/** Names that never leave the machine or the local network: no DNS server can say anything good about them. */
export const isLocalName = (host: string): boolean => /(^|\.)(localhost|local|internal|home\.arpa)\.?$/i.test(host);

/** Told by what is written in the URL: a name that never leaves the network, or an address that may not be called. */
export const isPrivateAsWritten = ({ host, literal, port }: OutboundUrl, rules: AddressRules): boolean =>
  literal ? judgeAddress(literal, port, rules) === 'refused' : isLocalName(host) && rules.allow.length === 0;
