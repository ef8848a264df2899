// One HTTP/1.1 request and its answer, over a socket that is connected already. There is no agent, so no proxy, no
// second try and no connection that outlives the call. The status decides: what follows it is kept up to a limit, and
// cut off there or wherever it breaks.
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { finished, type Readable } from 'node:stream';
import type { FailureReason, OutboundCall, OutboundUrl } from '../../domain/egress/outbound.ts';
import type { Attempt } from './attempt.ts';
import { Failure, failureOf } from './failure.ts';

const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 16 * 1024;
const MAX_INTERIM = 16;
const DEFAULT_PORT = { https: 443, http: 80 } as const;

interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Answer extends Head {
  readonly body: Uint8Array;
}

export async function exchange(
  call: OutboundCall,
  socket: Socket,
  userAgent: string,
  bodyMs: number,
  attempt: Attempt,
): Promise<Answer> {
  attempt.enter('request');
  const { body, ...head } = await attempt.within(Number.POSITIVE_INFINITY, () =>
    send(call, socket, userAgent, attempt),
  );
  // Whatever ends it, time, the caller or the receiver: the status is known, and that is what counts.
  await attempt.within(bodyMs, () => body.ended).catch(() => {});
  return { ...head, body: body.bytes() };
}

/** Resolves with the head of the answer, while its body is still coming. */
function send(
  call: OutboundCall,
  socket: Socket,
  userAgent: string,
  attempt: Attempt,
): Promise<Head & { readonly body: Body }> {
  const { promise, resolve, reject } = Promise.withResolvers<Head & { readonly body: Body }>();
  const fail = (reason: FailureReason) => reject(new Failure(reason));
  const outgoing = attempt.own(
    request({
      // The connection is made already, so this module's own notion of TLS has no part in it.
      createConnection: () => socket,
      method: call.method,
      path: call.url.target,
      headers: headersOf(call, userAgent),
      maxHeaderSize: MAX_HEAD_BYTES,
      insecureHTTPParser: false,
    }),
  );
  // The parser takes RTSP for HTTP; so the first bytes are looked at before it sees them.
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
  // Without a listener, a 101 would be neither an answer nor an error.
  outgoing.on('upgrade', () => fail('response_invalid'));
  outgoing.on('finish', () => attempt.enter('response'));
  outgoing.on('response', (incoming) => {
    attempt.enter('response');
    // Listened to at once: the body can break before anyone who waits for the head is woken.
    const body = new Body(incoming);
    const { httpVersionMajor, statusCode: status = 0, headers } = incoming;
    if (httpVersionMajor !== 1 || status < 200) fail('response_invalid');
    else resolve({ status, headers: flat(headers), body });
  });
  outgoing.on('error', (error) => reject(failureOf(attempt.stage, error)));
  // Asked of the socket itself: what happens to it before the request has taken it over, the request never learns.
  socket.on('close', () => fail('connection_closed'));
  if (socket.destroyed) fail('connection_closed');
  outgoing.end(call.body);
  return promise;
}

const OPENING = 'HTTP/1.';

function requireHttp(otherwise: () => void): (chunk: Uint8Array) => void {
  let seen = '';
  return (chunk) => {
    if (seen.length >= OPENING.length) return;
    seen += Buffer.from(chunk.subarray(0, OPENING.length - seen.length)).toString('latin1');
    if (!OPENING.startsWith(seen)) otherwise();
  };
}

const flat = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]));

/** In pairs, which are sent as they are: of an object, Node would add headers of its own. */
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

/** The beginning of an answer, raw: never decompressed, so that a few bytes stay a few bytes. */
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

  /** A copy: a small piece must not keep the large buffer it was read into. */
  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks, Math.min(this.#length, MAX_BODY_BYTES));
  }
}
