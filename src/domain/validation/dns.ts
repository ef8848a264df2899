// DNS lookups as validation sees them: records, no records, or a failure. "No records" is a fact about a name; a failed
// lookup must never be taken for one.
import type { AccountId } from '../ids.ts';

export type DnsAnswer<Record> =
  | { readonly kind: 'found'; readonly records: readonly Record[] }
  /** The name does not exist, or has no record of the type. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly reason: DnsFailure };

const DNS_FAILURES = ['dns_timeout', 'dns_failure'] as const;
export type DnsFailure = (typeof DNS_FAILURES)[number];

/** The answer for one domain of the tree climbed from a name towards the root. */
export interface DomainAnswer<Record> {
  readonly domain: string;
  readonly answer: DnsAnswer<Record>;
}

export interface CaaRecord {
  /** The flags octet; 128 is critical. */
  readonly flags: number;
  /** As sent; compare tags case-insensitively. */
  readonly tag: string;
  readonly value: string;
}

export interface LookupContext {
  /** Concurrent lookups are shared out fairly between accounts. */
  readonly accountId: AccountId;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
}

/** One network perspective: a resolver, or several used as fallbacks of each other. */
export interface DnsLookups {
  /** The strings of each TXT record are joined without a separator. */
  txt(domain: string, context: LookupContext): Promise<DnsAnswer<string>>;
  caa(domain: string, context: LookupContext): Promise<DnsAnswer<CaaRecord>>;
}
