// One wide line and one metric per request, whatever became of it: also when the caller left before the answer.
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Log, RequestLine } from '../../kernel/log.ts';

export interface RequestMetrics {
  requestFinished(facts: { method: string; route: string; status: number; seconds: number }): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the error that was sent; null for everything that went well. */
    outcome: string | null;
  }
}

/** Nobody was there to read the answer: the status some servers log for that. */
const CALLER_LEFT = { status: 499, code: 'aborted' };

export type RecordRequest = (line: Omit<RequestLine, 'event'>) => void;

export function requestRecorder(log: Log, metrics: RequestMetrics): RecordRequest {
  return (line) => {
    // A trusted proxy may forward anything; only an address is worth a place in the log.
    log({ event: 'request', ...line, remote: isIP(line.remote) ? line.remote : '' });
    const { method, route, status, ms } = line;
    metrics.requestFinished({ method, route: route ?? 'none', status, seconds: ms / 1000 });
  };
}

/** Must be the first of the hooks: one that throws before it would leave no line. */
export function recordRequests(app: FastifyInstance, record: RecordRequest): void {
  app.decorateRequest('outcome', null);
  app.addHook('onRequest', async (request, reply) => {
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    recordWhenClosed(request, reply, route, record);
  });
}

/** `route` is the pattern, never the address: what callers put there is theirs. */
export function recordWhenClosed(
  request: FastifyRequest,
  reply: FastifyReply,
  route: string | null,
  record: RecordRequest,
): void {
  // Fastify's own stopwatch runs only while its logger does.
  const begunAt = performance.now();
  // Once the connection is gone, nobody can tell any more who it was.
  const remote = request.ip ?? '';
  reply.raw.once('close', () => {
    const answer = reply.raw.writableFinished
      ? { status: reply.statusCode, code: request.outcome ?? 'success' }
      : CALLER_LEFT;
    record({
      request_id: request.id,
      method: request.method,
      route,
      ...answer,
      ms: Math.round((performance.now() - begunAt) * 1000) / 1000,
      account_id: request.caller?.account.id ?? null,
      key_id: request.caller?.credential.keyId ?? null,
      remote,
    });
  });
}
