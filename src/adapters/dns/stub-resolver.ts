// Asks the resolvers of one perspective, fallbacks of each other, until one decides. A server that is silent, unreachable or
// refuses is followed by the next; SERVFAIL decides, because it is also how a validating resolver reports bogus records, and
// another that does not validate must not overrule it. Every attempt and every lookup is limited in time. A lookup that
// fails tells the name's fault from ours: see server.ts.
import { Resolver } from 'node:dns/promises';
import type { FailedLookup } from '../../domain/validation/dns.ts';
import type { ExtendedError } from '../../domain/validation/extended-error.ts';
import { attempt, type SILENT } from './attempt.ts';
import type { Outcome, Settle } from './exchange.ts';
import type { Answered, Question } from './message.ts';
import { type OnReachability, type Server, serversAt } from './server.ts';

interface ResolverLimits {
  readonly lookupMs: number;
  /** For one question to one server, at most. Then the next is asked, and the first again after the last. */
  readonly attemptMs: number;
}

export const DEFAULT_LIMITS: ResolverLimits = { lookupMs: 4_000, attemptMs: 1_500 };

interface Asking {
  readonly question: Question;
  readonly signal: AbortSignal;
}

type Settled = Settle<Answered | FailedLookup>;

interface StubResolver {
  /** Calls `settle` once. Never throws. */
  resolve(asking: Asking, settle: Settled): void;
  /** Whether one of the servers answers at all. Asks each of them. */
  isReachable(): Promise<boolean>;
}

const REREAD_MS = 30_000;
const TIMED_OUT: FailedLookup = { kind: 'failed', reason: 'dns_timeout' };
const FAILED: FailedLookup = { kind: 'failed', reason: 'dns_failure' };
const UNREACHABLE: FailedLookup = { kind: 'failed', reason: 'resolver_unreachable' };

/** Uses the system's resolvers if `addresses` is empty. */
export function stubResolver(
  addresses: readonly string[],
  limits: ResolverLimits,
  onReachability: OnReachability,
): StubResolver {
  const configured = serversAt(addresses, onReachability);
  const servers = addresses.length > 0 ? () => configured : systemServers(onReachability);
  return {
    resolve: (asking, settle) => resolve(asking, servers(), limits, settle),
    isReachable: () => someReachable(servers(), performance.now(), limits),
  };
}

/** Reads them again from time to time: the machine may have moved to another network. */
function systemServers(onReachability: OnReachability): () => readonly Server[] {
  let known = '';
  let servers: readonly Server[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - readAt < REREAD_MS) return servers;
    readAt = now;
    const addresses = new Resolver().getServers();
    if (addresses.join() !== known) {
      for (const { address } of servers) onReachability(address, true);
      servers = serversAt(addresses, onReachability);
    }
    known = addresses.join();
    return servers;
  };
}

function resolve(
  { question, signal }: Asking,
  servers: readonly Server[],
  limits: ResolverLimits,
  settle: Settled,
): void {
  const begun = performance.now();
  const endsAt = begun + limits.lookupMs;
  // Leaves time to ask every server twice: the first question may be what makes a slow name's answer cached.
  const mostMs = Math.min(limits.attemptMs, limits.lookupMs / (2 * servers.length + 1));
  const left = () => Math.max(0, Math.min(mostMs, endsAt - performance.now()));
  let candidates = reachableFirst(servers, limits);
  let silent: Server[] = [];
  let turn = 0;

  function askNext(): void {
    if (turn === candidates.length) [candidates, silent, turn] = [silent, [], 0];
    const server = candidates[turn];
    turn += 1;
    const limitMs = left();
    if (!server) fail(FAILED);
    else if (limitMs === 0) fail(TIMED_OUT);
    else {
      attempt(server.udp, question, { limitMs, signal }, (outcome) => {
        if (outcome.kind !== 'odd' || signal.aborted) decide(server, outcome);
        else attempt(server.tcp, question, { limitMs: left(), signal }, (again) => decide(server, again));
      });
    }
  }

  function decide(server: Server, outcome: Outcome | typeof SILENT): void {
    if (signal.aborted) settle(TIMED_OUT);
    else if (outcome.kind === 'answer' || outcome.kind === 'servfail') {
      server.noteAnswer();
      settle(outcome.kind === 'answer' ? outcome : servfail(outcome.extended));
    } else {
      // Begun now, so that the verdict is there when the lookup ends.
      void server.isReachable(begun, limits.attemptMs);
      if (outcome.kind === 'silent') silent.push(server);
      askNext();
    }
  }

  function fail(outcome: FailedLookup): void {
    void someReachable(servers, begun, limits).then((isReachable) => settle(isReachable ? outcome : UNREACHABLE));
  }

  askNext();
}

const servfail = (extended: ExtendedError | undefined): FailedLookup => ({
  ...{ kind: 'failed', reason: 'dns_servfail' },
  ...(extended && { extended }),
});

async function someReachable(
  servers: readonly Server[],
  since: number,
  { attemptMs }: ResolverLimits,
): Promise<boolean> {
  const found = await Promise.all(servers.map((server) => server.isReachable(since, attemptMs)));
  return found.includes(true);
}

/** One that is down is asked last, so that it delays no lookup. Never skipped: the others may be no better. */
function reachableFirst(servers: readonly Server[], { attemptMs }: ResolverLimits): readonly Server[] {
  const down = servers.filter(({ isDown }) => isDown);
  if (down.length === 0) return servers;
  for (const server of down) void server.isReachable(Number.POSITIVE_INFINITY, attemptMs);
  return [...servers.filter(({ isDown }) => !isDown), ...down];
}
