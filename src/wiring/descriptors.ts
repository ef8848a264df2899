// How many connections of callers a process may have, from the descriptors that the system allows it.
import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';

/** Idle keep-alive connections cost a socket each; concurrent requests are limited separately. */
const CONNECTIONS_PER_REQUEST = 16;
/** Where the limit cannot be read: what Linux and POSIX systems allow at least by default. */
const USUAL_LIMIT = 1_024;
/** Standard streams, event loops, the channel to the supervisor, the listener, sources, threads. */
const RUNTIME = 64;
/** Files of SQLite with their journals, and sockets of lookups and file checks in progress. */
const STORE_AND_DNS = 128;

/** Call at start: Node has raised the soft limit as far as it may by then. */
export function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? USUAL_LIMIT);
  } catch {
    return USUAL_LIMIT;
  }
}

/** Leaves descriptors for the store, DNS and callbacks, though never less than half to callers. */
export function maxConnectionsOf({ maxRequests, database, callbacks }: Config, limit: number): number {
  const { atOnce, testsAtOnce } = callbacks;
  const reserve =
    RUNTIME + STORE_AND_DNS + atOnce + testsAtOnce + (database.kind === 'postgresql' ? database.maxConnections : 0);
  return Math.floor(Math.min(maxRequests * CONNECTIONS_PER_REQUEST, Math.max(limit - reserve, limit / 2)));
}
