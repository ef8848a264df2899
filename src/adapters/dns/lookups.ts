// TXT and CAA lookups with c-ares: no hosts file, no search domains. Every lookup has a deadline of its own, because
// c-ares overruns its timeouts. Distinguishes a failed lookup from an absent record.
import { Resolver } from 'node:dns/promises';
import type { CaaRecord, DnsAnswer, DnsLookups, LookupContext } from '../../domain/validation/dns.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';

const RESOLVER_OPTIONS = { timeout: 1_500, tries: 2 };
const LOOKUP_MS = 4_000;
/** EBADNAME: a name that is too long with our label in front cannot have a record. */
const ABSENT_CODES: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME']);
/** A DNS message can hold more, but no legitimate name needs them. */
const MAX_RECORDS = 100;

/** Each lookup holds a socket. */
const LOOKUPS_AT_ONCE = 256;
const acquireLookup = fairSemaphore(LOOKUPS_AT_ONCE);

/** Uses the system's resolvers if `servers` is empty. */
export function dnsLookups(servers: readonly string[]): DnsLookups {
  // One resolver per check: its own source port resists spoofed answers, and cancelling it affects no other check. One
  // per lookup would cost more than the lookup.
  const resolvers = new WeakMap<AbortSignal, Resolver>();

  function resolverFor(check: AbortSignal): Resolver {
    const known = resolvers.get(check);
    if (known) return known;
    const resolver = new Resolver(RESOLVER_OPTIONS);
    if (servers.length > 0) resolver.setServers(servers);
    resolvers.set(check, resolver);
    return resolver;
  }

  async function lookUp<Raw, Record>(
    { accountId, signal }: LookupContext,
    query: (resolver: Resolver) => Promise<Raw[]>,
    read: (raw: Raw) => Record,
  ): Promise<DnsAnswer<Record>> {
    using _slot = await acquireLookup(accountId);
    // The deadline may have passed in the queue.
    if (signal.aborted) return { kind: 'failed', reason: 'dns_timeout' };
    const resolver = resolverFor(signal);
    const cancel = () => resolver.cancel();
    const timer = setTimeout(cancel, LOOKUP_MS);
    signal.addEventListener('abort', cancel);
    try {
      const records = await query(resolver);
      if (records.length === 0) return { kind: 'absent' };
      // Fails closed: records beyond the limit might say otherwise.
      if (records.length > MAX_RECORDS) return { kind: 'failed', reason: 'dns_failure' };
      return { kind: 'found', records: records.map(read) };
    } catch (error) {
      return failureOf((error as NodeJS.ErrnoException).code ?? '');
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
    }
  }

  return {
    txt: (domain, context) =>
      lookUp(
        context,
        (resolver) => resolver.resolveTxt(domain),
        (strings) => strings.join(''),
      ),
    caa: (domain, context) => lookUp(context, (resolver) => resolver.resolveCaa(domain), caaFrom),
  };
}

function failureOf(code: string): DnsAnswer<never> {
  if (ABSENT_CODES.has(code)) return { kind: 'absent' };
  return { kind: 'failed', reason: code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'dns_timeout' : 'dns_failure' };
}

/**
 * Node reports the value as a property named after the tag. A tag named `critical` or `type` overwrites those, and one
 * such as `__proto__` leaves no property. All are unknown tags, so they are reported as critical: fails closed.
 */
function caaFrom(raw: object): CaaRecord {
  const { critical, type, ...tags } = raw as { critical: unknown; type: unknown; [tag: string]: unknown };
  const [entry] = Object.entries(tags);
  if (typeof critical !== 'number' || type !== 'CAA' || !entry) return { flags: 128, tag: 'unreadable', value: '' };
  return { flags: critical, tag: entry[0], value: String(entry[1]) };
}
