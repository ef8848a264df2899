// Asks the resolvers of one perspective, fallbacks of each other, until one decides. A server that is silent, unreachable or
// refuses is followed by the next; SERVFAIL decides, because it is also how a validating resolver reports bogus records, and
// another that does not validate must not overrule it. Every attempt and every lookup is limited in time. A lookup that
// fails tells the name's fault from ours: see server.ts.
import { Resolver } from 'node:dns/promises';
import type { FailedLookup } from '../../domain/validation/dns.ts';
import type { ExtendedError } from '../../domain/validation/extended-error.ts';
import type { Answered, Question } from './message.ts';
import { attempt, type OnReachability, type Server, serversAt } from './server.ts';

interface ResolverLimits {
  readonly lookupMs: number;
  /** For one question to one server, at most. Then the next is asked, and the first again after the last. */
  readonly attemptMs: number;
}

export const DEFAULT_LIMITS: ResolverLimits = { lookupMs: 4_000, attemptMs: 1_500 };

interface StubResolver {
  resolve(question: Question, signal: AbortSignal): Promise<Answered | FailedLookup>;
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
    resolve: (question, signal) => resolve(question, servers(), limits, signal),
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

async function resolve(
  question: Question,
  servers: readonly Server[],
  limits: ResolverLimits,
  signal: AbortSignal,
): Promise<Answered | FailedLookup> {
  const begun = performance.now();
  const endsAt = begun + limits.lookupMs;
  // Leaves time to ask every server twice: the first question may be what makes a slow name's answer cached.
  const mostMs = Math.min(limits.attemptMs, limits.lookupMs / (2 * servers.length + 1));
  const failed = async (outcome: FailedLookup): Promise<FailedLookup> =>
    (await someReachable(servers, begun, limits)) ? outcome : UNREACHABLE;
  let candidates = reachableFirst(servers, limits);
  while (candidates.length > 0) {
    const silent: Server[] = [];
    for (const server of candidates) {
      const limit = () => Math.max(0, Math.min(mostMs, endsAt - performance.now()));
      if (limit() === 0) return await failed(TIMED_OUT);
      let outcome = await attempt(server.udp, question, limit(), signal);
      if (outcome.kind === 'odd' && !signal.aborted) outcome = await attempt(server.tcp, question, limit(), signal);
      if (signal.aborted) return TIMED_OUT;
      if (outcome.kind === 'answer' || outcome.kind === 'servfail') {
        server.noteAnswer();
        return outcome.kind === 'answer' ? outcome : servfail(outcome.extended);
      }
      // Begun now, so that the verdict is there when the lookup ends.
      void server.isReachable(begun, limits.attemptMs);
      if (outcome.kind === 'silent') silent.push(server);
    }
    candidates = silent;
  }
  return await failed(FAILED);
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
