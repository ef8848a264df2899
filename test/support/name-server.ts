// The DNS that an app of a test asks unless the test says otherwise: a real name server on loopback that knows no name at
// all, so that CAA stands in nobody's way. One for all test files, or for a file that is run by itself.
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';

/** Where before-all.ts has left the address of one. */
export const NAME_SERVER = 'TEST_NAME_SERVER';

let own: Promise<DnsServer> | undefined;

export async function nameServer(): Promise<string> {
  const given = process.env[NAME_SERVER];
  if (given) return given;
  own ??= startDnsServer({ host: '127.0.0.1', port: 0 }).then((server) => {
    // It has no end of its own, and must not keep the test from ending.
    server.unref();
    return server;
  });
  return `127.0.0.1:${(await own).port}`;
}
