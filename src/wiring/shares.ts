// What each process of a service gets of the limits that are configured for the whole.
import type { Config } from '../config/config.ts';
import type { Role } from './messages.ts';

/** How many processes may answer requests, so that each has a connection to the database and a place for a request. */
export function workersOf({ workers, database, maxRequests }: Config): number {
  const most = database.kind === 'postgresql' ? database.maxConnections - 1 : workers;
  return Math.min(workers, most, maxRequests);
}

export const fewerWorkers = ({ workers }: Config): string =>
  `RESEAL_DATABASE_CONNECTIONS or RESEAL_MAX_REQUESTS is too small for more than ${workers} workers`;

/**
 * Divides rather than shares: a request must not wait for another process to learn whether there is room. Connections to
 * the service are dealt out evenly, so the shares fill evenly.
 */
export function shareOf(config: Config, role: Role): Config {
  const { workers, database, maxRequests } = config;
  const share = Math.floor(maxRequests / workers);
  if (database.kind !== 'postgresql') return { ...config, maxRequests: share };
  const each = Math.floor(database.maxConnections / (workers + 1));
  // What does not divide evenly serves the requests' processes where it is enough for all of them.
  const spare = Math.floor((database.maxConnections - each * (workers + 1)) / workers);
  const maxConnections = role === 'http' ? each + spare : each;
  return { ...config, maxRequests: share, database: { ...database, maxConnections } };
}
