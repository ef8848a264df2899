// The sandbox's servers for clients of ACME, on loopback: one takes what a client wants published, the other shows the
// certificates of tls-alpn-01. Bounds connections, bodies and lifetimes.
import http from 'node:http';
import tls from 'node:tls';
import type { ChallengeWorld } from './challenge-world.ts';
import { HTTP_LIMITS, type ListenAt, type LoopbackServer, listenBounded } from './loopback-server.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** Pages of other origins can send requests to loopback, but neither without Origin nor under this host. */
const OUR_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/;

/** Takes `POST /set-txt` and so on, as pebble-challtestsrv does. */
export async function startChallengeServer(at: ListenAt, world: ChallengeWorld): Promise<LoopbackServer> {
  const server = http.createServer(HTTP_LIMITS, async (request, response) => {
    const answer = (status: number, text: string) => {
      response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' });
      response.end(text);
    };
    const { method, headers, url = '' } = request;
    const operation = world.operations[url.slice(1)];
    if (!Object.hasOwn(world.operations, url.slice(1)) || !operation)
      return answer(404, `There is ${Object.keys(world.operations).join(', ')}.\n`);
    if (method !== 'POST') return answer(405, 'Send POST with a JSON object.\n');
    if (headers.origin !== undefined || !OUR_HOST.test(headers.host ?? '')) return answer(403, 'Not for web pages.\n');
    const body = await bodyOf(request);
    try {
      if (!body) throw new RangeError('send a JSON object');
      operation(body);
      answer(200, '');
    } catch (error) {
      // Of any kind: a rejection here would end the sandbox.
      answer(error instanceof RangeError ? 400 : 500, `${(error as Error).message}\n`);
    }
  });
  server.maxRequestsPerSocket = 1;
  return await listenBounded(server, at);
}

/** Returns undefined unless it is a JSON object of bounded size. */
async function bodyOf(request: http.IncomingMessage): Promise<Readonly<Record<string, unknown>> | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request) {
      length += (chunk as Buffer).length;
      if (length > MAX_BODY_BYTES) return undefined;
      chunks.push(chunk as Buffer);
    }
    const read: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    return typeof read === 'object' && read !== null ? (read as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** PEM, for the name and digest. */
export type MakeAlpnCertificate = (host: string, digest: Uint8Array) => { readonly cert: string; readonly key: string };

export async function startAlpnServer(
  at: ListenAt,
  world: ChallengeWorld,
  makeCertificate: MakeAlpnCertificate,
): Promise<LoopbackServer> {
  const server = tls.createServer({
    ALPNProtocols: ['acme-tls/1'],
    minVersion: 'TLSv1.2',
    SNICallback(name, done) {
      const published = world.alpnAt(name);
      if (!published) return done(new Error('nothing is published for this name'));
      try {
        done(null, tls.createSecureContext(makeCertificate(published.host, published.digest)));
      } catch (error) {
        // A host that no certificate can name.
        done(error as Error);
      }
    },
  });
  server.on('tlsClientError', () => {});
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {});
    socket.end();
  });
  return await listenBounded(server, at);
}
