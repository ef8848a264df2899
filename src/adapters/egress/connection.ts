// An open connection to a vetted address, and the first bytes of the response that is being read from it.
import type { Socket } from 'node:net';
import type { Address } from '../../domain/egress/addresses.ts';
import type { Observation } from '../../domain/egress/outbound.ts';

export interface VettedAddress {
  readonly address: Address;
  /** Reached through an allow rule only. */
  readonly isPrivate: boolean;
}

const OPENING = 'HTTP/1.';

/** Counts the bytes of one response beside the parser, and looks at the first of them. */
export class ResponseBytes {
  received = 0;
  #opening = '';

  /** False if the response does not begin as HTTP/1: the parser also accepts RTSP. */
  add(chunk: Buffer): boolean {
    this.received += chunk.length;
    if (this.#opening.length < OPENING.length) {
      this.#opening += chunk.toString('latin1', 0, OPENING.length - this.#opening.length);
    }
    return OPENING.startsWith(this.#opening);
  }
}

interface Listener {
  onData(chunk: Buffer): void;
  /** Before `onEnd`. */
  onError?(error: Error): void;
  onEnd(): void;
}

export class Connection {
  readonly openedAt = performance.now();
  /** Exchanges begun on it. */
  exchanges = 0;
  readonly socket: Socket;
  readonly address: Address;
  readonly tls: Observation['tls'];
  readonly #transport: Socket;
  #listener: Listener | undefined;
  #isWatched = false;

  /** `socket` is the transport itself, or the TLS socket around it. */
  constructor(transport: Socket, address: Address, socket: Socket = transport, tls: Observation['tls'] = null) {
    this.#transport = transport;
    this.address = address;
    this.socket = socket;
    this.tls = tls;
    socket.on('error', (error) => this.#listener?.onError?.(error));
    for (const event of ['end', 'close']) socket.on(event, () => this.#listener?.onEnd());
  }

  get isOpen(): boolean {
    return this.socket.readable && this.socket.writable;
  }

  /** The entry of the list that this connection leads to. */
  findIn(addresses: readonly VettedAddress[]): VettedAddress | undefined {
    return addresses.find(({ address }) => Buffer.compare(address, this.address) === 0);
  }

  /** Replaces the listener: one exchange after the other, and the idle time between them. Data needs `watchData` besides. */
  listen(listener: Listener): void {
    this.#listener = listener;
  }

  /** Call once all that read are ready: a first listener lets data flow, and a parser would miss what came before it. */
  watchData(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.socket.prependListener('data', (chunk) => this.#listener?.onData(chunk as Buffer));
  }

  /** The TLS socket first: see CallScope.own. */
  destroy(): void {
    this.socket.destroy();
    this.#transport.destroy();
  }
}
