// The listener: what happens to a connection before Fastify has a request. Every wait has a deadline, connections are bounded
// (connections.ts), and a message that two HTTP programs could read differently is refused, so that no proxy in front of this
// service can be made to disagree with it about where a request ends or for whom it is (request smuggling).
import {
  createServer,
  type IncomingMessage,
  METHODS,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NewId } from '../../domain/ids.ts';
import { type Localized, preferredLocale } from '../../kernel/locale.ts';
import { Connections } from './connections.ts';
import { errorResponse, TransportRefusal } from './reply.ts';
import type { RecordRequest } from './request-log.ts';

export const MAX_HEADER_BYTES = 16 * 1024;
/** Node looks for overdue connections this often, by default every 30 s. */
const CHECK_MS = 1_000;
const NODE_OPTIONS = {
  maxHeaderSize: MAX_HEADER_BYTES,
  // Also for the first byte, and for a TLS handshake.
  headersTimeout: 10_000,
  // Bodies have deadlines of their own (arrivals.ts).
  requestTimeout: 30_000,
  connectionsCheckingInterval: CHECK_MS,
  // Longer than the idle timeout of common load balancers (60 s), which would otherwise reuse a connection just closed.
  keepAliveTimeout: 72_000,
  // By default Node answers a missing Host header with a bare 400.
  requireHostHeader: false,
} as const satisfies ServerOptions;
/** Idle socket timeout. Longer than keep-alive, which it would otherwise preempt. */
const SOCKET_IDLE_MS = 90_000;

interface ListenerOptions {
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly maxConnections: number;
  readonly newId: NewId;
  readonly record: RecordRequest;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface Listener {
  readonly connections: Connections;
  /** Fastify's server factory. */
  readonly serverFactory: (handler: Handler) => ReturnType<typeof createServer>;
}

export function listener({ tls, maxConnections, newId, record }: ListenerOptions): Listener {
  const connections = new Connections(maxConnections);
  const refuse = refuser(newId, record);

  const serverFactory = (handler: Handler) => {
    const guarded = (request: IncomingMessage, response: ServerResponse): void => {
      const connection = connections.of(request.socket);
      if (!connection || connection.isRefused) return;
      const reason = faultIn(request);
      if (reason || connection.isFull) connection.isRefused = true;
      // An answer that is still due would come after this one, and be taken for it.
      if (reason && connection.pending === 0)
        refuse(request.socket, new TransportRefusal(400, 'invalid_parameters', reason), request);
      if (connection.isRefused) return;
      connection.pending += 1;
      response.on('close', () => connections.answered(connection));
      handler(request, response);
    };

    const server = tls
      ? https.createServer({ ...NODE_OPTIONS, ...tls, minVersion: 'TLSv1.2', handshakeTimeout: 10_000 }, guarded)
      : createServer(NODE_OPTIONS, guarded);
    server.setTimeout(SOCKET_IDLE_MS);
    trackConnections(server, connections);
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      const connection = connections.of(socket);
      // Nothing to answer: it never sent a byte, or it is gone, or its answer would be taken for one that is still due.
      const isSilent = (socket as Socket).bytesRead === 0;
      if (isSilent || error.code === 'ECONNRESET' || !socket.writable || (connection?.pending ?? 0) > 0) {
        socket.destroy();
        return;
      }
      const { status, ...reason } = PARSER_REFUSALS[error.code ?? ''] ?? NOT_HTTP;
      refuse(socket, new TransportRefusal(status, 'invalid_parameters', reason));
    });
    // By default Node closes a CONNECT without a response.
    server.on('connect', (request, socket) => {
      const allow = { allow: 'GET, HEAD, POST, PUT' };
      refuse(socket, new TransportRefusal(405, 'method_not_allowed', undefined, allow), request);
    });
    // By default Node answers an unknown Expect header with a bare 417. RFC 9110 allows ignoring it.
    server.on('checkExpectation', guarded);
    return server;
  };
  return { connections, serverFactory };
}

function trackConnections(server: ReturnType<Listener['serverFactory']>, connections: Connections): void {
  const shaking = new Map<string, ReturnType<Connections['opened']>>();
  const isTls = server instanceof https.Server;
  server.prependListener('connection', (socket: Socket) => {
    const connection = connections.opened(socket);
    if (!isTls) return;
    const peer = peerOf(socket);
    shaking.set(peer, connection);
    socket.once('close', () => shaking.delete(peer));
  });
  server.prependListener('secureConnection', (socket: Socket) => {
    const connection = shaking.get(peerOf(socket));
    if (connection) connections.secured(socket, connection);
  });
}

const peerOf = ({ localAddress, remoteAddress, remotePort }: Socket): string =>
  `${localAddress} ${remoteAddress} ${remotePort}`;

/** Node's parser also knows the methods of RTSP and, in this list, one of Icecast. */
const HTTP_METHODS: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== 'SOURCE'));

/** What makes a message ambiguous although Node's parser takes it; undefined if nothing does. */
function faultIn({ method = '', headers, rawHeaders, httpVersion }: IncomingMessage): Localized | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return FAULTS.version;
  if (!HTTP_METHODS.has(method)) return FAULTS.method;
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && (httpVersion === '1.0' || encoding.toLowerCase() !== 'chunked')) return FAULTS.encoding;
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  // Some proxies join what was sent twice.
  if (hosts > 1 || headers.host?.includes(',')) return FAULTS.hosts;
  return hosts === 0 && httpVersion === '1.1' ? FAULTS.noHost : undefined;
}

const FAULTS = {
  version: { en: 'Only HTTP/1.1 and HTTP/1.0 are spoken here.', zh: '仅支持 HTTP/1.1 和 HTTP/1.0。' },
  method: { en: 'This is not a method of HTTP.', zh: '不是 HTTP 的请求方法。' },
  encoding: {
    en: 'Transfer-Encoding may only be "chunked", and only in HTTP/1.1. Send Content-Length instead.',
    zh: 'Transfer-Encoding 只能是 chunked，且仅限 HTTP/1.1；请改用 Content-Length。',
  },
  hosts: { en: 'There is more than one Host header. Send one.', zh: 'Host 请求头多于一个，请只发送一个。' },
  noHost: { en: 'The Host header is missing.', zh: '缺少 Host 请求头。' },
} as const satisfies Record<string, Localized>;

const PARSER_REFUSALS: Readonly<Record<string, Localized & { status: number }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, en: 'The header block is larger than 16 KiB.', zh: '请求头超过 16 KiB。' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, en: 'The request took too long to arrive.', zh: '请求发送超时。' },
};
const NOT_HTTP = { status: 400, en: 'This is not a valid HTTP request.', zh: '不是有效的 HTTP 请求。' };

const NO_REQUEST = {
  ...{ account_id: null, key_id: null, order_id: null, certificate_id: null, field: null, caller_request_id: null },
} as const;

/** Answers on the bare socket, closes it, and leaves one line. */
function refuser(newId: NewId, record: RecordRequest) {
  return (socket: Duplex, refusal: TransportRefusal, request?: IncomingMessage): void => {
    const requestId = newId();
    const locale = preferredLocale(request?.headers['accept-language']) ?? 'en';
    const { status, headers, body } = errorResponse(refusal, locale, requestId);
    const text = JSON.stringify(body);
    const fields = {
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'x-request-id': requestId,
      connection: 'close',
    };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`, () => socket.destroy());
    const remote = (socket as Socket).remoteAddress ?? '';
    const method = request?.method ?? '-';
    const line = { request_id: requestId, method, route: null, status, code: refusal.code, ms: 0, remote };
    record({ event: 'request', ...line, ...NO_REQUEST });
  };
}
