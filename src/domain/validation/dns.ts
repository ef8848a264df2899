// DNS lookups as validation sees them: records, no records, or a failure. "No records" is a fact about a name; a failed
// lookup must never be taken for one.
import type { Localized } from '../../kernel/locale.ts';
import type { AccountId } from '../ids.ts';
import type { ExtendedError } from './extended-error.ts';

export type DnsAnswer<Record> =
  | ({ readonly kind: 'found'; readonly records: readonly Record[] } & AnswerFacts)
  /** The name does not exist, or has no record of the type. */
  | ({ readonly kind: 'absent' } & AnswerFacts)
  | FailedLookup;

interface AnswerFacts {
  /** For how many more seconds the resolver may give this answer again without asking. Absent: it asks each time. */
  readonly ttl?: number;
  /** The end of the CNAME chain, if there is one: the name that the answer is about. */
  readonly alias?: string;
}

export interface FailedLookup {
  readonly kind: 'failed';
  readonly reason: DnsFailure;
  /** What the resolver says about it, if anything. */
  readonly extended?: ExtendedError;
}

export type DnsFailure =
  /** A resolver of ours works on it, and has no answer yet. */
  | 'dns_timeout'
  /** SERVFAIL: the name servers fail, or DNSSEC does not verify. */
  | 'dns_servfail'
  /** An answer that is refused, or that cannot be used. */
  | 'dns_failure'
  /** No resolver of ours answers anything: not the name's fault. */
  | 'resolver_unreachable';

/** The name that was asked for and, through a CNAME, the one whose records were found: that is where to change them. */
export const ownerOf = (name: string, { alias }: { readonly alias?: string }): Localized =>
  alias === undefined
    ? { en: name, zh: name }
    : { en: `${name} (by CNAME ${alias})`, zh: `${name}（CNAME 指向 ${alias}）` };

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
  /** The URL of the ACME account that asks, if one does. CAA and persistent records may name it, or its account here. */
  readonly acmeAccount?: string | undefined;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
}

/** One network perspective: a resolver, or several used as fallbacks of each other. */
export interface DnsLookups {
  /** The strings of each TXT record are joined without a separator. */
  txt(domain: string, context: LookupContext): Promise<DnsAnswer<string>>;
  /** The answers for several domains, which are asked for at the same time. */
  caa(domains: readonly string[], context: LookupContext): Promise<readonly DnsAnswer<CaaRecord>[]>;
  /** Whether one of the resolvers answers at all. */
  isReachable(): Promise<boolean>;
}
