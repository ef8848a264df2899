// Writes what the typed client has from the OpenAPI document: openapi.ts, its types, made by openapi-typescript, and
// operations.ts, a table of what types do not say at run time. The tool needs another major version of the compiler than
// ours, so it is run by npx, pinned, and is no dependency of the project.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { newFolder, startApp } from '../test/support/app.ts';
import {
  type DocumentedOperation,
  dereferenced,
  documentOf,
  type Json,
  operationsIn,
} from '../test/support/document.ts';

const TOOL = ['--yes', '-p', 'openapi-typescript@7.13.0', '-p', 'typescript@5.9.3', 'openapi-typescript'];
/** What has a default may be left out of a request. */
const OPTIONS = ['--default-non-nullable', 'false'];
const TYPES_FILE = new URL('../clients/typescript/src/openapi.ts', import.meta.url).pathname;
const TABLE_FILE = new URL('../clients/typescript/src/operations.ts', import.meta.url).pathname;

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

/** Whether types and table were made from this document, and not changed by hand. */
export function areTypesOf(document: Json): boolean {
  const [, first = '', types = ''] = /^(.*\n)([\s\S]*)$/.exec(readFileSync(TYPES_FILE, 'utf8')) ?? [];
  return first === headerOf(document, types) && readFileSync(TABLE_FILE, 'utf8') === tableOf(document);
}

/** How each operation is called, and the codes that have a type. */
function tableOf(document: Json): string {
  const resolved = dereferenced(document);
  const codes = Object.values<Json>(resolved.components.schemas).flatMap(({ properties = {} }) =>
    properties.request_id ? (properties.code?.enum ?? []) : [],
  );
  return [
    '// Made by npm run record-types from the OpenAPI document: how each operation is called, and the codes of its errors.',
    'export const OPERATIONS = {',
    ...operationsIn(resolved).map(rowOf),
    '} as const;',
    '',
    'export const ERROR_CODES = [',
    ...[...new Set<string>(codes)].sort().map((code) => `  '${code}',`),
    '] as const;',
    '',
  ].join('\n');
}

function rowOf({ method, path, operation }: DocumentedOperation): string {
  const { operationId, summary, description, parameters = [], requestBody } = operation;
  const isTaken = (place: string, name: string) =>
    parameters.some((one: Json) => one.in === place && one.name.toLowerCase() === name);
  const row = {
    method: `'${method}'`,
    path: `'${path}'`,
    ...(requestBody && { takesBody: true }),
    ...(isTaken('header', 'idempotency-key') && { takesIdempotencyKey: true }),
    ...(method === 'GET' && isTaken('query', 'after') && { entries: `'${entriesIn(operation)}'` }),
  };
  const fields = Object.entries(row).map(([name, value]) => `${name}: ${value}`);
  const comment = `${summary}\n\n${description}`.replaceAll('*/', '* /').replace(/\n/g, '\n   * ');
  return `  /**\n   * ${comment}\n   */\n  ${operationId}: { ${fields.join(', ')} },`.replace(/ +$/gm, '');
}

/** The field of a page that holds its entries: the only list beside `next_after`. */
function entriesIn({ operationId, responses }: Json): string {
  const { properties } = responses[200].content['application/json'].schema.properties.data;
  const lists = Object.keys(properties).filter((name) => properties[name].type === 'array');
  if (lists.length !== 1 || !properties.next_after) throw new Error(`the answer of ${operationId} is not a page`);
  return lists[0]!;
}

async function record(): Promise<void> {
  await using app = await startApp();
  const document = await documentOf(app);
  const file = join(newFolder(), 'openapi.json');
  writeFileSync(file, JSON.stringify(typedPart(document)));
  mkdirSync(dirname(TYPES_FILE), { recursive: true });
  execFileSync('npx', [...TOOL, file, ...OPTIONS, '--output', TYPES_FILE], { stdio: 'inherit' });
  const types = readFileSync(TYPES_FILE, 'utf8');
  writeFileSync(TYPES_FILE, headerOf(document, types) + types);
  writeFileSync(TABLE_FILE, tableOf(document));
}

if (process.argv[1] === new URL(import.meta.url).pathname) await record();
