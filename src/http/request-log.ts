// One wide line and one metric per request, whatever became of it.
import type { FastifyInstance } from 'fastify';
import type { Log } from '../log.ts';

export interface RequestMetrics {
  requestFinished(facts: { method: string; route: string; status: number; seconds: number }): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the envelope that was sent; null where the answer has none. */
    outcome: string | null;
  }
}

export function logRequests(app: FastifyInstance, log: Log, metrics: RequestMetrics): void {
  app.decorateRequest('outcome', null);
  app.addHook('onResponse', async (request, reply) => {
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    const ms = Math.round(reply.elapsedTime * 1000) / 1000;
    log({
      event: 'request',
      request_id: request.id,
      method: request.method,
      route,
      status: reply.statusCode,
      code: request.outcome ?? (reply.statusCode === 200 ? 'success' : null),
      ms,
      account_id: request.caller?.account.id ?? null,
      key_id: request.caller?.credential.keyId ?? null,
      remote: request.ip,
    });
    metrics.requestFinished({
      method: request.method,
      route: route ?? 'none',
      status: reply.statusCode,
      seconds: ms / 1000,
    });
  });
}
