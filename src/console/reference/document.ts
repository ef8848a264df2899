// The OpenAPI document of this service, read once. The page is drawn from it, so that it says nothing else than the routes do.
import { serviceUrl } from '../shell/api.ts';

/** JSON Schema, as far as the document uses it. */
export interface Schema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

export interface Content {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, { readonly $ref?: string; readonly value?: unknown }>>;
}
export interface Body {
  readonly $ref?: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly content?: Readonly<Record<string, Content>>;
}
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}
interface DescribedOperation {
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly 'x-reseal-extension'?: boolean;
}
export interface Operation extends DescribedOperation {
  /** Its address in the page. Without the version, because other documents link to it. */
  readonly id: string;
  readonly method: Method;
  readonly path: string;
  readonly tag: string;
}
export interface ErrorMeaning {
  readonly status: number;
  readonly en: string;
  readonly zh: string;
}
interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<Method, DescribedOperation>>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: DescribedOperation }>>;
  readonly components: { readonly securitySchemes: Readonly<Record<string, { readonly name?: string }>> };
  readonly 'x-error-codes': Readonly<Record<string, ErrorMeaning>>;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
type Method = (typeof METHODS)[number];

export interface Reference {
  readonly document: ApiDocument;
  readonly operations: readonly Operation[];
  /** The operations by tag, in the order of the document. */
  readonly groups: readonly { readonly tag: string; readonly about: string; readonly members: readonly Operation[] }[];
  readonly events: readonly ApiEvent[];
}
export interface ApiEvent {
  readonly id: string;
  readonly name: string;
  readonly post: DescribedOperation;
}

let root: ApiDocument | undefined;

export const documentUrl = (): string => serviceUrl('openapi.json').href;

export async function readDocument(): Promise<Reference> {
  const response = await fetch(documentUrl(), { signal: AbortSignal.timeout(20_000) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const document: ApiDocument = await response.json();
  root = document;
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method];
      return described ? [{ ...described, id: idOf(method, path), method, path, tag: described.tags?.[0] ?? '' }] : [];
    }),
  );
  return {
    document,
    operations,
    groups: document.tags.flatMap(({ name: tag, description: about = '' }) => {
      const members = operations.filter((one) => one.tag === tag);
      return members.length > 0 ? [{ tag, about, members }] : [];
    }),
    events: Object.entries(document.webhooks).map(([name, { post }]) => ({
      id: `event-${name.replace(/\W/g, '-')}`,
      name,
      post,
    })),
  };
}

export const shortPath = (path: string): string => path.replace(/^\/openapi\/v\d+(?=\/)/, '');
const idOf = (method: Method, path: string) => method + shortPath(path).replace(/\W+/g, '-').replace(/-$/, '');

/** What a reference points to, with what stands beside it. */
export function resolved<T extends { readonly $ref?: string }>(value: T): T {
  const { $ref, ...beside } = value;
  return $ref === undefined ? value : ({ ...(atPointer($ref) as T), ...beside } as T);
}

function atPointer(pointer: string): unknown {
  const keys = pointer.split('/').slice(1);
  const unescaped = (key: string) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~');
  return keys.reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[unescaped(key)], root);
}

/** The first body that is declared; ours have one form, besides CSV. */
export const contentOf = (body: Body | undefined): Content | undefined =>
  body && Object.values(resolved(body).content ?? {})[0];

export const examplesOf = (body: Body | undefined): readonly (readonly [string, unknown])[] =>
  Object.entries(contentOf(body)?.examples ?? {}).map(([name, example]) => [name, resolved(example).value] as const);

export const successOf = ({ responses }: DescribedOperation): readonly [string, Body] =>
  Object.entries(responses).find(([status]) => status.startsWith('2')) ?? ['200', {}];

/** Names of the headers that carry the key, where an operation takes them. */
export function keyHeaders({ document }: Reference, { security = document.security }: DescribedOperation): string[] {
  const named = security.map((way) => Object.keys(way).map((name) => document.components.securitySchemes[name]?.name));
  return (named.find((names) => names.every(Boolean)) ?? []) as string[];
}
