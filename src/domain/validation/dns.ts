// What DNS can answer, in the three kinds that matter to a decision: something, nothing, or no answer at all. Nothing
// and no answer are worlds apart: the one is a fact about a name, the other must never be taken for one.
import type { AccountId } from '../ids.ts';

export type DnsAnswer<Record> =
  | { readonly kind: 'found'; readonly records: readonly Record[] }
  /** The name does not exist, or has no record of the type. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly reason: DnsFailure };

export const DNS_FAILURES = ['dns_timeout', 'dns_failure'] as const;
export type DnsFailure = (typeof DNS_FAILURES)[number];

/** An answer about one of the domains that are asked for a name. */
export interface Level<Record> {
  readonly domain: string;
  readonly answer: DnsAnswer<Record>;
}

export interface CaaRecord {
  /** The octet as it travels; 128 is critical. */
  readonly flags: number;
  /** As it was sent: tags are read in any case of letters. */
  readonly tag: string;
  readonly value: string;
}

/** On whose behalf a question is asked, and until when anybody waits for the answer. */
export interface Asking {
  readonly accountId: AccountId;
  readonly signal: AbortSignal;
}

/** One view of the world: a resolver, or a group of them that stand in for each other. */
export interface DnsLookups {
  /** The strings of each TXT record are joined without a separator. */
  txt(domain: string, asking: Asking): Promise<DnsAnswer<string>>;
  caa(domain: string, asking: Asking): Promise<DnsAnswer<CaaRecord>>;
}
