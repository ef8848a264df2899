// Where a file is fetched that proves a name, and where a redirect from there may lead. Pure.

import type { OutboundUrl } from '../egress/outbound.ts';
import { webUrl } from '../egress/url.ts';

const PORTS = { http: 80, https: 443 } as const;
const MAX_LOCATION = 2_048;

export interface FileTarget {
  readonly url: OutboundUrl;
  /** For people: without the port that everybody expects. */
  readonly shown: string;
}

const target = (url: OutboundUrl): FileTarget => ({
  url,
  shown: `${url.scheme}://${url.host}${url.target}`.slice(0, MAX_SHOWN),
});
const MAX_SHOWN = 200;

/** `filePort` stands for 80 where nobody may listen there. */
export const fileTarget = (domain: string, path: string, filePort: number): FileTarget =>
  target({ scheme: 'http', host: domain, literal: null, port: filePort, target: path });

/** Undefined for a place that is not gone to: another scheme or port, a bare address, or no URL at all. */
export function redirectTarget(location: string, from: FileTarget, filePort: number): FileTarget | undefined {
  const [text = ''] = location.split('#');
  if (text === '' || text.length > MAX_LOCATION) return undefined;
  // As written: what a parser would make of `/\\host` or `/%0a` is its own affair.
  if (/^\/(?![/\\])[!-~]*$/.test(text)) return target({ ...from.url, target: text });
  const url = webUrl(text);
  if (!url || url.literal) return undefined;
  const { scheme, port = PORTS[scheme], ...where } = url;
  if (port !== PORTS[scheme]) return undefined;
  return target({ scheme, port: scheme === 'http' ? filePort : port, ...where });
}
