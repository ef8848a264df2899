// The sandbox's servers for clients of ACME, on loopback: one takes what a client wants published, the other shows the
// certificates of tls-alpn-01. Bounds connections, bodies and lifetimes.
import { once } from 'node:events';
import http from 'node:http';
import type net from 'node:net';
import tls from 'node:tls';
import type { ChallengeWorld } from './challenge-world.ts';

interface ListenAt {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

export interface ChallengeServer extends AsyncDisposable {
  readonly port: number;
  /** Closes immediately, without waiting for open requests. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 64 * 1024;
const MAX_CONNECTIONS = 64;
const MAX_CONNECTION_MS = 10_000;
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8 * 1024,
};
/** Pages of other origins can send requests to loopback, but neither without Origin nor under this host. */
const OUR_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/;

/** Takes `POST /set-txt` and so on, as pebble-challtestsrv does. */
export async function startChallengeServer({ host, port }: ListenAt, world: ChallengeWorld): Promise<ChallengeServer> {
  const server = http.createServer(LIMITS, async (request, response) => {
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
      if (!(error instanceof RangeError)) throw error;
      answer(400, `${error.message}\n`);
    }
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = 1;
  server.on('connection', limitLifetime);
  return await listening(server, { host, port }, () => server.closeAllConnections());
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
  { host, port }: ListenAt,
  world: ChallengeWorld,
  makeCertificate: MakeAlpnCertificate,
): Promise<ChallengeServer> {
  const sockets = new Set<net.Socket>();
  const server = tls.createServer({
    ALPNProtocols: ['acme-tls/1'],
    minVersion: 'TLSv1.2',
    SNICallback(name, done) {
      const published = world.alpnAt(name);
      if (!published) return done(new Error('nothing is published for this name'));
      done(null, tls.createSecureContext(makeCertificate(published.host, published.digest)));
    },
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('tlsClientError', () => {});
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {});
    socket.end();
  });
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    limitLifetime(socket);
  });
  return await listening(server, { host, port }, () => {
    for (const socket of sockets) socket.destroy();
  });
}

function limitLifetime(socket: net.Socket): void {
  const lifetime = setTimeout(() => socket.destroy(), MAX_CONNECTION_MS);
  socket.on('error', () => {});
  socket.once('close', () => clearTimeout(lifetime));
}

async function listening(server: net.Server, { host, port }: ListenAt, closeAll: () => void): Promise<ChallengeServer> {
  server.listen(port, host);
  await once(server, 'listening');
  async function close(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    closeAll();
    await closed;
  }
  return { port: (server.address() as net.AddressInfo).port, close, [Symbol.asyncDispose]: close };
}
