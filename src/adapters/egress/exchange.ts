// One HTTP/1.1 request and response over a connected socket. No agent, hence no proxy, no retry and no connection reuse.
// The status decides the outcome; the body is kept up to a limit, and truncated there or where it breaks off.
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { finished, type Readable } from 'node:stream';
import type { FailureReason, OutboundCall, OutboundUrl } from '../../domain/egress/outbound.ts';
import type { CallScope } from './call-scope.ts';
import { Failure, failureOf } from './failure.ts';

const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 16 * 1024;
const MAX_INTERIM = 16;
const DEFAULT_PORT = { https: 443, http: 80 } as const;

interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

interface ResponseFacts extends ResponseHead {
  readonly body: Uint8Array;
}

interface ExchangeOptions {
  readonly call: OutboundCall;
  readonly socket: Socket;
  readonly userAgent: string;
  readonly bodyMs: number;
  readonly scope: CallScope;
}

export async function exchange(options: ExchangeOptions): Promise<ResponseFacts> {
  const { scope, bodyMs } = options;
  scope.enter('request');
  // Bounded by the call's deadline only.
  const { body, ...head } = await scope.within(Number.POSITIVE_INFINITY, () => send(options));
  // A timeout, cancellation or broken body changes nothing: the status is known.
  await scope.within(bodyMs, () => body.ended).catch(() => {});
  return { ...head, body: body.bytes() };
}

/** Resolves with the response head, while the body is still arriving. */
function send({ call, socket, userAgent, scope }: ExchangeOptions): Promise<ResponseHead & { readonly body: Body }> {
  const { promise, resolve, reject } = Promise.withResolvers<ResponseHead & { readonly body: Body }>();
  const fail = (reason: FailureReason) => reject(new Failure(reason));
  const outgoing = scope.own(
    request({
      // Already connected and verified: node:https' own TLS settings are not used.
      createConnection: () => socket,
      method: call.method,
      path: call.url.target,
      headers: headersOf(call, userAgent),
      maxHeaderSize: MAX_HEAD_BYTES,
      insecureHTTPParser: false,
    }),
  );
  // llhttp also accepts RTSP, so the first bytes are checked before the parser sees them.
  outgoing.once('socket', (used) =>
    used.prependListener(
      'data',
      requireHttp(() => fail('response_invalid')),
    ),
  );
  let interim = 0;
  outgoing.on('information', () => {
    interim += 1;
    if (interim > MAX_INTERIM) fail('response_invalid');
  });
  // Without a listener, a 101 would emit neither a response nor an error.
  outgoing.on('upgrade', () => fail('response_invalid'));
  outgoing.on('finish', () => scope.enter('response'));
  outgoing.on('response', (incoming) => {
    scope.enter('response');
    // Listens at once: the body can break before the awaiting caller of `send` resumes.
    const body = new Body(incoming);
    const { httpVersionMajor, statusCode: status = 0, headers } = incoming;
    if (httpVersionMajor !== 1 || status < 200) fail('response_invalid');
    else resolve({ status, headers: joinHeaders(headers), body });
  });
  outgoing.on('error', (error) => reject(failureOf(scope.stage, error)));
  // On the socket itself: the request does not see what happens to it before taking it over.
  socket.on('close', () => fail('connection_closed'));
  if (socket.destroyed) fail('connection_closed');
  outgoing.end(call.body);
  return promise;
}

const OPENING = 'HTTP/1.';

function requireHttp(onOther: () => void): (chunk: Uint8Array) => void {
  let seen = '';
  return (chunk) => {
    if (seen.length >= OPENING.length) return;
    seen += Buffer.from(chunk.subarray(0, OPENING.length - seen.length)).toString('latin1');
    if (!OPENING.startsWith(seen)) onOther();
  };
}

const joinHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]));

/** Name-value pairs are sent unchanged; given an object, Node would add headers of its own. */
function headersOf({ url, method, headers, body }: OutboundCall, userAgent: string): string[] {
  const length = method === 'GET' && body === '' ? [] : ['Content-Length', String(Buffer.byteLength(body))];
  return [
    ...['Host', authorityOf(url), 'User-Agent', userAgent],
    ...Object.entries(headers).flat(),
    ...[...length, 'Connection', 'close'],
  ];
}

function authorityOf({ scheme, host, literal, port }: OutboundUrl): string {
  const name = literal?.length === 16 ? `[${host}]` : host;
  return port === DEFAULT_PORT[scheme] ? name : `${name}:${port}`;
}

/** The first bytes of a response body. Never decompressed, so that a bomb stays small. */
class Body {
  readonly ended: Promise<void>;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(incoming: Readable) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    incoming.on('data', (chunk: Uint8Array) => {
      if (this.#length >= MAX_BODY_BYTES) return;
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      if (this.#length >= MAX_BODY_BYTES) resolve();
    });
    finished(incoming, () => resolve());
  }

  /** A copy, so that a short body does not retain the large read buffer. */
  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks, Math.min(this.#length, MAX_BODY_BYTES));
  }
}
