// Which addresses an outbound call may connect to (SSRF protection). Decided on the parsed address, never on text.
// Operator rules can narrow and widen the set, but never allow link-local or metadata addresses.

import { type Address, type AddressRule, IPV4_MAPPED, isInside, type Network, network } from './addresses.ts';
import type { OutboundUrl } from './outbound.ts';

interface AddressRules {
  readonly allow: readonly AddressRule[];
  /** Takes precedence over allow, and over being public. */
  readonly deny: readonly AddressRule[];
}

/** `allowed`: not public, but matched by an allow rule. Its responses must not be shown to the caller. */
type AddressVerdict = 'public' | 'allowed' | 'refused';

const networks = (...texts: readonly string[]): Network[] => texts.map(network);
const isInAny = (list: readonly Network[], address: Address): boolean => list.some((one) => isInside(one, address));

const NOT_PUBLIC_IPV4 = networks(
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3', '168.63.129.16'],
);

/** IPv6 is an allowlist, because its special ranges keep growing: global unicast, minus the special ranges in it. */
const GLOBAL_UNICAST = networks('2000::/3');
const NOT_PUBLIC_IPV6 = networks('2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20');

/** NAT64 translates these to the IPv4 address in their last four bytes, so that address decides. */
const NAT64 = networks('64:ff9b::/96');

export function isPublicAddress(address: Address): boolean {
  if (address.length === 4) return !isInAny(NOT_PUBLIC_IPV4, address);
  if (isInAny(NAT64, address)) return isPublicAddress(address.slice(12));
  return isInAny(GLOBAL_UNICAST, address) && !isInAny(NOT_PUBLIC_IPV6, address);
}

/**
 * Refused even if a rule allows them: a wide rule such as fd00::/8 is meant for the operator's own network, and must not
 * expose the machine's cloud credentials. Metadata services live at link-local addresses and at those named below.
 */
const NEVER: readonly Network[] = [
  ...networks('0.0.0.0/8', '::'), // unspecified
  ...networks('169.254.0.0/16', 'fe80::/10'), // link-local
  ...networks('224.0.0.0/3', 'ff00::/8'), // multicast
  IPV4_MAPPED, // ambiguous
  ...networks('fd00:ec2::/32'), // Amazon
  ...networks('168.63.129.16'), // Azure
  ...networks('fd20:ce::254'), // Google
  ...networks('192.0.0.192', 'fd00:c1::a9fe:a9fe'), // Oracle
  ...networks('100.100.100.200', 'fd00:100::100:200'), // Alibaba
  ...networks('100.96.0.96'), // Volcengine
  ...networks('fd00:42::42'), // Scaleway
  ...networks('fd00:a9fe:a9fe::1'), // Akamai
];

/** IPv6 networks that a translator or tunnel turns into IPv4, with the byte offset of the embedded IPv4 address. */
const EMBEDDINGS: readonly (readonly [Network[], offset: number])[] = [
  [[...NAT64, ...networks('64:ff9b:1::/48', '::ffff:0:0:0/96')], 12],
  [networks('2002::/16'), 2],
];

/** The address itself, and the IPv4 addresses that it may be translated to. */
const formsOf = (address: Address): Address[] => [
  address,
  ...EMBEDDINGS.filter(([list]) => isInAny(list, address)).map(([, offset]) => address.slice(offset, offset + 4)),
];

/** Whether no rule can open any address of the network. */
export const isNeverCalled = ({ address, prefix }: Network): boolean =>
  NEVER.some((one) => isInside(one, address) && prefix >= one.prefix) ||
  (prefix === 8 * address.length && formsOf(address).some((form) => isInAny(NEVER, form)));

export function judgeAddress(address: Address, port: number, { allow, deny }: AddressRules): AddressVerdict {
  const matches = (rule: AddressRule, one: Address) => isInside(rule, one) && (rule.port ?? port) === port;
  const isRefused = (form: Address) => isInAny(NEVER, form) || deny.some((rule) => matches(rule, form));
  if (formsOf(address).some(isRefused)) return 'refused';
  if (isPublicAddress(address)) return 'public';
  return allow.some((rule) => matches(rule, address)) ? 'allowed' : 'refused';
}

/** Names reserved for the machine or the local network; no public DNS answer for them is valid. */
export const isLocalName = (host: string): boolean => /(^|\.)(localhost|local|internal|home\.arpa)\.?$/i.test(host);

/** Decided from the URL alone, without DNS: a local name, or a literal address that may not be called. */
export const isPrivateUrl = ({ host, literal, port }: OutboundUrl, rules: AddressRules): boolean =>
  literal ? judgeAddress(literal, port, rules) === 'refused' : isLocalName(host) && rules.allow.length === 0;
