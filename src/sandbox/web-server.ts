// The sandbox's web server for file validation, on loopback, for every host. Serves the text set for a host and path,
// else 404. Bounds the number of connections, and gives each one request and a limited lifetime.
import { once } from 'node:events';
import http from 'node:http';
import type net from 'node:net';

interface WebServerOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Takes `http://host/path`, with the host in lower case, without port and query. Must not throw. */
  readonly textAt: (url: string) => string | undefined;
}

interface WebServer extends AsyncDisposable {
  readonly port: number;
  /** Closes immediately, without waiting for open requests. */
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 64;
const MAX_CONNECTION_MS = 10_000;
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8 * 1024,
};
const NOT_FOUND = 'Nothing is set here. See what is: reseal sandbox http list\n';

export async function startWebServer({ host, port, textAt }: WebServerOptions): Promise<WebServer> {
  const server = http.createServer(LIMITS, (request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const text = isRead ? textAt(urlOf(request)) : undefined;
    const body = Buffer.from(text ?? NOT_FOUND);
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
    const lifetime = setTimeout(() => socket.destroy(), MAX_CONNECTION_MS);
    socket.on('error', () => {});
    socket.once('close', () => clearTimeout(lifetime));
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

/** Drops port and query, which do not identify a file here. */
function urlOf({ headers, url = '' }: http.IncomingMessage): string {
  const name = (headers.host ?? '').toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
  return `http://${name}${url.replace(/\?.*$/s, '')}`;
}
