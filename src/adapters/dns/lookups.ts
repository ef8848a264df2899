// TXT and CAA lookups for domain validation: no hosts file, no search domains, no cache. Distinguishes a failed lookup from
// an absent record, and shares lookups out fairly between accounts.
import type { DnsAnswer, DnsLookups, LookupContext } from '../../domain/validation/dns.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';
import { decodeCaa, decodeTxt, isName, MAX_NAME_LENGTH, type Question } from './message.ts';
import type { OnReachability } from './server.ts';
import { DEFAULT_LIMITS, stubResolver } from './stub-resolver.ts';

/** A DNS message can hold more, but no legitimate name needs them. */
const MAX_RECORDS = 100;
const FAILED = { kind: 'failed', reason: 'dns_failure' } as const;

/** Each lookup may hold a TCP connection. */
const LOOKUPS_AT_ONCE = 256;
const acquireLookup = fairSemaphore(LOOKUPS_AT_ONCE);

/** Uses the system's resolvers if `servers` is empty. */
export function dnsLookups(
  servers: readonly string[],
  limits = DEFAULT_LIMITS,
  onReachability: OnReachability = () => {},
): DnsLookups {
  const { resolve, isReachable } = stubResolver(servers, limits, onReachability);

  async function lookUp<Record>(
    question: Question,
    { accountId, signal }: LookupContext,
    decode: (data: Buffer) => Record,
  ): Promise<DnsAnswer<Record>> {
    // A name that is too long with our label in front cannot have a record.
    if (question.name.length > MAX_NAME_LENGTH) return { kind: 'absent' };
    if (!isName(question.name)) return FAILED;
    using _slot = await acquireLookup(accountId);
    // The deadline may have passed in the queue.
    if (signal.aborted) return { kind: 'failed', reason: 'dns_timeout' };
    const resolution = await resolve(question, signal);
    if (resolution.kind === 'failed') return resolution;
    const { records, ttl, alias } = resolution;
    const facts = { ...(ttl > 0 && { ttl }), ...(alias !== undefined && { alias }) };
    if (records.length === 0) return { kind: 'absent', ...facts };
    // Fails closed: records beyond the limit, or unreadable ones, might say otherwise.
    if (records.length > MAX_RECORDS) return FAILED;
    try {
      return { kind: 'found', records: records.map(decode), ...facts };
    } catch {
      return FAILED;
    }
  }

  return {
    txt: (name, context) => lookUp({ name, type: 'TXT' }, context, decodeTxt),
    caa: (name, context) => lookUp({ name, type: 'CAA' }, context, decodeCaa),
    isReachable,
  };
}
