// The network a request comes from, as a key for limits: the IPv4 address, or the /64 that an IPv6 site has to itself.
import { isIP } from 'node:net';
import { addressText, IPV4_MAPPED, isInside, parseAddress } from '../../domain/egress/addresses.ts';

/** `ip` is what Fastify says, which believes trusted proxies. Undefined once the caller has disconnected. */
export function networkOf(ip: string | undefined): string {
  if (ip === undefined || isIP(ip) === 0) return '';
  if (!ip.includes(':')) return ip;
  // Link-local addresses carry a zone.
  const address = parseAddress(ip.replace(/%.*$/, ''));
  if (!address) return '';
  return isInside(IPV4_MAPPED, address) ? address.slice(12).join('.') : addressText(address.fill(0, 8));
}
