// TXT and CAA lookups for domain validation: no hosts file, no search domains, no cache. Distinguishes a failed lookup from
// an absent record, and shares lookups out fairly between accounts.
import type { CaaRecord, DnsAnswer, DnsLookups, FailedLookup, LookupContext } from '../../domain/validation/dns.ts';
import { FairPermits } from '../../kernel/concurrency.ts';
import type { Settle } from './exchange.ts';
import { type Answered, decodeCaa, decodeTxt, isName, MAX_NAME_LENGTH, type Question } from './message.ts';
import type { OnReachability } from './server.ts';
import { DEFAULT_LIMITS, stubResolver } from './stub-resolver.ts';

/** A DNS message can hold more, but no legitimate name needs them. */
const MAX_RECORDS = 100;
const FAILED = { kind: 'failed', reason: 'dns_failure' } as const;
const TIMED_OUT = { kind: 'failed', reason: 'dns_timeout' } as const;

/** Each lookup may hold a TCP connection. */
const LOOKUPS_AT_ONCE = 256;
const permits = new FairPermits(LOOKUPS_AT_ONCE);

/** Uses the system's resolvers if `servers` is empty. */
export function dnsLookups(
  servers: readonly string[],
  limits = DEFAULT_LIMITS,
  onReachability: OnReachability = () => {},
): DnsLookups {
  const { resolve, isReachable } = stubResolver(servers, limits, onReachability);

  function lookUp<Record>(
    question: Question,
    { accountId, signal }: LookupContext,
    decode: (data: Buffer) => Record,
    settle: Settle<DnsAnswer<Record>>,
  ): void {
    const { length } = question.name;
    if (length > MAX_NAME_LENGTH || !isName(question.name)) {
      // A name that is too long with our label in front cannot have a record.
      settle(length > MAX_NAME_LENGTH ? { kind: 'absent' } : FAILED);
      return;
    }
    permits.take(accountId, () => {
      const end = (answer: DnsAnswer<Record>) => {
        permits.release(accountId);
        settle(answer);
      };
      // The deadline may have passed in the queue.
      if (signal.aborted) end(TIMED_OUT);
      else resolve({ question, signal }, (resolution) => end(answerOf(resolution, decode)));
    });
  }

  return {
    txt: (name, context) => new Promise((settle) => lookUp({ name, type: 'TXT' }, context, decodeTxt, settle)),
    caa: (names, context) =>
      new Promise((resolve) => {
        const answers: DnsAnswer<CaaRecord>[] = [];
        let left = names.length;
        for (const [index, name] of names.entries()) {
          lookUp({ name, type: 'CAA' }, context, decodeCaa, (answer) => {
            answers[index] = answer;
            left -= 1;
            if (left === 0) resolve(answers);
          });
        }
        if (names.length === 0) resolve(answers);
      }),
    isReachable,
  };
}

function answerOf<Record>(resolution: Answered | FailedLookup, decode: (data: Buffer) => Record): DnsAnswer<Record> {
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
