// A real receiver on loopback: with or without TLS, any certificate, and any bytes at any time as a response. It records
// every request verbatim, and the local address of every connection.
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import type { Identity } from './receiver-certificates.ts';

/** Called with the decrypted connection and one complete request, head and body. */
export type Script = (socket: net.Socket, request: string) => void;

export interface ReceiverOptions {
  readonly host?: string;
  readonly port?: number;
  /** Without an identity it speaks plain HTTP. */
  readonly identity?: Identity | null;
  readonly tls?: tls.TlsOptions;
  readonly script?: Script;
  /** Overrides everything else: handles the accepted connection. */
  readonly onAccept?: (socket: net.Socket) => void;
  /** Called before a request is read. */
  readonly onSecure?: (socket: net.Socket) => void;
}

export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Responds with these bytes and closes. */
export const respond =
  (...answer: readonly string[]): Script =>
  (socket) =>
    socket.end(answer.join(''), 'latin1');
/** Responds with these bytes and leaves the connection open. */
export const respondAndKeepOpen =
  (...answer: readonly string[]): Script =>
  (socket) =>
    void socket.write(answer.join(''), 'latin1');

/** Sends the chunk repeatedly, as fast as the peer reads. */
export const respondEndlessly =
  (head: string, piece: string): Script =>
  (socket) => {
    const more = () => {
      if (socket.write(piece)) setImmediate(() => socket.destroyed || more());
    };
    socket.on('drain', more);
    socket.write(head);
    more();
  };
/** Sends a chunk at intervals, forever: never idle long enough to time out, and never done. */
export const drip =
  (head: string, drop: string): Script =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(drop), 10);
    socket.on('close', () => clearInterval(timer));
  };
export const reset: Script = (socket) => (socket as unknown as { _parent: typeof socket })._parent.resetAndDestroy();
export const resetAfter =
  (bytes: string): Script =>
  (socket, request) =>
    socket.write(bytes, () => reset(socket, request));

export class Receiver implements AsyncDisposable {
  /** Verbatim. */
  readonly requests: string[] = [];
  readonly connections: { readonly localAddress: string; readonly remoteAddress: string }[] = [];
  /** The SNI of each connection; false if it had none. */
  readonly serverNames: (string | false | null)[] = [];
  script: Script;
  readonly #server: net.Server;
  readonly #open = new Set<net.Socket>();
  #bytesOnClosed = 0;

  private constructor(server: net.Server, script: Script) {
    this.#server = server;
    this.script = script;
  }

  static async start(options: ReceiverOptions = {}): Promise<Receiver> {
    const { host = '127.0.0.1', port = 0, identity, onAccept, onSecure, script = respond(OK) } = options;
    const server = net.createServer();
    const receiver = new Receiver(server, script);
    const context = identity && tls.createSecureContext({ ...options.tls, ...identity });
    server.on('connection', (socket) => {
      receiver.#keep(socket);
      if (onAccept) {
        onAccept(socket);
        // A socket that is not read does not notice that the peer has disconnected.
        return void socket.resume();
      }
      const stream = context ? receiver.#secure(socket, { ...options.tls, secureContext: context }) : socket;
      receiver.#read(stream);
      if (onSecure && stream !== socket) stream.once('secure', () => onSecure(stream));
    });
    server.listen(port, host);
    await once(server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  get openSockets(): number {
    return this.#open.size;
  }

  /** On all connections, including TLS records. */
  get bytesRead(): number {
    return [...this.#open].reduce((sum, { bytesRead }) => sum + bytesRead, this.#bytesOnClosed);
  }

  /** Resolves when `count` requests have been read. */
  async received(count: number): Promise<void> {
    while (this.requests.length < count) await once(this.#server, 'request');
  }

  /** Resolves when no connection is open. */
  async deserted(): Promise<void> {
    while (this.#open.size > 0) await this.left();
  }

  /** Resolves when the next connection has ended. */
  async left(): Promise<void> {
    await once(this.#server, 'left');
  }

  #keep(socket: net.Socket): void {
    this.connections.push({ localAddress: socket.localAddress ?? '', remoteAddress: socket.remoteAddress ?? '' });
    this.#open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#open.delete(socket);
      this.#bytesOnClosed += socket.bytesRead;
      this.#server.emit('left');
    });
  }

  #secure(socket: net.Socket, options: tls.TlsOptions): tls.TLSSocket {
    const secured = new tls.TLSSocket(socket, { ...options, isServer: true });
    secured.on('error', () => {});
    secured.on('secure', () =>
      this.serverNames.push((secured as unknown as { servername: string | false }).servername),
    );
    return secured;
  }

  #read(stream: net.Socket): void {
    let received = '';
    stream.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const end = received.indexOf('\r\n\r\n') + 4;
      if (end < 4) return;
      const length = Number(/^content-length: *(\d+)/im.exec(received.slice(0, end))?.[1] ?? 0);
      if (received.length < end + length) return;
      const request = received.slice(0, end + length);
      received = received.slice(end + length);
      this.requests.push(request);
      this.#server.emit('request');
      this.script(stream, request);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
