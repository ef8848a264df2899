// The default DNS of test apps: a real name server on loopback without any records, so that CAA permits everything.
// Shared by all test files; a file that is run alone starts its own.
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';

/** Environment variable: the address of the server that before-all.ts started. */
export const NAME_SERVER = 'TEST_NAME_SERVER';

/** Fails for the name by which a service proves that its resolvers validate. */
export async function startNameServer(): Promise<DnsServer> {
  const server = await startDnsServer({ host: '127.0.0.1', port: 0 });
  server.set('dnssec-failed.org', 'TXT', 'servfail');
  return server;
}

let own: Promise<DnsServer> | undefined;

export async function nameServer(): Promise<string> {
  const given = process.env[NAME_SERVER];
  if (given) return given;
  own ??= startNameServer().then((server) => {
    // Never closed, so it must not keep the test process alive.
    server.unref();
    return server;
  });
  return `127.0.0.1:${(await own).port}`;
}
