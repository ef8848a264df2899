// /openapi.json, generated from the routes' schemas, and /docs, a page that renders it. The page's content security
// policy allows requests to this service only (ADR 0020).
import { readFileSync } from 'node:fs';
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';

export function openApiDocument(publicUrl: () => string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Reseal',
        version: '3',
        description:
          'Certificate order service. Every answer is JSON: `{"code":"success","data":…}`, or an error whose `code` says what is wrong. Companions are operations of ours around the specified interface, marked `x-reseal-extension`.',
      },
      components: {
        securitySchemes: {
          keyId: { type: 'apiKey', in: 'header', name: 'X-CC-Key-ID' },
          authKey: { type: 'apiKey', in: 'header', name: 'X-CC-Auth-Key' },
        },
      },
      // One object with two names: both headers are required.
      security: [{ keyId: [], authKey: [] }],
    },
    transformObject: (document) => ({
      ...('openapiObject' in document ? withOptionalBodies(document.openapiObject as Operations) : {}),
      servers: [{ url: publicUrl() }],
    }),
  } as FastifyDynamicSwaggerOptions;
}

interface Operations {
  paths?: Record<string, Record<string, { 'x-optional-body'?: true; requestBody?: { required?: boolean } }>>;
}

/** Fastify marks every body with a schema as required; routes with an optional body set `x-optional-body`. */
function withOptionalBodies(document: Operations): Operations {
  for (const operation of Object.values(document.paths ?? {}).flatMap((path) => Object.values(path))) {
    if (operation['x-optional-body'] && operation.requestBody) operation.requestBody.required = false;
    delete operation['x-optional-body'];
  }
  return document;
}

// Links in the page are relative, to work under a path prefix: they resolve to /reference.js from /docs, and to
// /docs/reference.js from /docs/.
const PAGE = [
  { paths: ['/docs'], file: 'reference.html', type: 'text/html; charset=utf-8' },
  { paths: ['/reference.js', '/docs/reference.js'], file: 'reference.js', type: 'text/javascript; charset=utf-8' },
  { paths: ['/reference.css', '/docs/reference.css'], file: 'reference.css', type: 'text/css; charset=utf-8' },
];

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function referencePage(app: FastifyInstance): void {
  // Cached: generating the document takes tens of milliseconds, and the page is public.
  let document: string | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= JSON.stringify(app.swagger());
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
