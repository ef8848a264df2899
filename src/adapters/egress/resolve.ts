// Resolves a name once for a call. The resolver is c-ares: no hosts file, no search domain, no thread pool. The connection must use
// these addresses and never resolve again (DNS rebinding).
import { Resolver } from 'node:dns/promises';
import { type Address, parseAddress } from '../../domain/egress/addresses.ts';
import type { FailureReason } from '../../domain/egress/outbound.ts';
import type { CallScope } from './call-scope.ts';
import { Failure, failureOf } from './failure.ts';

/** Leaves time for one lost datagram; c-ares doubles the timeout with each try. */
const RESOLVER_OPTIONS = { timeout: 1_000, tries: 2 };

/** Not failures: many names have one address family only, and a name that is invalid in DNS has no addresses. */
const NO_ADDRESS_CODES: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME']);

export interface Resolved {
  readonly addresses: readonly Address[];
  /** Set if one family failed. The addresses of the other are still vetted. */
  readonly failure: FailureReason | null;
}

const NO_ANSWER: Resolved = { addresses: [], failure: 'dns_failure' };

type ResolveName = (host: string, scope: CallScope) => Promise<Resolved>;

interface Lookup {
  readonly resolver: Resolver;
  /** What each family has answered so far. IPv4 first: a machine with only one of the two nearly always has IPv4. */
  readonly answers: (Resolved | undefined)[];
  readonly ended: Promise<unknown>;
  callers: number;
}

/**
 * Calls that ask for a name at the same time share a lookup: deliveries to one receiver begin in bursts. A lookup with
 * an answer is not joined any more, so that no call uses an answer older than itself.
 */
export function nameResolver(servers: readonly string[], limitMs: number): ResolveName {
  const joinable = new Map<string, Lookup>();

  function begin(host: string): Lookup {
    const resolver = new Resolver(RESOLVER_OPTIONS);
    if (servers.length > 0) resolver.setServers(servers);
    const answers: (Resolved | undefined)[] = [undefined, undefined];
    const note = (index: number, answer: Resolved) => {
      answers[index] = answer;
      if (joinable.get(host) === lookup) joinable.delete(host);
    };
    const families = [resolver.resolve4(host), resolver.resolve6(host)].map((family, index) =>
      family.then(
        (texts) => note(index, fromAnswer(texts)),
        (error) => note(index, fromError(error)),
      ),
    );
    const lookup: Lookup = { resolver, answers, ended: Promise.all(families), callers: 0 };
    joinable.set(host, lookup);
    return lookup;
  }

  return async (host, scope) => {
    scope.check();
    const lookup = joinable.get(host) ?? begin(host);
    lookup.callers += 1;
    try {
      // What one family has answered counts, even if the other does not.
      const missing = await scope.within(limitMs, () => lookup.ended).then(() => NO_ANSWER, fromError);
      const families = lookup.answers.map((answer) => answer ?? missing);
      return {
        addresses: families.flatMap(({ addresses }) => addresses),
        failure: families.find(({ failure }) => failure)?.failure ?? null,
      };
    } finally {
      lookup.callers -= 1;
      if (lookup.callers === 0) {
        // A canceled lookup must not be joined in the turn before it rejects.
        if (joinable.get(host) === lookup) joinable.delete(host);
        // c-ares may exceed its own timeout, and a pending query would keep the process alive.
        lookup.resolver.cancel();
      }
    }
  };
}

function fromAnswer(texts: readonly string[]): Resolved {
  const addresses = texts.map(parseAddress).filter((address) => address !== undefined);
  // An address that cannot be parsed cannot be vetted.
  return { addresses, failure: addresses.length === texts.length ? null : 'dns_failure' };
}

function fromError(error: unknown): Resolved {
  if (NO_ADDRESS_CODES.has((error as NodeJS.ErrnoException).code ?? '')) return { addresses: [], failure: null };
  const { reason } = error instanceof Failure ? error : failureOf('resolve', error);
  return { addresses: [], failure: reason };
}
