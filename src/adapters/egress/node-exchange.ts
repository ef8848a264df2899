// An exchange through Node's client, which reads every response that HTTP/1 allows. Its connection is not kept.
import { request } from 'node:https';
import { finished, type Readable } from 'node:stream';
import type { OutboundCall, OutboundUrl } from '../../domain/egress/outbound.ts';
import type { CallScope } from './call-scope.ts';
import { type Connection, ResponseBytes } from './connection.ts';
import { Failure, failureOf, Unanswered } from './failure.ts';
import { MAX_HEAD_BYTES, type ResponseHead } from './plain-response.ts';

const MAX_BODY_BYTES = 16 * 1024;
const MAX_INTERIM = 16;
const DEFAULT_PORT = { https: 443, http: 80 } as const;

/** A response whose head has arrived. */
export interface Begun {
  readonly head: ResponseHead;
  readonly body: {
    readonly isComplete: boolean;
    readonly ended: Promise<void>;
    bytes(): Uint8Array;
  };
  /** Absent: never. Call when the body has ended. */
  readonly isReusable?: () => boolean | Promise<boolean>;
}

export interface ExchangeOptions {
  readonly call: OutboundCall;
  readonly connection: Connection;
  readonly userAgent: string;
  readonly bodyMs: number;
  readonly scope: CallScope;
}

/** Resolves with the response head, while the body is still arriving. */
export function sendByNode({ call, connection, userAgent, scope }: ExchangeOptions): Promise<Begun> {
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
    // Listens at once: the body can break before the awaiting caller resumes.
    const body = new Body(incoming, maxBodyBytes(call));
    const { httpVersionMajor, statusCode: status = 0, headers } = incoming;
    if (httpVersionMajor !== 1 || status < 200) return refuse();
    resolve({ head: { status, headers: joinHeaders(headers) }, body });
  });
  outgoing.on('error', (error) => fail(failureOf(scope.stage, error)));
  if (!connection.isOpen) fail(new Failure('connection_closed'));
  outgoing.end(call.body);
  return promise;
}

export const maxBodyBytes = ({ policy }: OutboundCall): number => policy.maxBodyBytes ?? MAX_BODY_BYTES;

const joinHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]));

/** Name-value pairs are sent unchanged; given an object, Node would add headers of its own. */
export function headersOf({ url, method, headers, body, keptFor }: OutboundCall, userAgent: string): string[] {
  const fields = ['Host', authorityOf(url), 'User-Agent', userAgent];
  for (const [name, value] of Object.entries(headers)) fields.push(name, value);
  if (method !== 'GET' || body !== '') fields.push('Content-Length', String(Buffer.byteLength(body)));
  fields.push('Connection', keptFor === undefined ? 'close' : 'keep-alive');
  return fields;
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

  constructor(incoming: Readable, maxBytes: number) {
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
