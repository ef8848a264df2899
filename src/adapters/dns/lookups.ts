// TXT and CAA records as c-ares sees them: no hosts file, no search domains, and a bound of our own on every question,
// because the resolver's own overruns. A question that was not answered is told apart from a record that is not there.
import { Resolver } from 'node:dns/promises';
import type { Asking, CaaRecord, DnsAnswer, DnsLookups } from '../../domain/validation/dns.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';

const TRY = { timeout: 1_500, tries: 2 };
const LIMIT_MS = 4_000;
/** A name too long to be asked for, with our label in front, has no record either. */
const NOTHING_THERE: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME']);
/** As many as a message can hold is more than anybody should look at. */
const MAX_RECORDS = 100;

/** Each question is a socket. */
const AT_ONCE = 256;
const turnFor = fairSemaphore(AT_ONCE);

/** Those of the system, if `servers` is empty. */
export function dnsLookups(servers: readonly string[]): DnsLookups {
  // One for each check: it asks from a port of its own, so that nobody can guess where to send a forged answer, and what
  // is given up takes nothing else with it. To make one for each question would cost more than asking it.
  const resolvers = new WeakMap<AbortSignal, Resolver>();

  function resolverFor(check: AbortSignal): Resolver {
    const known = resolvers.get(check);
    if (known) return known;
    const resolver = new Resolver(TRY);
    if (servers.length > 0) resolver.setServers(servers);
    resolvers.set(check, resolver);
    return resolver;
  }

  async function ask<Raw, Record>(
    { accountId, signal }: Asking,
    question: (resolver: Resolver) => Promise<Raw[]>,
    read: (raw: Raw) => Record,
  ): Promise<DnsAnswer<Record>> {
    using _turn = await turnFor(accountId);
    // What nobody waits for any more is not asked.
    if (signal.aborted) return { kind: 'failed', reason: 'dns_timeout' };
    const resolver = resolverFor(signal);
    const cancel = () => resolver.cancel();
    const timer = setTimeout(cancel, LIMIT_MS);
    signal.addEventListener('abort', cancel);
    try {
      const records = await question(resolver);
      if (records.length === 0) return { kind: 'absent' };
      // To look at some of them would be to guess what the others say.
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
    txt: (domain, asking) =>
      ask(
        asking,
        (resolver) => resolver.resolveTxt(domain),
        (strings) => strings.join(''),
      ),
    caa: (domain, asking) => ask(asking, (resolver) => resolver.resolveCaa(domain), caaFrom),
  };
}

function failureOf(code: string): DnsAnswer<never> {
  if (NOTHING_THERE.has(code)) return { kind: 'absent' };
  return { kind: 'failed', reason: code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'dns_timeout' : 'dns_failure' };
}

/**
 * Node names a member after the tag. A tag that is called like one of the two members it has anyway takes their place,
 * and one it cannot set at all leaves none: all of these are tags nobody knows, so they are told as critical.
 */
function caaFrom(raw: object): CaaRecord {
  const { critical, type, ...tags } = raw as { critical: unknown; type: unknown; [tag: string]: unknown };
  const [entry] = Object.entries(tags);
  if (typeof critical !== 'number' || type !== 'CAA' || !entry) return { flags: 128, tag: 'unreadable', value: '' };
  return { flags: critical, tag: entry[0], value: String(entry[1]) };
}
