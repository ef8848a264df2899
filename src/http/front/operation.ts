// What a route says about its operation, beyond what Fastify reads: the OpenAPI document is made from it. A route that
// says too little stops the service at start-up, and so every test.
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { type Action, CREDENTIAL_KINDS, isPermitted } from '../../domain/access/credential.ts';
import type { ErrorCode } from '../../domain/errors.ts';

export const TAGS = {
  orders: 'Place orders, reissue their certificates, follow and cancel them.',
  validation: 'Prove control of the names of an order, and see what is missing.',
  certificates: 'Fetch certificates, revoke them, and change scheduled revocations.',
  catalog: 'What can be ordered, and what each product allows.',
  callbacks: 'Where events are sent, tests of it, and what became of each event.',
  account: 'The account of the API key, and what was done in it.',
  'cloud keys': 'Private keys that the service holds; signing with them is under `signing`.',
  signing: 'Sign with cloud-held keys, by the Cloud Signature Consortium API.',
} as const;
export type Tag = keyof typeof TAGS;

declare module 'fastify' {
  interface FastifySchema {
    /** Not in the document: pages, probes and what verifiers fetch. */
    hide?: boolean;
    /** As a person would name the method of a client. Stable: generated clients are written against it. */
    operationId?: string;
    tags?: readonly [Tag];
    summary?: string;
    description?: string;
    /** Codes of this operation, beside those that every operation may answer. */
    errors?: readonly ErrorCode[];
    /** Instead of the two headers; empty for none. */
    security?: readonly Readonly<Record<string, readonly string[]>>[];
    'x-reseal-extension'?: true;
    /** The list is answered as CSV, too. */
    'x-csv'?: true;
    'x-optional-body'?: true;
  }
}

/** Under it are the operations of the console, which the document does not list. */
export const CONSOLE_API = '/console/api';

/** What every operation may answer. */
const EVERYWHERE = [
  'invalid_parameters',
  'unauthenticated_request',
  'api_key_disabled',
  'account_suspended',
  'request_too_fast',
  'service_internal_error',
  'service_busy',
] as const satisfies readonly ErrorCode[];

/** All codes that the operation may answer; undefined if the route declares none, because its errors have another form. */
export function codesOf(schema: FastifySchema | undefined, action: Action | undefined): Set<ErrorCode> | undefined {
  if (!schema?.errors) return undefined;
  const isLimited = action !== undefined && !CREDENTIAL_KINDS.every((kind) => isPermitted(kind, action));
  return new Set([...EVERYWHERE, ...(isLimited ? ['permission_denied' as const] : []), ...schema.errors]);
}

export interface DescribedRoute {
  readonly method: string;
  /** With parameters as Fastify writes them. */
  readonly url: string;
  readonly action: Action | undefined;
  readonly schema: FastifySchema;
}

/** Call before registering any route. The list is complete once the server is ready. */
export function collectOperations(app: FastifyInstance): readonly DescribedRoute[] {
  const operations: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url, config, schema = {} }) => {
    // Fastify adds a HEAD to every GET.
    if (schema.hide || method === 'HEAD' || url.startsWith(`${CONSOLE_API}/`)) return;
    requireDescription({ method, url, schema });
    if (operations.some((one) => one.schema.operationId === schema.operationId)) {
      throw new Error(`two routes have the operationId ${schema.operationId}`);
    }
    operations.push({ method: String(method), url, action: config?.action, schema });
  });
  return operations;
}

function requireDescription({ method, url, schema }: Pick<RouteOptions, 'method' | 'url' | 'schema'>): void {
  const { operationId, tags, summary, description, errors, response } = schema ?? {};
  const missing = Object.entries({ operationId, tags, summary, description, response }).flatMap(([name, value]) =>
    value === undefined ? [name] : [],
  );
  const statuses = Object.keys(response ?? {});
  if (!errors && !statuses.some((status) => status.startsWith('4'))) missing.push('errors');
  if (missing.length > 0) throw new Error(`the route ${method} ${url} declares no ${missing.join(', no ')}`);
}
