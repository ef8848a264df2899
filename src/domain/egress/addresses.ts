// What an IP address is, how it and a range of them may be written, and whether a range contains it. Reading is strict:
// a spelling that two programs could read differently is no address here. Which addresses may be called is decided in
// address-verdict.ts.

/** Four bytes of an IPv4 or sixteen of an IPv6 address. */
export type Address = Uint8Array;

export interface Network {
  readonly address: Address;
  readonly prefix: number;
}

/** A range of addresses, with a port or for all of them. */
export interface AddressRule extends Network {
  readonly port: number | null;
}

const DECIMAL = /^(0|[1-9]\d{0,4})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const GROUPS = 8;

/**
 * `192.0.2.1`, or any form of RFC 4291 such as `2001:db8::1` and `::ffff:192.0.2.1`. No leading zeros in IPv4, which
 * some programs read as octal; no zone, which names an interface of one machine; no brackets, which belong to URLs.
 */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

function parseIPv4(text: string): Address | undefined {
  const bytes = text.split('.').map((part) => parseDecimal(part, 0, 255));
  return bytes.length === 4 && bytes.every((byte) => byte !== undefined) ? Uint8Array.from(bytes) : undefined;
}

function parseIPv6(text: string): Address | undefined {
  const [head = '', tail, ...more] = withoutDots(text).split('::');
  if (more.length > 0) return undefined;
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  const missing = GROUPS - before.length - after.length;
  // Two colons stand for at least one group of zeros, and nothing else does.
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...before, ...Array<string>(missing).fill('0'), ...after];
  if (!groups.every((group) => GROUP.test(group))) return undefined;
  return Uint8Array.from(
    groups.map((group) => Number.parseInt(group, 16)).flatMap((value) => [value >> 8, value & 255]),
  );
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));

/** With a dotted tail written as two groups. A dot anywhere else stays, and makes its group invalid. */
function withoutDots(text: string): string {
  const start = text.lastIndexOf(':') + 1;
  const bytes = parseIPv4(text.slice(start));
  if (!bytes) return text;
  const [a = '', b = '', c = '', d = ''] = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
  return `${text.slice(0, start)}${a}${b}:${c}${d}`;
}

/** `10.0.0.0/8`, or one address. Bits set beyond the prefix are a typo: nobody can know which half was meant. */
export function parseNetwork(text: string): Network | undefined {
  const [written = '', length, ...more] = text.split('/');
  const address = parseAddress(written);
  if (!address || more.length > 0) return undefined;
  const bits = address.length * 8;
  const prefix = length === undefined ? bits : parseDecimal(length, 0, bits);
  if (prefix === undefined || address.some((byte, index) => byte & ~maskAt(prefix, index))) return undefined;
  return { address, prefix };
}

/** A network with or without a port: `10.0.0.0/8:443`, and brackets where colons would run together: `[::1]:9443`. */
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

/** IPv4 as a dual-stack socket shows it. */
export const MAPPED = parseNetwork('::ffff:0:0/96')!;

/**
 * Dual-stack sockets log IPv4 as `::ffff:192.0.2.1`. A rule copied from such a log means the IPv4 address; taken
 * literally, a deny rule would stop nothing.
 */
function unmapped(network: Network): Network {
  // Inside means a prefix of 96 or more: with fewer, the ffff would be bits beyond it.
  if (!isInside(MAPPED, network.address)) return network;
  return { address: network.address.slice(12), prefix: network.prefix - MAPPED.prefix };
}

/** The bits of the byte at `index` that belong to the prefix. */
function maskAt(prefix: number, index: number): number {
  return (0xff00 >> Math.min(8, Math.max(0, prefix - 8 * index))) & 255;
}

function parseDecimal(text: string, least: number, most: number): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : undefined;
}

/** As it is read back by parseAddressRule. */
export function ruleText({ address, prefix, port }: AddressRule): string {
  const isWhole = prefix === address.length * 8;
  const range = `${addressText(address)}${isWhole ? '' : `/${prefix}`}`;
  if (port === null) return range;
  return address.length === 4 ? `${range}:${port}` : `[${range}]:${port}`;
}

/** Eight groups, not shortened: for machines. */
export function addressText(address: Address): string {
  if (address.length === 4) return address.join('.');
  const view = new DataView(address.buffer, address.byteOffset, address.byteLength);
  return Array.from({ length: 8 }, (_, index) => view.getUint16(2 * index).toString(16)).join(':');
}
