// Serves the files of the console and of the reference page. Their addresses carry a digest of all of them and are cached for
// ever. The content security policy allows this service and nothing else (ADR 0065).
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

/** A file of src/console with its addresses filled in, and the policy it is served under. */
export interface PageFile {
  readonly html: string;
  readonly policy: string;
}
/** `root` leads from the page to the service's root, as addresses in it are relative: '', or '../'. */
export type RenderPage = (file: string, root: string, entry?: string) => PageFile;

/** Serves the assets; returns what makes the pages that use them. */
export function consoleAssets(app: FastifyInstance): RenderPage {
  const assets = [...ownFiles(), ...LIBRARIES.map(library)];
  const digest = createHash('sha256');
  for (const { path, source } of assets) digest.update(`${path}\0${source}\0`);
  const folder = `console/assets/${digest.digest('hex').slice(0, 16)}`;

  for (const { path, type, source } of assets) {
    let content: string | undefined;
    app.get(`/${folder}/${path}`, { schema: { hide: true } }, async (_request, reply) => {
      content ??= path.endsWith('.ts') ? stripTypeScriptTypes(source) : source;
      return secured(reply, contentSecurityPolicy())
        .header('cache-control', 'public, max-age=31536000, immutable')
        .type(type)
        .send(content);
    });
  }
  // A checkout has an entry in TypeScript, a package has it without types.
  const address = (entry: string) => assets.find(({ path }) => path.replace(/\.[jt]s$/, '') === entry)?.path;
  return (file, root, entry) => renderPage(file, `${root}${folder}`, entry && address(entry));
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

const readPage = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');

/** A page without an entry has no script. */
function renderPage(file: string, base: string, entry: string | undefined): PageFile {
  const head = readPage('head.html');
  const page = (script: string) =>
    readPage(file)
      .replace('<!-- head -->', head.replace('<!-- importmap -->', script).trimEnd())
      .replaceAll('{{assets}}', base);
  if (entry === undefined) return { html: page(''), policy: contentSecurityPolicy("script-src 'none'") };
  const imports = JSON.stringify({
    // An address without a scheme must begin with a dot here.
    imports: Object.fromEntries(LIBRARIES.map((name) => [name, `./${base}/${libraryPath(name)}`])),
  });
  const digest = createHash('sha256').update(imports).digest('base64');
  return {
    html: page(
      `<script type="importmap">${imports}</script>\n    <script type="module" src="${base}/${entry}"></script>`,
    ),
    policy: contentSecurityPolicy(`script-src 'self' 'sha256-${digest}'`),
  };
}

/** Trusted Types: no string becomes markup or code, even if a page had a fault. */
const contentSecurityPolicy = (script = "script-src 'self'"): string =>
  [
    "default-src 'none'",
    script,
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

export const secured = (reply: FastifyReply, policy: string): FastifyReply =>
  reply.headers({
    'content-security-policy': policy,
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  });
