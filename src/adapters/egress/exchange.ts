// One HTTP/1.1 request and response over an open connection. No agent, hence no proxy and no retry. The status decides the
// outcome; the body is kept up to a limit, and truncated there or where it breaks off.
import { request } from 'node:https';
import { finished, type Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { OutboundCall, OutboundUrl } from '../../domain/egress/outbound.ts';
import type { CallScope } from './call-scope.ts';
import { type Connection, ResponseBytes } from './connection.ts';
import { Failure, failureOf, Unanswered } from './failure.ts';

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
  /** The connection can serve another exchange. */
  readonly isReusable: boolean;
}

interface Begun {
  readonly head: ResponseHead;
  readonly body: Body;
  /** Call when the body has ended. */
  readonly isReusable: () => Promise<boolean>;
}

interface ExchangeOptions {
  readonly call: OutboundCall;
  readonly connection: Connection;
  readonly userAgent: string;
  readonly bodyMs: number;
  readonly scope: CallScope;
}

export async function exchange(options: ExchangeOptions): Promise<ResponseFacts> {
  const { scope, bodyMs } = options;
  scope.enter('request');
  // Bounded by the call's deadline only.
  const { head, body, isReusable } = await scope.within(Number.POSITIVE_INFINITY, () => send(options));
  // A timeout, cancellation or broken body changes nothing: the status is known.
  if (!body.isComplete) await scope.within(bodyMs, () => body.ended).catch(() => {});
  return { ...head, body: body.bytes(), isReusable: await isReusable() };
}

/** Resolves with the response head, while the body is still arriving. */
function send({ call, connection, userAgent, scope }: ExchangeOptions): Promise<Begun> {
  const { promise, resolve, reject } = Promise.withResolvers<Begun>();
  const bytes = new ResponseBytes();
  const fail = (failure: Failure) =>
    reject(bytes.received === 0 && failure.reason === 'connection_closed' ? new Unanswered() : failure);
  const refuse = () => fail(new Failure('response_invalid'));
  const outgoing = scope.own(
    request({
      // Already connected and verified: node:https' own TLS settings are not used.
      createConnection: () => connection.socket,
      method: call.method,
      path: call.url.target,
      headers: headersOf(call, userAgent),
      maxHeaderSize: MAX_HEAD_BYTES,
      insecureHTTPParser: false,
    }),
  );
  // Without an agent Node would close the socket, whatever the headers say.
  outgoing.shouldKeepAlive = call.keptFor !== undefined;
  connection.exchanges += 1;
  connection.listen({
    onData: (chunk) => bytes.add(chunk) || refuse(),
    // On the connection itself: the request does not see what happens to it before taking it over.
    onEnd: () => fail(new Failure('connection_closed')),
  });
  outgoing.once('socket', () => connection.watchData());
  let interim = 0;
  outgoing.on('information', () => {
    interim += 1;
    if (interim > MAX_INTERIM) refuse();
  });
  // Without a listener, a 101 would emit neither a response nor an error.
  outgoing.on('upgrade', refuse);
  outgoing.on('finish', () => scope.enter('response'));
  outgoing.on('response', (incoming) => {
    scope.enter('response');
    // Listens at once: the body can break before the awaiting caller of `send` resumes.
    const body = new Body(incoming, call.policy.maxBodyBytes);
    const { httpVersionMajor, statusCode: status = 0, headers } = incoming;
    if (httpVersionMajor !== 1 || status < 200) return refuse();
    const isReusable = async () => {
      // After a fast response Node reports the end of the request in the next turn. If it does not, the receiver answered
      // before it had read everything.
      if (outgoing.shouldKeepAlive && !outgoing.writableFinished) await setImmediate();
      const length = Number(headers['content-length'] ?? Number.NaN);
      const isWhole = outgoing.writableFinished && body.isComplete && interim === 0 && bytes.isExactly(length);
      return outgoing.shouldKeepAlive && isWhole && connection.isOpen;
    };
    resolve({ head: { status, headers: joinHeaders(headers) }, body, isReusable });
  });
  outgoing.on('error', (error) => fail(failureOf(scope.stage, error)));
  if (!connection.isOpen) fail(new Failure('connection_closed'));
  outgoing.end(call.body);
  return promise;
}

const joinHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]));

/** Name-value pairs are sent unchanged; given an object, Node would add headers of its own. */
function headersOf({ url, method, headers, body, keptFor }: OutboundCall, userAgent: string): string[] {
  const length = method === 'GET' && body === '' ? [] : ['Content-Length', String(Buffer.byteLength(body))];
  return [
    ...['Host', authorityOf(url), 'User-Agent', userAgent],
    ...Object.entries(headers).flat(),
    ...[...length, 'Connection', keptFor === undefined ? 'close' : 'keep-alive'],
  ];
}

function authorityOf({ scheme, host, literal, port }: OutboundUrl): string {
  const name = literal?.length === 16 ? `[${host}]` : host;
  return port === DEFAULT_PORT[scheme] ? name : `${name}:${port}`;
}

/** The first bytes of a response body. Never decompressed, so that a bomb stays small. */
class Body {
  readonly ended: Promise<void>;
  /** It was read to its end, and nothing was cut off. */
  isComplete = false;
  readonly #chunks: Uint8Array[] = [];
  readonly #maxBytes: number;
  #length = 0;

  constructor(incoming: Readable, maxBytes = MAX_BODY_BYTES) {
    this.#maxBytes = maxBytes;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    incoming.on('data', (chunk: Uint8Array) => {
      if (this.#length >= maxBytes) return;
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      if (this.#length >= maxBytes) resolve();
    });
    finished(incoming, (error) => {
      this.isComplete = !error && this.#length < maxBytes;
      resolve();
    });
  }

  /** A copy, so that a short body does not retain the large read buffer. */
  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks, Math.min(this.#length, this.#maxBytes));
  }
}
