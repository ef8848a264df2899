// The addresses of a name, asked once. The resolver is c-ares: it knows no hosts file, no search domain and no thread
// pool. What the addresses mean is decided elsewhere; whoever connects must use these and never ask again.
import { Resolver } from 'node:dns/promises';
import { type Address, parseAddress } from '../../domain/egress/addresses.ts';
import type { FailureReason } from '../../domain/egress/outbound.ts';
import type { Attempt } from './attempt.ts';
import { Failure, failureOf } from './failure.ts';

/** One lost datagram must fit into the time there is; the resolver itself doubles the wait with each try. */
const TRY = { timeout: 1_000, tries: 2 };

/** One family without an address is usual, and a name that no query can be made of has none either. */
const NOTHING_THERE: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME']);

export interface Resolved {
  readonly addresses: readonly Address[];
  /** Of a family that gave no answer. The other may have, and its addresses are worth a look all the same. */
  readonly failure: FailureReason | null;
}

export async function resolveName(
  host: string,
  servers: readonly string[],
  limitMs: number,
  attempt: Attempt,
): Promise<Resolved> {
  const resolver = new Resolver(TRY);
  if (servers.length > 0) resolver.setServers(servers);
  const ask = (family: () => Promise<string[]>): Promise<Resolved> =>
    attempt.within(limitMs, family).then(answered, failed);
  try {
    // IPv4 comes first: where a machine has only one of the two, it is nearly always this one.
    const families = await Promise.all([ask(() => resolver.resolve4(host)), ask(() => resolver.resolve6(host))]);
    return {
      addresses: families.flatMap(({ addresses }) => addresses),
      failure: families.find(({ failure }) => failure)?.failure ?? null,
    };
  } finally {
    // Its own time-out overruns, and a query left alone would keep the process alive.
    resolver.cancel();
  }
}

function answered(texts: readonly string[]): Resolved {
  const addresses = texts.map(parseAddress).filter((address) => address !== undefined);
  // What cannot be read cannot be judged either.
  return { addresses, failure: addresses.length === texts.length ? null : 'dns_failure' };
}

function failed(error: unknown): Resolved {
  if (NOTHING_THERE.has((error as NodeJS.ErrnoException).code ?? '')) return { addresses: [], failure: null };
  const { reason } = error instanceof Failure ? error : failureOf('resolve', error);
  return { addresses: [], failure: reason };
}
