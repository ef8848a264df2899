// IP addresses and networks: parsing, formatting, containment. Parsing is strict: a spelling that two programs could
// read differently is rejected. Which addresses may be called is decided in address-verdict.ts.

/** 4 bytes for IPv4, 16 for IPv6. */
export type Address = Uint8Array;

export interface Network {
  readonly address: Address;
  readonly prefix: number;
}

/** A network, for one port or (null) for every port. */
export interface AddressRule extends Network {
  readonly port: number | null;
}

const DECIMAL = /^(0|[1-9]\d{0,4})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const GROUPS = 8;

/**
 * Accepts `192.0.2.1`, and any form of RFC 4291 such as `2001:db8::1` and `::ffff:192.0.2.1`. Rejects leading zeros in
 * IPv4 (some programs read them as octal), zone ids (local to one machine) and brackets (URL syntax).
 */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

function parseIPv4(text: string): Address | undefined {
  const bytes = text.split('.').map((part) => parseDecimal(part, 0, 255));
  return bytes.length === 4 && bytes.every((byte) => byte !== undefined) ? Uint8Array.from(bytes) : undefined;
}

function parseIPv6(text: string): Address | undefined {
  const [head = '', tail, ...more] = dottedTailToGroups(text).split('::');
  if (more.length > 0) return undefined;
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  const missing = GROUPS - before.length - after.length;
  // `::` stands for at least one group of zeros.
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...before, ...Array<string>(missing).fill('0'), ...after];
  if (!groups.every((group) => GROUP.test(group))) return undefined;
  return Uint8Array.from(
    groups.map((group) => Number.parseInt(group, 16)).flatMap((value) => [value >> 8, value & 255]),
  );
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));

/** Rewrites a dotted-decimal tail as two groups. A dot elsewhere stays, and makes its group invalid. */
function dottedTailToGroups(text: string): string {
  const start = text.lastIndexOf(':') + 1;
  const bytes = parseIPv4(text.slice(start));
  if (!bytes) return text;
  const [a = '', b = '', c = '', d = ''] = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
  return `${text.slice(0, start)}${a}${b}:${c}${d}`;
}

/** Parses `10.0.0.0/8` or a single address. Rejects host bits beyond the prefix: such a typo is ambiguous. */
function parseNetwork(text: string): Network | undefined {
  const [written = '', length, ...more] = text.split('/');
  const address = parseAddress(written);
  if (!address || more.length > 0) return undefined;
  const bits = address.length * 8;
  const prefix = length === undefined ? bits : parseDecimal(length, 0, bits);
  if (prefix === undefined || address.some((byte, index) => byte & ~maskAt(prefix, index))) return undefined;
  return { address, prefix };
}

/** Parses a network with an optional port: `10.0.0.0/8:443`, or `[::1]:9443` for IPv6. */
export function parseAddressRule(text: string): AddressRule | undefined {
  const [, written = text, portText] = /^\[([^\]]*:[^\]]*)\]:(.*)$/.exec(text) ?? /^([^:]*):([^:]*)$/.exec(text) ?? [];
  const network = parseNetwork(written);
  const port = portText === undefined ? null : parsePort(portText);
  return network && port !== undefined ? { ...unmapped(network), port } : undefined;
}

export const parsePort = (text: string): number | undefined => parseDecimal(text, 1, 65_535);

export function isInside({ address: base, prefix }: Network, address: Address): boolean {
  return (
    base.length === address.length &&
    base.every((byte, index) => ((byte ^ (address[index] ?? 0)) & maskAt(prefix, index)) === 0)
  );
}

/** A network written in the source. Throws on a typo, when the module is loaded. */
export function network(text: string): Network {
  const parsed = parseNetwork(text);
  if (!parsed) throw new Error(`${text} is not a network`);
  return parsed;
}

export const IPV4_MAPPED = network('::ffff:0:0/96');

/**
 * Dual-stack sockets log IPv4 as `::ffff:192.0.2.1`. A rule copied from such a log means the IPv4 address; taken
 * literally, a deny rule would match nothing.
 */
function unmapped({ address, prefix }: Network): Network {
  // Inside implies a prefix of at least 96: parseNetwork rejects host bits, and ffff would be some.
  if (!isInside(IPV4_MAPPED, address)) return { address, prefix };
  return { address: address.slice(12), prefix: prefix - IPV4_MAPPED.prefix };
}

/** Netmask byte at `index`. */
function maskAt(prefix: number, index: number): number {
  return (0xff00 >> Math.min(8, Math.max(0, prefix - 8 * index))) & 255;
}

function parseDecimal(text: string, min: number, max: number): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** Inverse of parseAddressRule. */
export function ruleText({ address, prefix, port }: AddressRule): string {
  const isWhole = prefix === address.length * 8;
  const range = `${addressText(address)}${isWhole ? '' : `/${prefix}`}`;
  if (port === null) return range;
  return address.length === 4 ? `${range}:${port}` : `[${range}]:${port}`;
}

/** As RFC 5952 has it: the one spelling under which an address is stored, compared and shown. */
export const canonicalAddress = (address: Address): string =>
  // The URL parser writes IPv6 that way.
  address.length === 4 ? addressText(address) : new URL(`http://[${addressText(address)}]/`).hostname.slice(1, -1);

/** IPv6 as eight groups, without `::`: for machines. */
export function addressText(address: Address): string {
  if (address.length === 4) return address.join('.');
  const view = new DataView(address.buffer, address.byteOffset, address.byteLength);
  return Array.from({ length: 8 }, (_, index) => view.getUint16(2 * index).toString(16)).join(':');
}
