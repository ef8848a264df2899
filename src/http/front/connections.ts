// Bounds connections by number, and what responses wait on them by size. A connection is a descriptor, of which the store, DNS
// and callbacks need some. At the bound, room is made for a new one by closing an idle one, or one whose answer is not read:
// first those of strangers, which never authenticated a request, the oldest first. HTTP clients expect that of idle
// connections. When too many bytes wait to be read, the connection closes on which the most do.
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** A packet of pipelined requests would be work for seconds. Hardly a client pipelines at all. */
const MAX_PIPELINED = 8;
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

export class Connection {
  /** The one that HTTP is spoken on. */
  socket: Socket;
  /** Requests that are not answered in full. */
  pending = 0;
  /** Bytes of their answers, as far as there are any. */
  unsent = 0;
  /** Nothing more that it sends is looked at; it closes once everything before is answered. */
  isRefused = false;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  get isFull(): boolean {
    return this.pending >= MAX_PIPELINED;
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
    if (this.count >= this.#max) this.#makeRoomFor(connection);
    if (socket.destroyed) return connection;
    this.#strangers.add(connection);
    socket.once('close', () => this.#closed(connection));
    return connection;
  }

  #makeRoomFor(connection: Connection): void {
    const [strangers, callers] = [this.#strangers, this.#callers];
    const least =
      oldest(strangers, isIdle) ?? oldest(strangers, isUnread) ?? oldest(callers, isIdle) ?? oldest(callers, isUnread);
    (least ?? connection).socket.destroy();
  }

  /** TLS wraps the socket that was opened in another one. */
  secured(socket: Socket, connection: Connection): void {
    connection.socket = socket;
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
    if (connection.pending > 0) return;
    this.#settle(connection);
    if (connection.isRefused) connection.socket.destroySoon();
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

function oldest(connections: ReadonlySet<Connection>, is: (one: Connection) => boolean): Connection | undefined {
  for (const one of connections) if (is(one)) return one;
  return undefined;
}
const isIdle = ({ pending }: Connection): boolean => pending === 0;
/** Answered, and not read: others read an answer at once. */
const isUnread = ({ unsent }: Connection): boolean => unsent > 0;

export function countUnsent(app: FastifyInstance, connections: Connections): void {
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
