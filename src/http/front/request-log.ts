// One wide log line and one metric per request, including requests whose caller disconnected before the response. Probes
// that succeed leave only the metric, unless the operator wants them.
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Account } from '../../domain/access/account.ts';
import { type CertificateId, type OrderId, timeOf } from '../../domain/ids.ts';
import type { Log, RequestLine } from '../../kernel/log.ts';
import { CONSOLE_API } from './operation.ts';

export interface RequestMetrics {
  requestFinished(facts: { method: string; route: string; status: number; seconds: number; code: string }): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The error code that was sent; null on success. */
    outcome: string | null;
    /** The request field that was refused. */
    refusedField: string | null;
    /** Set by operations whose answer names what the path does not. */
    orderId: OrderId | null;
    certificateId: CertificateId | null;
    /** Of requests that authenticate without an API key. */
    tenant: Account | null;
  }
}

/** The caller closed the connection before the response; 499 is nginx's status for that. */
const CALLER_DISCONNECTED = { status: 499, code: 'aborted' };

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

export type RecordRequest = (line: Omit<RequestLine, 'event'>) => void;

export function requestRecorder(log: Log, metrics: RequestMetrics, logsProbes: boolean): RecordRequest {
  return (line) => {
    const isSilent = !logsProbes && line.status === 200 && PROBES.has(line.route ?? '');
    // A trusted proxy may forward any text; only an IP address is logged.
    if (!isSilent) log({ event: 'request', ...line, remote: isIP(line.remote) ? line.remote : '' });
    const { method, route, status, code, ms } = line;
    metrics.requestFinished({ method, route: route ?? 'none', status, code, seconds: ms / 1000 });
  };
}

/** Call before adding other hooks: a hook that throws earlier would leave no log line. */
export function recordRequests(app: FastifyInstance, record: RecordRequest): void {
  for (const name of ['outcome', 'refusedField', 'orderId', 'certificateId', 'presentedKeyId', 'tenant'] as const) {
    app.decorateRequest(name, null);
  }
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    recordWhenClosed(reply, route, record);
    done();
  });
}

const PREFIXES = ['/openapi/v3', `${CONSOLE_API}/account`];

/** The id in the path, if it has the form of one: other texts may be secrets that were pasted into the wrong place. */
function pathId({ params }: FastifyRequest, route: string | null, prefix: string): string | null {
  const { id } = (params ?? {}) as { readonly id?: string };
  const isThere = PREFIXES.some((mount) => route?.startsWith(`${mount}${prefix}`));
  return id !== undefined && isThere && timeOf(id) !== undefined ? id : null;
}

/** Printable, without blanks, quotes and backslashes. */
const CALLER_ID = /^[!#-&(-[\]-~]{1,128}$/;

function callerRequestId({ headers }: FastifyRequest): string | null {
  const id = headers['x-request-id'];
  return typeof id === 'string' && CALLER_ID.test(id) ? id : null;
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
      account_id: (request.caller?.account ?? request.tenant)?.id ?? null,
      // With 401 the key id is as doubtful as the secret; with 403 the secret was right.
      key_id: request.caller?.credential.keyId ?? (outcome.status === 403 ? (request.presentedKeyId ?? null) : null),
      remote,
      order_id: request.orderId ?? pathId(request, route, '/orders/:id'),
      certificate_id: request.certificateId ?? pathId(request, route, '/certs/:id'),
      field: request.refusedField ?? null,
      caller_request_id: callerRequestId(request),
    });
  });
}
