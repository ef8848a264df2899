// Checks that a DNS resolver answers. Any answer counts, NXDOMAIN included.
import { Resolver } from 'node:dns/promises';
import type { Diagnostic } from '../../kernel/problem.ts';

const WAIT_MS = 2_000;
const NAME = 'example.com';
const ANSWERED = new Set(['ENOTFOUND', 'ENODATA']);

export async function checkResolver(servers: readonly string[]): Promise<Diagnostic> {
  const check = 'resolver';
  const resolver = new Resolver({ timeout: WAIT_MS, tries: 1 });
  if (servers.length > 0) resolver.setServers(servers);
  const asked = resolver.getServers().join(', ') || 'none';
  // The resolver's own timeout applies per server, so several servers exceed it.
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
          'Domain validation and callbacks will fail. Set RESEAL_DNS_SERVERS to resolvers that this machine can reach.',
      };
    }
  } finally {
    clearTimeout(deadline);
  }
  return { check, state: 'ok', text: `${asked} answers` };
}
