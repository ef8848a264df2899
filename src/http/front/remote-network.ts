// Where a request comes from: its network as a key for limits, which is the IPv4 address or the /64 that an IPv6 site has to
// itself; and whether it comes from this machine, or from a network that the operator has named.
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import {
  type Address,
  addressText,
  IPV4_MAPPED,
  isInside,
  type Network,
  network,
  parseAddress,
} from '../../domain/egress/addresses.ts';

/** `ip` is what Fastify says, which believes trusted proxies. Undefined once the caller has disconnected. */
export function networkOf(ip: string | undefined): string {
  if (ip === undefined || isIP(ip) === 0) return '';
  if (!ip.includes(':')) return ip;
  const address = addressOf(ip);
  if (!address) return '';
  return address.length === 4 ? address.join('.') : addressText(address.fill(0, 8));
}

export const LOOPBACK: readonly Network[] = [network('127.0.0.0/8'), network('::1')];

export function isWithin(networks: readonly Network[], ip: string | undefined): boolean {
  const address = addressOf(ip ?? '');
  return address !== undefined && networks.some((one) => isInside(one, address));
}

/** A proxy on this machine also connects from loopback; one of these headers reveals it. */
const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];
export const isForwarded = ({ headers }: FastifyRequest): boolean =>
  PROXY_HEADERS.some((name) => headers[name] !== undefined);

function addressOf(ip: string): Address | undefined {
  // Link-local addresses carry a zone.
  const address = parseAddress(ip.replace(/%.*$/, ''));
  return address && isInside(IPV4_MAPPED, address) ? address.slice(12) : address;
}
