// The default DNS of test apps: a real name server on loopback without any records, so that CAA permits everything.
// Shared by all test files; a file that is run alone starts its own.
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';

/** Environment variable: the address of the server that before-all.ts started. */
export const NAME_SERVER = 'TEST_NAME_SERVER';

let own: Promise<DnsServer> | undefined;

export async function nameServer(): Promise<string> {
  const given = process.env[NAME_SERVER];
  if (given) return given;
  own ??= startDnsServer({ host: '127.0.0.1', port: 0 }).then((server) => {
    // Never closed, so it must not keep the test process alive.
    server.unref();
    return server;
  });
  return `127.0.0.1:${(await own).port}`;
}
