// Bounds connections by number, and what responses wait on them by size. A connection is a descriptor, of which the store, DNS
// and callbacks need some. At the bound, room is made for a new one by closing an idle one: first those of strangers, which
// never authenticated a request, the oldest first. An HTTP client expects that of idle connections. For responses that are
// not read, the connection closes on which the most bytes wait.
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';

/** Node answers pipelined requests in sequence, so one connection could make work for many. */
const MAX_PIPELINED = 16;
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

export class Connection {
  readonly socket: Socket;
  /** Requests that are not answered in full. */
  pending = 0;
  /** Bytes of their answers, as far as there are any. */
  unsent = 0;
  /** Sent something that is no acceptable HTTP. Nothing that follows is looked at. */
  isRefused = false;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  get isFull(): boolean {
    return this.pending > MAX_PIPELINED;
  }
}

export class Connections {
  readonly #max: number;
  /** The oldest first. */
  readonly #strangers = new Set<Connection>();
  readonly #callers = new Set<Connection>();
  readonly #bySocket = new WeakMap<object, Connection>();
  #unsent = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#strangers.size + this.#callers.size;
  }

  opened(socket: Socket): Connection {
    const connection = new Connection(socket);
    this.#bySocket.set(socket, connection);
    if (this.count >= this.#max) (idleOf(this.#strangers) ?? idleOf(this.#callers) ?? connection).socket.destroy();
    if (socket.destroyed) return connection;
    this.#strangers.add(connection);
    socket.once('close', () => this.#closed(connection));
    return connection;
  }

  /** TLS wraps the socket that was opened in another one. */
  secured(socket: Socket, connection: Connection): void {
    this.#bySocket.set(socket, connection);
  }

  of(socket: object): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  authenticated(connection: Connection): void {
    if (this.#strangers.delete(connection)) this.#callers.add(connection);
  }

  answering(connection: Connection, bytes: number): void {
    connection.unsent += bytes;
    this.#unsent += bytes;
    if (this.#unsent > MAX_UNSENT_BYTES) this.#closeLargest();
  }

  answered(connection: Connection): void {
    connection.pending -= 1;
    if (connection.pending === 0) this.#settle(connection);
  }

  #closed(connection: Connection): void {
    this.#strangers.delete(connection);
    this.#callers.delete(connection);
    this.#settle(connection);
  }

  #settle(connection: Connection): void {
    this.#unsent -= connection.unsent;
    connection.unsent = 0;
  }

  #closeLargest(): void {
    let largest: Connection | undefined;
    for (const one of [...this.#strangers, ...this.#callers]) if (one.unsent > (largest?.unsent ?? 0)) largest = one;
    if (!largest) return;
    this.#settle(largest);
    largest.socket.destroy();
  }
}

function idleOf(connections: ReadonlySet<Connection>): Connection | undefined {
  for (const connection of connections) if (connection.pending === 0) return connection;
  return undefined;
}

export function boundPerConnection(app: FastifyInstance, connections: Connections): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const isFull = connections.of(request.raw.socket)?.isFull;
    done(isFull ? new Refusal('service_busy', { retryAfterSeconds: 1 }) : undefined);
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    const connection = connections.of(request.raw.socket);
    if (connection) {
      if (request.caller) connections.authenticated(connection);
      connections.answering(connection, lengthOf(payload));
    }
    done(null, payload);
  });
}

const lengthOf = (payload: unknown): number =>
  typeof payload === 'string' || payload instanceof Uint8Array ? payload.length : 0;
