// Does a resolver answer? What it answers does not matter: "no such name" is an answer too.
import { Resolver } from 'node:dns/promises';
import type { Finding } from '../../kernel/problem.ts';

const WAIT_MS = 2_000;
const NAME = 'example.com';
const ANSWERED = new Set(['ENOTFOUND', 'ENODATA']);

export async function checkResolver(servers: readonly string[]): Promise<Finding> {
  const check = 'resolver';
  const resolver = new Resolver({ timeout: WAIT_MS, tries: 1 });
  if (servers.length > 0) resolver.setServers(servers);
  const asked = resolver.getServers().join(', ') || 'none';
  // The resolver's own time-out overruns when it has several servers to try.
  const deadline = setTimeout(() => resolver.cancel(), 2 * WAIT_MS);
  try {
    await resolver.resolve4(NAME);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!ANSWERED.has(code)) {
      return {
        check,
        state: 'warning',
        text: `no answer from ${asked} (${code})`,
        remedy:
          'Domain checks and callbacks to names will fail. Set RESEAL_DNS_SERVERS to resolvers that this machine reaches.',
      };
    }
  } finally {
    clearTimeout(deadline);
  }
  return { check, state: 'ok', text: `${asked} answers` };
}
