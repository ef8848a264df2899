// One wide log line and one metric per request, including requests whose caller disconnected before the response. Probes
// that succeed leave only the metric, unless the operator wants them.
import { isIP } from 'node:net';
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Account } from '../../domain/access/account.ts';
import { type CertificateId, isId, type OrderId } from '../../domain/ids.ts';
import type { Log, RequestLine } from '../../kernel/log.ts';
import { CONSOLE_API } from './operation.ts';

export interface RequestMetrics {
  requestFinished(facts: { method: string; route: string; status: number; seconds: number; code: string }): void;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the id in the path is of, which the log line names. */
    names?: 'order' | 'certificate' | undefined;
  }
  interface FastifyRequest {
    /** What the route says of itself. Fastify puts `routeOptions` together anew each time. */
    route: FastifyContextConfig;
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

export type RecordRequest = (line: RequestLine) => void;

export function requestRecorder(log: Log, metrics: RequestMetrics, logsProbes: boolean): RecordRequest {
  return (line) => {
    const isSilent = !logsProbes && line.status === 200 && PROBES.has(line.route ?? '');
    if (!isSilent) log(line);
    const { method, route, status, code, ms } = line;
    metrics.requestFinished({ method, route: route ?? 'none', status, code, seconds: ms / 1000 });
  };
}

/** Call before adding other hooks: a hook that throws earlier would leave no log line. */
export function recordRequests(app: FastifyInstance, record: RecordRequest): void {
  for (const name of ['outcome', 'refusedField', 'orderId', 'certificateId', 'presentedKeyId', 'tenant'] as const) {
    app.decorateRequest(name, null);
  }
  app.decorateRequest('route');
  app.addHook('onRoute', (route) => {
    const [, kind] = NAMING.find(([prefix]) => route.url.startsWith(prefix)) ?? [];
    route.config = { ...route.config, names: kind };
  });
  app.addHook('onRequest', (request, reply, done) => {
    const { url = null, config } = request.routeOptions;
    request.route = config;
    recordWhenClosed(reply, url, record);
    done();
  });
}

const NAMING = ['/openapi/v3', `${CONSOLE_API}/account`].flatMap((mount) => [
  [`${mount}/orders/:id`, 'order'] as const,
  [`${mount}/certs/:id`, 'certificate'] as const,
]);

/** The id in the path, if it has the form of one: other texts may be secrets that were pasted into the wrong place. */
function pathId({ params, route }: FastifyRequest, kind: FastifyContextConfig['names']): string | null {
  if (route?.names !== kind) return null;
  const { id = '' } = (params ?? {}) as { readonly id?: string };
  return isId(id) ? id : null;
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
  // Read now: a closed socket has no remote address. A trusted proxy may forward any text; only an IP address is logged.
  const { ip = '' } = request;
  const remote = isIP(ip) ? ip : '';
  reply.raw.on('close', () => {
    const isAnswered = reply.raw.writableFinished;
    const status = isAnswered ? reply.statusCode : CALLER_DISCONNECTED.status;
    record({
      event: 'request',
      request_id: request.id,
      method: request.method,
      route,
      status,
      code: isAnswered ? (request.outcome ?? 'success') : CALLER_DISCONNECTED.code,
      ms: Math.round((performance.now() - begunAt) * 1000) / 1000,
      account_id: (request.caller?.account ?? request.tenant)?.id ?? null,
      // With 401 the key id is as doubtful as the secret; with 403 the secret was right.
      key_id: request.caller?.credential.keyId ?? (status === 403 ? (request.presentedKeyId ?? null) : null),
      remote,
      order_id: request.orderId ?? pathId(request, 'order'),
      certificate_id: request.certificateId ?? pathId(request, 'certificate'),
      field: request.refusedField ?? null,
      caller_request_id: callerRequestId(request),
    });
  });
}
