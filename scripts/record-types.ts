// Writes clients/typescript/src/openapi.ts: the types of the OpenAPI document, made by openapi-typescript. The tool needs
// another major version of the compiler than ours, so it is run by npx, pinned, and is no dependency of the project.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { newFolder, startApp } from '../test/support/app.ts';
import { documentOf, type Json } from '../test/support/document.ts';

const TOOL = ['--yes', '-p', 'openapi-typescript@7.13.0', '-p', 'typescript@5.9.3', 'openapi-typescript'];
export const TYPES_FILE = new URL('../clients/typescript/src/openapi.ts', import.meta.url).pathname;

/** Without what types do not depend on: examples, and the address of the service. */
function typedPart(node: Json, key = ''): Json {
  if (Array.isArray(node)) return node.map((one) => typedPart(one));
  // A field may be called `examples`: only what describes a value is left out.
  if (node === null || typeof node !== 'object') return node;
  const entries = Object.entries<Json>(node).filter(
    ([name]) => key === 'properties' || !['servers', 'contact', 'example', 'examples'].includes(name),
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, typedPart(value, name)]));
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The first line of the file: what it was made from, and what it says. */
const headerOf = (document: Json, types: string): string =>
  `// Made by npm run record-types. Document: ${digestOf(JSON.stringify(typedPart(document)))}. Types: ${digestOf(types)}.\n`;

/** Whether the types were made from this document, and not changed by hand. */
export function areTypesOf(document: Json): boolean {
  const [, first = '', types = ''] = /^(.*\n)([\s\S]*)$/.exec(readFileSync(TYPES_FILE, 'utf8')) ?? [];
  return first === headerOf(document, types);
}

async function record(): Promise<void> {
  await using app = await startApp();
  const document = await documentOf(app);
  const file = join(newFolder(), 'openapi.json');
  writeFileSync(file, JSON.stringify(typedPart(document)));
  mkdirSync(dirname(TYPES_FILE), { recursive: true });
  execFileSync('npx', [...TOOL, file, '--output', TYPES_FILE], { stdio: 'inherit' });
  const types = readFileSync(TYPES_FILE, 'utf8');
  writeFileSync(TYPES_FILE, headerOf(document, types) + types);
}

if (process.argv[1] === new URL(import.meta.url).pathname) await record();
