// A shutdown that resets no connection, in phases that wiring/serve.ts times:
//
//   draining   /readyz fails and everything else works, so that load balancers send requests elsewhere. Connections from
//              before are closed with their next answer; those opened meanwhile are kept.
//   closing    once the listener is closed, every answer closes its connection. After a moment, idle ones are closed.
//
// The kernel resets connections that wait to be accepted when a listener closes. Clients with a kept connection have no
// reason to open one at that time; if every answer closed its connection before, all of them would be connecting.
import { type Socket, Server as TcpServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyInstance {
    readonly drain: Drain;
  }
}

export interface Drain {
  readonly isDraining: boolean;
  begin(): void;
  stopListening(): void;
  /** Closes each connection with its next answer. Resolves when all are closed, at the latest after `ms`. */
  closeConnections(ms: number): Promise<void>;
  /** Closes every connection, whatever it is doing. */
  closeAll(): void;
}

export function drainConnections(app: FastifyInstance): void {
  const { server } = app;
  let phase: 'serving' | 'draining' | 'closing' = 'serving';
  /** As accepted: below TLS, if there is any. */
  const accepted = new Set<Socket>();
  /** Without a request so far, and what was read by then. Unlike those that had one, Node does not count them as idle. */
  const fresh = new Map<Socket, number>();
  const kept = new WeakSet<Socket>();
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
  server.once('close', onClosed);
  server.on('connection', (socket: Socket) => {
    accepted.add(socket);
    socket.once('close', () => accepted.delete(socket));
  });
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', (socket: Socket) => {
    fresh.set(socket, socket.bytesRead);
    socket.once('close', () => fresh.delete(socket));
    if (phase === 'draining') kept.add(socket);
  });
  server.on('request', ({ socket }) => fresh.delete(socket));

  app.addHook('onSend', (request, reply, payload, done) => {
    const mayStay = phase === 'serving' || (phase === 'draining' && kept.has(request.raw.socket));
    if (!mayStay) reply.header('connection', 'close');
    done(null, payload);
  });
  app.addHook('preClose', async () => {
    phase = 'closing';
    for (const [socket, bytesRead] of fresh) if (socket.bytesRead === bytesRead) socket.destroy();
  });

  app.decorate('drain', {
    get isDraining() {
      return phase !== 'serving';
    },
    begin() {
      phase = 'draining';
    },
    stopListening() {
      // The method of http.Server would close idle connections at once, while a request may be on its way.
      TcpServer.prototype.close.call(server);
    },
    async closeConnections(ms) {
      phase = 'closing';
      const ended = new AbortController();
      await Promise.race([closed, sleep(ms, undefined, { signal: ended.signal })]);
      ended.abort();
    },
    closeAll() {
      for (const socket of accepted) socket.destroy();
    },
  } satisfies Drain);
}
