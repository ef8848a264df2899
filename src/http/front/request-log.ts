// One wide log line and one metric per request, including requests whose caller disconnected before the response.
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Log, RequestLine } from '../../kernel/log.ts';

export interface RequestMetrics {
  requestFinished(facts: { method: string; route: string; status: number; seconds: number }): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The error code that was sent; null on success. */
    outcome: string | null;
  }
}

/** The caller closed the connection before the response; 499 is nginx's status for that. */
const CALLER_DISCONNECTED = { status: 499, code: 'aborted' };

export type RecordRequest = (line: Omit<RequestLine, 'event'>) => void;

export function requestRecorder(log: Log, metrics: RequestMetrics): RecordRequest {
  return (line) => {
    // A trusted proxy may forward any text; only an IP address is logged.
    log({ event: 'request', ...line, remote: isIP(line.remote) ? line.remote : '' });
    const { method, route, status, ms } = line;
    metrics.requestFinished({ method, route: route ?? 'none', status, seconds: ms / 1000 });
  };
}

/** Call before adding other hooks: a hook that throws earlier would leave no log line. */
export function recordRequests(app: FastifyInstance, record: RecordRequest): void {
  app.decorateRequest('outcome', null);
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    recordWhenClosed(reply, route, record);
    done();
  });
}

/** `route` is the pattern, never the URL: a caller may have put a secret there. */
export function recordWhenClosed(reply: FastifyReply, route: string | null, record: RecordRequest): void {
  const { request } = reply;
  // Fastify's elapsed time is available only with its logger.
  const begunAt = performance.now();
  // Read now: a closed socket has no remote address.
  const remote = request.ip ?? '';
  reply.raw.once('close', () => {
    const outcome = reply.raw.writableFinished
      ? { status: reply.statusCode, code: request.outcome ?? 'success' }
      : CALLER_DISCONNECTED;
    record({
      request_id: request.id,
      method: request.method,
      route,
      ...outcome,
      ms: Math.round((performance.now() - begunAt) * 1000) / 1000,
      account_id: request.caller?.account.id ?? null,
      key_id: request.caller?.credential.keyId ?? null,
      remote,
    });
  });
}
