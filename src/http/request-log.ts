// One wide line and one metric per request, whatever became of it.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
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

/** `route` is the pattern, never the address: what callers put there is theirs. */
export type RecordRequest = (request: FastifyRequest, reply: FastifyReply, route: string | null) => void;

export function requestRecorder(log: Log, metrics: RequestMetrics): RecordRequest {
  return (request, reply, route) => {
    const { method } = request;
    const status = reply.statusCode;
    const ms = Math.round(reply.elapsedTime * 1000) / 1000;
    log({
      event: 'request',
      request_id: request.id,
      method,
      route,
      status,
      code: request.outcome ?? (status === 200 ? 'success' : null),
      ms,
      account_id: request.caller?.account.id ?? null,
      key_id: request.caller?.credential.keyId ?? null,
      remote: request.ip,
    });
    metrics.requestFinished({ method, route: route ?? 'none', status, seconds: ms / 1000 });
  };
}

export function recordRequests(app: FastifyInstance, record: RecordRequest): void {
  app.decorateRequest('outcome', null);
  app.addHook('onResponse', async (request, reply) => {
    record(request, reply, request.is404 ? null : (request.routeOptions.url ?? null));
  });
}
