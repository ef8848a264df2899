// An open connection to a vetted address, and the bytes of the response that is being read from it. Whether it can serve
// another exchange depends on those bytes: one too many would be read as the beginning of the next response.
import type { Socket } from 'node:net';
import type { Address } from '../../domain/egress/addresses.ts';
import type { Observation } from '../../domain/egress/outbound.ts';

export interface VettedAddress {
  readonly address: Address;
  /** Reached through an allow rule only. */
  readonly isPrivate: boolean;
}

const OPENING = 'HTTP/1.';
const HEAD_END = '\r\n\r\n';

/** Counts the bytes of one response beside the parser, and finds where its head ends. */
export class ResponseBytes {
  received = 0;
  #opening = '';
  #tail = '';
  #headLength = 0;

  /** False if the response does not begin as HTTP/1: the parser also accepts RTSP. */
  add(chunk: Buffer): boolean {
    const before = this.received - this.#tail.length;
    this.received += chunk.length;
    if (this.#headLength > 0) return true;
    const text = chunk.toString('latin1');
    if (this.#opening.length < OPENING.length) this.#opening += text.slice(0, OPENING.length - this.#opening.length);
    const end = (this.#tail + text).indexOf(HEAD_END);
    if (end >= 0) this.#headLength = before + end + HEAD_END.length;
    this.#tail = (this.#tail + text).slice(1 - HEAD_END.length);
    return OPENING.startsWith(this.#opening);
  }

  /** A head and exactly that many bytes of body have arrived. */
  isExactly(bodyLength: number): boolean {
    return this.#headLength > 0 && this.received === this.#headLength + bodyLength;
  }
}

interface Listener {
  onData(chunk: Buffer): void;
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
    for (const event of ['end', 'close']) socket.on(event, () => this.#listener?.onEnd());
  }

  get isOpen(): boolean {
    return this.socket.readable && this.socket.writable;
  }

  /** The entry of the list that this connection leads to. */
  findIn(addresses: readonly VettedAddress[]): VettedAddress | undefined {
    return addresses.find(({ address }) => Buffer.compare(address, this.address) === 0);
  }

  /** Replaces the listener: one exchange after the other, and the idle time between them. */
  listen(listener: Listener): void {
    this.#listener = listener;
  }

  /** Call once the parser listens: a first listener lets data flow, and the parser would miss what came before it. */
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
