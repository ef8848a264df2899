// Asks the resolvers of one perspective, fallbacks of each other, until one decides. A server that is silent, unreachable or
// refuses is followed by the next; SERVFAIL decides, because it is also how a validating resolver reports bogus records, and
// another that does not validate must not overrule it. Every attempt and every lookup is limited in time.
import { Resolver } from 'node:dns/promises';
import type { DnsFailure } from '../../domain/validation/dns.ts';
import { type Ask, type Outcome, parseServer, type ServerAddress } from './exchange.ts';
import type { Question } from './message.ts';
import { tcpExchange } from './tcp.ts';
import { udpPool } from './udp.ts';

interface ResolverLimits {
  readonly lookupMs: number;
  /** For one question to one server, at most. Then the next is asked, and the first again after the last. */
  readonly attemptMs: number;
  /** How long a server that keeps failing is asked after the others. */
  readonly avoidMs: number;
}

export const DEFAULT_LIMITS: ResolverLimits = { lookupMs: 4_000, attemptMs: 1_500, avoidMs: 30_000 };

type Resolution =
  | { readonly kind: 'answer'; readonly records: readonly Buffer[] }
  | { readonly kind: 'failed'; readonly reason: DnsFailure };

type Resolve = (question: Question, signal: AbortSignal) => Promise<Resolution>;

/** Consecutive failures after which a server is asked last. Never skipped: slow names must not take it from the others. */
const FAILURES_TO_AVOID = 3;
const REREAD_MS = 30_000;
const SILENT = { kind: 'silent' } as const;
const TIMED_OUT: Resolution = { kind: 'failed', reason: 'dns_timeout' };
const FAILED: Resolution = { kind: 'failed', reason: 'dns_failure' };

class Server {
  readonly udp: Ask;
  readonly tcp: Ask;
  #failures = 0;
  #avoidedUntil = 0;

  constructor(address: ServerAddress) {
    this.udp = udpPool(address);
    this.tcp = tcpExchange(address);
  }

  isAvoided(now: number): boolean {
    return now < this.#avoidedUntil;
  }

  note(hasFailed: boolean, avoidMs: number): void {
    this.#failures = hasFailed ? this.#failures + 1 : 0;
    this.#avoidedUntil = this.#failures >= FAILURES_TO_AVOID ? performance.now() + avoidMs : 0;
  }
}

/** Uses the system's resolvers if `addresses` is empty. */
export function stubResolver(addresses: readonly string[], limits: ResolverLimits): Resolve {
  const servers = addresses.length > 0 ? () => configured : systemServers();
  const configured = serversAt(addresses);
  return (question, signal) => resolve(question, servers(), limits, signal);
}

const serversAt = (addresses: readonly string[]): readonly Server[] =>
  addresses
    .map(parseServer)
    .filter((address) => address !== undefined)
    .map((address) => new Server(address));

/** Reads them again from time to time: the machine may have moved to another network. */
function systemServers(): () => readonly Server[] {
  let known = '';
  let servers: readonly Server[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - readAt < REREAD_MS) return servers;
    readAt = now;
    const addresses = new Resolver().getServers();
    if (addresses.join() !== known) servers = serversAt(addresses);
    known = addresses.join();
    return servers;
  };
}

async function resolve(
  question: Question,
  servers: readonly Server[],
  { lookupMs, attemptMs, avoidMs }: ResolverLimits,
  signal: AbortSignal,
): Promise<Resolution> {
  const endsAt = performance.now() + lookupMs;
  // Leaves time for every server, and for the first one again.
  const mostMs = Math.min(attemptMs, lookupMs / (servers.length + 1));
  let candidates = healthiestFirst(servers);
  while (candidates.length > 0) {
    const silent: Server[] = [];
    for (const server of candidates) {
      const limit = () => Math.min(mostMs, endsAt - performance.now());
      if (limit() <= 0) return TIMED_OUT;
      let outcome = await attempt(server.udp, question, limit(), signal);
      if (outcome.kind === 'odd' && !signal.aborted) outcome = await attempt(server.tcp, question, limit(), signal);
      if (signal.aborted) return TIMED_OUT;
      const isDecisive = outcome.kind === 'answer' || outcome.kind === 'servfail';
      server.note(!isDecisive, avoidMs);
      if (outcome.kind === 'answer') return outcome;
      if (outcome.kind === 'servfail') return FAILED;
      if (outcome.kind === 'silent') silent.push(server);
    }
    candidates = silent;
  }
  return FAILED;
}

function healthiestFirst(servers: readonly Server[]): readonly Server[] {
  const now = performance.now();
  if (!servers.some((server) => server.isAvoided(now))) return servers;
  return servers.toSorted((one, other) => Number(one.isAvoided(now)) - Number(other.isAvoided(now)));
}

/** The timer also keeps the process running, which sockets do not. */
async function attempt(
  ask: Ask,
  question: Question,
  limitMs: number,
  signal: AbortSignal,
): Promise<Outcome | typeof SILENT> {
  const { promise, resolve: settle } = Promise.withResolvers<Outcome | typeof SILENT>();
  const giveUp = () => settle(SILENT);
  const timer = setTimeout(giveUp, limitMs);
  signal.addEventListener('abort', giveUp);
  const withdraw = ask(question, settle);
  try {
    return await promise;
  } finally {
    withdraw();
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
  }
}
