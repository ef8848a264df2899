// The sandbox's web server for file validation, on loopback, for every host. Serves the text set for a host and path,
// else 404. Bounds the number of connections, and gives each one request and a limited lifetime.
import http from 'node:http';
import { HTTP_LIMITS, type ListenAt, type LoopbackServer, listenBounded } from './loopback-server.ts';

interface WebServerOptions extends ListenAt {
  /** Takes `http://host/path`, with the host in lower case, without port and query. Must not throw. */
  readonly textAt: (url: string) => string | undefined;
}

const NOT_FOUND = 'Nothing is set here. See what is: reseal sandbox http list\n';

export async function startWebServer({ textAt, ...at }: WebServerOptions): Promise<LoopbackServer> {
  const server = http.createServer(HTTP_LIMITS, (request, response) => {
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
  server.maxRequestsPerSocket = 1;
  return await listenBounded(server, at);
}

/** Drops port and query, which do not identify a file here. */
function urlOf({ headers, url = '' }: http.IncomingMessage): string {
  const name = (headers.host ?? '').toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
  return `http://${name}${url.replace(/\?.*$/s, '')}`;
}
