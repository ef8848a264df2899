// TXT and CAA records as c-ares sees them: no hosts file, no search domains, and a bound of our own on every question,
// because the resolver's own overruns. A question that was not answered is told apart from a record that is not there.
import { Resolver } from 'node:dns/promises';
import type { CaaRecord, DnsAnswer, DnsLookups } from '../domain/dns.ts';

const TRY = { timeout: 1_500, tries: 2 };
const LIMIT_MS = 4_000;
/** A name too long to be asked for, with our label in front, has no record either. */
const NOTHING_THERE: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME']);
/** As many as a message can hold is more than anybody should look at. */
const MAX_RECORDS = 100;

/** Each question is a socket: so many at once in the whole process, and the others wait for their turn. */
const AT_ONCE = 256;
let free = AT_ONCE;
const queue: (() => void)[] = [];

async function inTurn<T>(question: () => Promise<T>): Promise<T> {
  if (free > 0) free -= 1;
  else await new Promise<void>((turn) => queue.push(turn));
  try {
    return await question();
  } finally {
    const next = queue.shift();
    if (next) next();
    else free += 1;
  }
}

/** Those of the system, if `servers` is empty. */
export function dnsLookups(servers: readonly string[]): DnsLookups {
  const ask = <Raw, Record>(
    question: (resolver: Resolver) => Promise<Raw[]>,
    read: (raw: Raw) => Record,
  ): Promise<DnsAnswer<Record>> => inTurn(() => askNow(question, read));

  async function askNow<Raw, Record>(
    question: (resolver: Resolver) => Promise<Raw[]>,
    read: (raw: Raw) => Record,
  ): Promise<DnsAnswer<Record>> {
    // A resolver of its own for each question: one that is given up must not take others with it.
    const resolver = new Resolver(TRY);
    if (servers.length > 0) resolver.setServers(servers);
    const timer = setTimeout(() => resolver.cancel(), LIMIT_MS);
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
    }
  }

  return {
    txt: (domain) =>
      ask(
        (resolver) => resolver.resolveTxt(domain),
        (strings) => strings.join(''),
      ),
    caa: (domain) => ask((resolver) => resolver.resolveCaa(domain), caaFrom),
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
