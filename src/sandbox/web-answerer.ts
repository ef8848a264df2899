// The sandbox's outside world for validation over HTTP: every host's web server at once, on loopback. It answers with
// the text that was set for a host and a path, and with 404 to everything else. Whatever reaches it, it holds a bounded
// number of connections, each for one request and a bounded time.
import { once } from 'node:events';
import http from 'node:http';
import type net from 'node:net';

export interface WebAnswererOptions {
  readonly host: string;
  /** 0 is any that is free. */
  readonly port: number;
  /** By the address `http://host/path`: lower case, no port, no query. Must not throw. */
  readonly textAt: (url: string) => string | undefined;
}

export interface WebAnswerer extends AsyncDisposable {
  readonly port: number;
  /** At once, whatever is under way. */
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 64;
const MAX_LIFE_MS = 10_000;
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8 * 1024,
};
const NOTHING = 'Nothing is set here. See what is: reseal sandbox http list\n';

export async function startWebAnswerer({ host, port, textAt }: WebAnswererOptions): Promise<WebAnswerer> {
  const server = http.createServer(LIMITS, (request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const text = isRead ? textAt(addressOf(request)) : undefined;
    const body = Buffer.from(text ?? NOTHING);
    response.writeHead(text === undefined ? 404 : 200, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': body.length,
      Connection: 'close',
    });
    response.end(body);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = 1;
  server.on('connection', (socket) => {
    const life = setTimeout(() => socket.destroy(), MAX_LIFE_MS);
    socket.on('error', () => {});
    socket.once('close', () => clearTimeout(life));
  });
  server.listen(port, host);
  await once(server, 'listening');

  async function close(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
  return { port: (server.address() as net.AddressInfo).port, close, [Symbol.asyncDispose]: close };
}

/** The port is this server's own, or the one that its asker believes in: it says nothing. Neither does a query. */
function addressOf({ headers, url = '' }: http.IncomingMessage): string {
  const name = (headers.host ?? '').toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
  return `http://${name}${url.replace(/\?.*$/s, '')}`;
}
