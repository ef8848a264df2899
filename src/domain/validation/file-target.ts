// URLs of validation files, and which redirects from them are followed. Pure.

import { parseAddress } from '../egress/addresses.ts';
import type { OutboundUrl } from '../egress/outbound.ts';
import { webUrl } from '../egress/url.ts';

const PORTS = { http: 80, https: 443 } as const;

/** What replaces 80 and 443, where a sandbox may not listen. */
export interface WebPorts {
  readonly filePort: number;
  readonly tlsPort: number;
}
const MAX_LOCATION = 2_048;

export interface FileTarget {
  readonly url: OutboundUrl;
  /** For messages: without the port. */
  readonly shown: string;
}

const target = (url: OutboundUrl): FileTarget => ({
  url,
  shown: `${url.scheme}://${url.literal?.length === 16 ? `[${url.host}]` : url.host}${url.target}`.slice(0, MAX_SHOWN),
});
const MAX_SHOWN = 200;

export const fileTarget = (domain: string, path: string, { filePort }: WebPorts): FileTarget =>
  target({ scheme: 'http', host: domain, literal: parseAddress(domain) ?? null, port: filePort, target: path });

/** Returns undefined for a redirect that is not followed: another scheme or port, an IP address, or not a URL. */
export function redirectTarget(
  location: string,
  from: FileTarget,
  { filePort, tlsPort }: WebPorts,
): FileTarget | undefined {
  const [text = ''] = location.split('#');
  if (text === '' || text.length > MAX_LOCATION) return undefined;
  // Taken as written, without a URL parser, which would read `/\\host` as another host.
  if (/^\/(?![/\\])[!-~]*$/.test(text)) return target({ ...from.url, target: text });
  const url = webUrl(text);
  if (!url || url.literal) return undefined;
  const { scheme, port = PORTS[scheme], ...where } = url;
  if (port !== PORTS[scheme]) return undefined;
  return target({ scheme, port: scheme === 'http' ? filePort : tlsPort, ...where });
}
