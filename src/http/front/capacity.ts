// Limits concurrent requests: load shedding with `service_busy` instead of an unbounded queue. Health checks are exempt,
// or an orchestrator would kill a busy service.
//
// A request counts until its response is closed, the only event that always fires. Work that outlives a disconnected
// caller is bounded by the store's queue.
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    isHealthCheck?: true;
  }
}

/** Node answers pipelined requests in sequence, so a slow reader on one connection could hold the whole limit. */
const MAX_PER_CONNECTION = 16;

export function limitConcurrency(app: FastifyInstance, maxRequests: number): void {
  let inFlight = 0;
  const perConnection = new WeakMap<Socket, number>();
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw;
    const pipelined = (perConnection.get(socket) ?? 0) + 1;
    perConnection.set(socket, pipelined);
    inFlight += 1;
    reply.raw.once('close', () => {
      inFlight -= 1;
      perConnection.set(socket, (perConnection.get(socket) ?? 1) - 1);
    });
    const isBusy = inFlight > maxRequests || pipelined > MAX_PER_CONNECTION;
    if (isBusy && !request.routeOptions.config.isHealthCheck) {
      throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    }
    done();
  });
}
