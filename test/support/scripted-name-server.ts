// A name server on loopback that a test scripts byte by byte: the client under test must stand whatever it sends. Messages
// are written by an independent library.
import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import packet from 'dns-packet';

export interface Datagram {
  readonly query: Buffer;
  readonly port: number;
  /** Sends from the server's own port, or from the given socket. */
  readonly send: (message: Uint8Array, from?: dgram.Socket) => void;
}

export interface Script {
  readonly udp?: (datagram: Datagram) => void;
  /** Called once per query that came over a connection. */
  readonly tcp?: (query: Buffer, client: net.Socket) => void;
  /** Questions for the root, by which clients tell whether a resolver is alive, are scripted like others. */
  readonly isDown?: boolean;
}

const PORT_TRIES = 20;
const ROOT = '.';

export class ScriptedNameServer implements AsyncDisposable {
  /** May be changed at any time. */
  script: Script;
  /** As a resolver is configured. */
  readonly address: string;
  readonly heard: { readonly query: Buffer; readonly port: number; readonly over: 'udp' | 'tcp' }[] = [];
  readonly #udp: dgram.Socket;
  readonly #tcp: net.Server;
  readonly #clients = new Set<net.Socket>();

  private constructor(udp: dgram.Socket, tcp: net.Server, script: Script) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.script = script;
    const { address, port, family } = udp.address();
    this.address = family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
    udp.on('message', (query, { port, address }) => {
      if (nameOf(query) === ROOT && !this.script.isDown) return void udp.send(response(query), port, address);
      this.heard.push({ query, port, over: 'udp' });
      this.script.udp?.({ query, port, send: (message, from = udp) => from.send(message, port, address) });
      udp.emit('heard');
    });
    tcp.on('connection', (client) => this.#serve(client));
  }

  /** UDP and TCP on one port. The kernel chooses it for UDP, and TCP may have it in use: then another one is tried. */
  static async start(script: Script, host = '127.0.0.1'): Promise<ScriptedNameServer> {
    for (let tries = 1; ; tries += 1) {
      const udp = dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4');
      const tcp = net.createServer();
      try {
        udp.bind(0, host);
        await once(udp, 'listening');
        tcp.listen(udp.address().port, host);
        await once(tcp, 'listening');
        return new ScriptedNameServer(udp, tcp, script);
      } catch (error) {
        udp.close();
        if (tries === PORT_TRIES || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      }
    }
  }

  over(transport: 'udp' | 'tcp'): number {
    return this.heard.filter(({ over }) => over === transport).length;
  }

  async hasHeard(count: number): Promise<void> {
    while (this.heard.length < count) await once(this.#udp, 'heard');
  }

  /** Refuses connections from now on. */
  async stopTcp(): Promise<void> {
    const closed = once(this.#tcp, 'close');
    this.#tcp.close();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.destroy();
    if (this.#tcp.listening) await this.stopTcp();
    this.#udp.close();
  }

  #serve(client: net.Socket): void {
    let received = Buffer.alloc(0);
    this.#clients.add(client);
    client.setNoDelay();
    client.on('error', () => {});
    client.on('close', () => this.#clients.delete(client));
    client.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      const query = received.subarray(2);
      this.heard.push({ query, port: client.remotePort ?? 0, over: 'tcp' });
      (this.script.tcp ?? ((_, one) => one.destroy()))(query, client);
      this.#udp.emit('heard');
    });
  }
}

/** A response to the query: recursion available, the question echoed as it came. */
export function response(query: Buffer, answers: readonly packet.Answer[] = [], changes: packet.Packet = {}): Buffer {
  const { id = 0, questions = [] } = packet.decode(query);
  return packet.encode({
    type: 'response',
    id,
    flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE,
    questions,
    answers: [...answers],
    ...changes,
  });
}

export const nameOf = (query: Buffer): string => packet.decode(query).questions?.[0]?.name ?? '';

/** A TXT record of the name that was asked for. */
export const txt = (query: Buffer, text: string): packet.Answer => ({ type: 'TXT', name: nameOf(query), data: text });

export const framed = (message: Uint8Array): Buffer =>
  Buffer.concat([Uint8Array.of(message.length >> 8, message.length & 255), message]);
