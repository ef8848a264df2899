// The OpenAPI document as tests read it: every reference replaced by what it stands for.
import type { TestApp } from './app.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into every part of the document, and assert what they find.
export type Json = any;

/** Our schemas are not recursive. */
export function dereferenced(document: Json, node: Json = document): Json {
  if (Array.isArray(node)) return node.map((one) => dereferenced(document, one));
  if (node === null || typeof node !== 'object') return node;
  const { $ref, ...rest } = node;
  const target = typeof $ref === 'string' ? dereferenced(document, atPointer(document, $ref)) : {};
  return {
    ...target,
    ...Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, dereferenced(document, one)])),
  };
}

function atPointer(document: Json, pointer: string): Json {
  const keys = pointer.split('/').slice(1);
  const found = keys.reduce((node, key) => node?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], document);
  if (found === undefined) throw new Error(`the document has no ${pointer}`);
  return found;
}

export const documentOf = async (app: TestApp): Promise<Json> => (await app.call('GET', '/openapi.json')).body;

/** Its paths, without references. */
export async function pathsOf(app: TestApp): Promise<Json> {
  const document = await documentOf(app);
  return dereferenced(document, document.paths);
}

export interface DocumentedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: Json;
}

export const operationsIn = (document: Json): DocumentedOperation[] =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
