// A bound on the requests served at once. Beyond it the answer is `service_busy`, at once, instead of a queue that
// grows until the memory ends. Health checks pass, or an orchestrator would kill a service for being busy.
//
// A place is given back when the answer is gone or its reader is: only `close` comes in every case. Work whose caller
// has left is not counted any more; the store's own queue bounds that.
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    isHealthCheck?: true;
  }
}

/** Node answers pipelined requests one by one, however slowly they are read: one connection must not take every place. */
const MAX_PER_CONNECTION = 16;

export function limitConcurrency(app: FastifyInstance, maxRequests: number): void {
  let underWay = 0;
  const perConnection = new WeakMap<Socket, number>();
  app.addHook('onRequest', async (request, reply) => {
    const { socket } = request.raw;
    const pipelined = (perConnection.get(socket) ?? 0) + 1;
    perConnection.set(socket, pipelined);
    underWay += 1;
    reply.raw.once('close', () => {
      underWay -= 1;
      perConnection.set(socket, (perConnection.get(socket) ?? 1) - 1);
    });
    if (request.routeOptions.config.isHealthCheck) return;
    if (underWay > maxRequests || pipelined > MAX_PER_CONNECTION) {
      throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    }
  });
}
