// /openapi.json, generated from the routes' schemas, and /docs, a page that renders it. The page's content security
// policy allows requests to this service only (ADR 0020).
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { DescribedRoute } from '../front/operation.ts';
import { openApiDocument } from './document.ts';
import { readExamples } from './examples.ts';

// Links in the page are relative, to work under a path prefix: they resolve to /reference.js from /docs, and to
// /docs/reference.js from /docs/.
const PAGE = [
  { paths: ['/docs'], file: 'reference.html', type: 'text/html; charset=utf-8' },
  { paths: ['/reference.js', '/docs/reference.js'], file: 'reference.js', type: 'text/javascript; charset=utf-8' },
  { paths: ['/reference.css', '/docs/reference.css'], file: 'reference.css', type: 'text/css; charset=utf-8' },
];

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function referencePage(
  app: FastifyInstance,
  operations: readonly DescribedRoute[],
  publicUrl: () => string,
): void {
  // Cached: generating the document takes some milliseconds, and the page is public.
  let document: string | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(operations, readExamples(), publicUrl()));
    return reply.type('application/json; charset=utf-8').send(document);
  });
  for (const { paths, file, type } of PAGE) {
    const content = readFileSync(new URL(`../../console/${file}`, import.meta.url), 'utf8');
    for (const path of paths) {
      app.get(path, { schema: { hide: true } }, async (_request, reply) =>
        reply.type(type).header('content-security-policy', CONTENT_SECURITY_POLICY).send(content),
      );
    }
  }
}
