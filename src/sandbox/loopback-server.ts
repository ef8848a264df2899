// What the sandbox's servers on loopback have in common: bounded connections, each with a limited lifetime, and a close that
// does not wait.
import { once } from 'node:events';
import type net from 'node:net';

export interface ListenAt {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

export interface LoopbackServer extends AsyncDisposable {
  readonly port: number;
  /** Closes immediately, without waiting for open connections. */
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 64;
const MAX_CONNECTION_MS = 10_000;

/** Of servers of HTTP. */
export const HTTP_LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8 * 1024,
};

export async function listenBounded(server: net.Server, { host, port }: ListenAt): Promise<LoopbackServer> {
  const sockets = new Set<net.Socket>();
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (socket: net.Socket) => {
    const lifetime = setTimeout(() => socket.destroy(), MAX_CONNECTION_MS);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      clearTimeout(lifetime);
    });
  });
  server.listen(port, host);
  await once(server, 'listening');

  async function close(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  }
  return { port: (server.address() as net.AddressInfo).port, close, [Symbol.asyncDispose]: close };
}
