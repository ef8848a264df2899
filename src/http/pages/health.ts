// /healthz is liveness: the process answers. /readyz is readiness: a durable write, and a key for every sealed value.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { success } from '../front/reply.ts';

// The check is cached for this long, however often /readyz is polled.
const PROBE_EVERY_MS = 1_000;

/** Resolves with what an operator should know of a service that is ready, if anything. Refuses with `service_busy`. */
export type CheckReady = () => Promise<Readonly<Record<string, unknown>>>;

export function healthEndpoints(app: FastifyInstance, checkReady: CheckReady): void {
  let last: { readonly at: number; readonly result: ReturnType<CheckReady> } | undefined;
  const probe = () => {
    if (!last || performance.now() - last.at >= PROBE_EVERY_MS) last = { at: performance.now(), result: checkReady() };
    return last.result;
  };

  const options = { config: { isHealthCheck: true }, schema: { hide: true } } as const;
  app.get('/healthz', options, async () => success({ status: 'alive' }));
  app.get('/readyz', options, async () => {
    if (app.drain.isDraining) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    return success({ status: 'ready', ...(await probe()) });
  });
}
