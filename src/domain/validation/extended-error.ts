// Extended DNS errors (RFC 8914): why a resolver could not answer, in its own words. For people; nothing is decided by
// one, because responses without DNSSEC can be forged, and many resolvers send none.

export interface ExtendedError {
  readonly code: number;
  /** Printable ASCII, bounded. May be empty. */
  readonly text: string;
}

/** The registry of codes that a failed lookup can have. */
const NAMES: Readonly<Record<number, string>> = {
  1: 'Unsupported DNSKEY Algorithm',
  2: 'Unsupported DS Digest Type',
  5: 'DNSSEC Indeterminate',
  6: 'DNSSEC Bogus',
  7: 'Signature Expired',
  8: 'Signature Not Yet Valid',
  9: 'DNSKEY Missing',
  10: 'RRSIGs Missing',
  11: 'No Zone Key Bit Set',
  12: 'NSEC Missing',
  13: 'Cached Error',
  14: 'Not Ready',
  15: 'Blocked',
  16: 'Censored',
  17: 'Filtered',
  18: 'Prohibited',
  20: 'Not Authoritative',
  21: 'Not Supported',
  22: 'No Reachable Authority',
  23: 'Network Error',
  24: 'Invalid Data',
  25: 'Signature Expired before Valid',
  27: 'Unsupported NSEC3 Iterations Value',
};

/** Signatures, or the chain of trust to them, are wrong. */
const OF_DNSSEC: ReadonlySet<number> = new Set([1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 25, 27]);

export const isOfDnssec = ({ code }: ExtendedError): boolean => OF_DNSSEC.has(code);

/** As in `EDE 7 (Signature Expired): for www.example.com`. */
export const describeError = ({ code, text }: ExtendedError): string =>
  `EDE ${code}${NAMES[code] === undefined ? '' : ` (${NAMES[code]})`}${text === '' ? '' : `: ${text}`}`;
