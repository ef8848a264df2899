// Serves the console's files. Their addresses carry a digest of all of them and are cached for ever; the page itself is read
// again each time. The content security policy allows this service and nothing else (ADR 0065).
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply } from 'fastify';

const FOLDER = new URL('../../console/', import.meta.url);

/** Modules of packages that the browser loads, by the names they are imported by. */
const LIBRARIES = ['preact', 'preact/hooks', '@preact/signals', '@preact/signals-core'];

const SCRIPT = 'text/javascript; charset=utf-8';
const TYPES: Readonly<Record<string, string>> = { css: 'text/css; charset=utf-8', ts: SCRIPT, js: SCRIPT };

interface Asset {
  readonly path: string;
  readonly type: string;
  readonly source: string;
}

export function consoleAssets(app: FastifyInstance): void {
  const assets = [...ownFiles(), ...LIBRARIES.map(library)];
  const digest = createHash('sha256');
  for (const { path, source } of assets) digest.update(`${path}\0${source}\0`);
  const version = digest.digest('hex').slice(0, 16);
  const { page, policy } = indexPage(`assets/${version}`, assets);

  app.get('/console', { schema: { hide: true } }, async (request, reply) => {
    // Links in the page are relative, to work under a path prefix; they need the slash.
    if (!request.raw.url?.split('?', 1)[0]?.endsWith('/')) return reply.redirect('console/', 308);
    return secured(reply, policy).header('cache-control', 'no-cache').type('text/html; charset=utf-8').send(page);
  });
  for (const { path, type, source } of assets) {
    let content: string | undefined;
    app.get(`/console/assets/${version}/${path}`, { schema: { hide: true } }, async (_request, reply) => {
      content ??= path.endsWith('.ts') ? stripTypeScriptTypes(source) : source;
      return secured(reply, policy)
        .header('cache-control', 'public, max-age=31536000, immutable')
        .type(type)
        .send(content);
    });
  }
}

/** A checkout has modules in TypeScript, a package has them without types. */
function ownFiles(): Asset[] {
  return globSync('**/*.{ts,js,css}', { cwd: fileURLToPath(FOLDER) })
    .sort()
    .map((path) => ({
      path: path.replaceAll('\\', '/'),
      type: TYPES[path.split('.').at(-1) ?? ''] ?? SCRIPT,
      source: readFileSync(new URL(path, FOLDER), 'utf8'),
    }));
}

const library = (name: string): Asset => ({
  path: libraryPath(name),
  type: SCRIPT,
  source: readFileSync(new URL(import.meta.resolve(name)), 'utf8'),
});

const libraryPath = (name: string): string => `lib/${name.replace('@', '')}.js`;

function indexPage(base: string, assets: readonly Asset[]): { readonly page: string; readonly policy: string } {
  const imports = JSON.stringify({
    imports: Object.fromEntries(LIBRARIES.map((name) => [name, `./${base}/${libraryPath(name)}`])),
  });
  const entry = assets.find(({ path }) => /^app\.[jt]s$/.test(path))?.path ?? 'app.js';
  const page = readFileSync(new URL('index.html', FOLDER), 'utf8')
    .replace('<!-- importmap -->', `<script type="importmap">${imports}</script>`)
    .replace('{{style}}', `${base}/style.css`)
    .replace('{{entry}}', `${base}/${entry}`);
  return { page, policy: contentSecurityPolicy(createHash('sha256').update(imports).digest('base64')) };
}

/** Trusted Types: no string becomes markup or code, even if a page had a fault. */
const contentSecurityPolicy = (importMapDigest: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${importMapDigest}'`,
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

const secured = (reply: FastifyReply, policy: string): FastifyReply =>
  reply.headers({
    'content-security-policy': policy,
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  });
