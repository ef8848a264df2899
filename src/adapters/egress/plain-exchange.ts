// An exchange over a connection that may be kept: the request is one write, and a plain response is read as it arrives. Any
// other response is read by Node's client, as if it had sent the request, and its connection is not kept.
import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { OutboundCall } from '../../domain/egress/outbound.ts';
import { Connection } from './connection.ts';
import { failureOf, Unanswered } from './failure.ts';
import { type Begun, type ExchangeOptions, headersOf, maxBodyBytes, sendByNode } from './node-exchange.ts';
import { type PlainHead, plainHead } from './plain-response.ts';

const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

/** Resolves with the response head, while the body is still arriving. */
export function sendPlain(options: ExchangeOptions): Promise<Begun> {
  const { call, connection, userAgent, scope } = options;
  const request = bytesOf(call, userAgent);
  const { promise, resolve, reject } = Promise.withResolvers<Begun>();
  connection.exchanges += 1;
  connection.listen({
    onData(chunk) {
      scope.enter('response');
      const head = plainHead(chunk);
      resolve(
        head && head.bodyBytes < maxBodyBytes(call)
          ? beginPlain(connection, head, chunk)
          : sendByNode({ ...options, connection: replayOf(connection, chunk) }),
      );
    },
    onError(error) {
      const failure = failureOf(scope.stage, error);
      reject(failure.reason === 'connection_closed' ? new Unanswered() : failure);
    },
    onEnd: () => reject(new Unanswered()),
  });
  connection.watchData();
  connection.socket.resume();
  const onSent = (error?: Error | null) => {
    if (!error) scope.enter('response');
  };
  if (connection.isOpen) connection.socket.write(request, onSent);
  else reject(new Unanswered());
  return promise;
}

/** The request in one piece, which TLS sends as one record. */
function bytesOf(call: OutboundCall, userAgent: string): Buffer {
  const { method, url, body } = call;
  const fields = headersOf(call, userAgent);
  let head = `${method} ${url.target} HTTP/1.1\r\n`;
  for (let index = 0; index < fields.length; index += 2) {
    const { [index]: name = '', [index + 1]: value = '' } = fields;
    // A line break in a value would begin another field.
    if (!HEADER_VALUE.test(value)) throw new TypeError(`${name} has a value that no header can have`);
    head += `${name}: ${value}\r\n`;
  }
  head += '\r\n';
  const bytes = Buffer.allocUnsafe(head.length + Buffer.byteLength(body));
  bytes.write(head, 'latin1');
  bytes.write(body, head.length);
  return bytes;
}

/** Listens on: a byte too many would be read as the beginning of the next response. */
function beginPlain(connection: Connection, head: PlainHead, chunk: Buffer): Begun {
  const { headBytes, bodyBytes } = head;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const chunks = [chunk.subarray(headBytes)];
  let received = chunk.length - headBytes;
  connection.listen({
    onData(more) {
      if (received < bodyBytes) chunks.push(more);
      received += more.length;
      if (received >= bodyBytes) end();
    },
    // After an error of TLS no end follows.
    onError: () => end(),
    onEnd: end,
  });
  return {
    head,
    body: {
      get isComplete() {
        return received >= bodyBytes;
      },
      ended,
      bytes: () => Buffer.concat(chunks, Math.min(received, bodyBytes)),
    },
    async isReusable() {
      // After a fast response Node reports the end of the request in the next turn. If it does not, the receiver answered
      // before it had read everything.
      if (connection.socket.writableLength > 0) await setImmediate();
      return received === bodyBytes && connection.socket.writableLength === 0 && connection.isOpen;
    },
  };
}

/** A connection from which a response is read anew. What is written to it was sent already. */
function replayOf(connection: Connection, first: Buffer): Connection {
  const replay = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  connection.listen({
    onData: (chunk) => void replay.push(chunk),
    onError: (error) => void replay.destroy(error),
    onEnd: () => void replay.push(null),
  });
  replay.push(first);
  return new Connection(connection.socket, connection.address, replay as Connection['socket'], connection.tls);
}
