// A bound on the requests served at once. Beyond it the answer is `service_busy`, at once, instead of a queue that
// grows until the memory ends. Health checks pass, or an orchestrator would kill a service for being busy.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../domain/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    isHealthCheck?: true;
  }
}

export function limitConcurrency(app: FastifyInstance, maxRequests: number): void {
  let underWay = 0;
  app.addHook('onRequest', async (request) => {
    underWay += 1;
    if (underWay > maxRequests && !request.routeOptions.config.isHealthCheck) {
      throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    }
  });
  app.addHook('onResponse', async () => {
    underWay -= 1;
  });
}
