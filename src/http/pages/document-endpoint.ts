// /openapi.json, generated from the routes' schemas.
import type { FastifyInstance } from 'fastify';
import type { DescribedRoute } from '../front/operation.ts';
import { openApiDocument } from './document.ts';
import { readExamples } from './examples.ts';

export function documentEndpoint(
  app: FastifyInstance,
  operations: readonly DescribedRoute[],
  publicUrl: () => string,
): void {
  // Cached: generating the document takes some milliseconds, and it is public.
  let document: string | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(operations, readExamples(), publicUrl()));
    return reply.type('application/json; charset=utf-8').send(document);
  });
}
