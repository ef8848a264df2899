// A TCP proxy with fault injection: it can drop responses, or cut the connection at a given word. Taps
// observe the traffic.
import { once } from 'node:events';
import net from 'node:net';

/** Sees the bytes of one connection as they pass. */
export interface Tap {
  sent(bytes: Buffer): void;
  received(bytes: Buffer): void;
}

export class TcpProxy implements AsyncDisposable {
  /** From now on, drops the server's responses, as if its network were down. */
  isSilent = false;
  /** Once this word was forwarded to the server, drops its response and cuts the connection. */
  cutAfter: string | undefined;
  /** Makes a tap for each connection that is accepted from now on. */
  tap: (() => Tap) | undefined;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor(server: net.Server) {
    this.#server = server;
  }

  static async to(host: string, port: number): Promise<TcpProxy> {
    const server = net.createServer();
    const proxy = new TcpProxy(server);
    server.on('connection', (client) => proxy.#connect(client, net.connect(port, host)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  #connect(client: net.Socket, upstream: net.Socket): void {
    let isCut = false;
    const tap = this.tap?.();
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (bytes) => {
      tap?.sent(bytes);
      if (this.cutAfter !== undefined && bytes.includes(this.cutAfter)) isCut = true;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      tap?.received(bytes);
      // The response arrived here, so the server has done its work, but the client will not learn of it.
      if (isCut) client.destroy();
      else if (!this.isSilent) client.write(bytes);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
