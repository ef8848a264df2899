// /healthz: the process answers. /readyz: it can also do its work, which means a durable write, not a guess.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { success } from '../front/reply.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Set before the server stops listening, so that whoever asks meanwhile is sent elsewhere. */
    readonly drain: { isDraining: boolean };
  }
}

// However often it is asked, the probe writes at most once a second.
const PROBE_EVERY_MS = 1_000;

export function healthEndpoints(app: FastifyInstance, probeWrite: () => Promise<void>): void {
  const drain = { isDraining: false };
  app.decorate('drain', drain);
  app.addHook('preClose', async () => {
    drain.isDraining = true;
  });
  // Whoever keeps a connection open through a shutdown is told to let go of it.
  app.addHook('onSend', async (_request, reply) => {
    if (drain.isDraining) reply.header('connection', 'close');
  });

  let last = { at: Number.NEGATIVE_INFINITY, result: Promise.resolve() };
  const probe = () => {
    if (performance.now() - last.at >= PROBE_EVERY_MS) last = { at: performance.now(), result: probeWrite() };
    return last.result;
  };

  const options = { config: { isHealthCheck: true }, schema: { hide: true } } as const;
  app.get('/healthz', options, async () => success({ status: 'alive' }));
  app.get('/readyz', options, async () => {
    if (drain.isDraining) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    await probe();
    return success({ status: 'ready' });
  });
}
