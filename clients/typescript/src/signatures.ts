// What each operation takes and returns, as types: derived from the document's types, so that none is written by hand.
import type { components, operations, paths } from './openapi.ts';
import { OPERATIONS } from './operations.ts';

/** Every named schema of the document, as in `Schemas['ReissueRequest']`. */
export type Schemas = components['schemas'];

type Table = typeof OPERATIONS;
export type OperationId = keyof Table;

/** A row of the table, as the client reads it. */
export interface Operation {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly takesBody?: true;
  readonly takesIdempotencyKey?: true;
  /** The field of an answer that holds the entries of a page. */
  readonly entries?: string;
}

type HeadersOf<O extends OperationId> = NonNullable<operations[O]['parameters']['header']>;
type TakesKey<O extends OperationId> = [HeadersOf<O>] extends [never]
  ? false
  : 'Idempotency-Key' extends keyof HeadersOf<O>
    ? true
    : false;

/** `never`, to which no row can be assigned, where a row says something else than the types of the document. */
type CheckedRow<O extends OperationId> = Table[O] extends {
  method: infer M extends string;
  path: infer P extends keyof paths;
}
  ? paths[P][Lowercase<M> & keyof paths[P]] extends operations[O]
    ? TakesKey<O> extends (Table[O] extends { takesIdempotencyKey: true } ? true : false)
      ? Operation
      : never
    : never
  : never;

/** The table, compared with the types by the compiler. */
export const TABLE: Readonly<Record<OperationId, Operation>> = OPERATIONS satisfies {
  readonly [O in OperationId]: CheckedRow<O>;
};

export interface Limits {
  /** Requests for one call, the first included. */
  readonly tries: number;
  /** For each request and its answer. */
  readonly attemptMs: number;
  /** For a call with all its requests and waits. */
  readonly totalMs: number;
}

export interface CallOptions {
  /** Ends the call, also while it waits for its next try; it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  readonly limits?: Partial<Limits>;
}

type KeyOption<O extends OperationId> =
  TakesKey<O> extends true
    ? {
        /** Left out: a random one per call, the same in all its tries. Give your own to repeat a call after a crash. */
        readonly idempotencyKey?: string;
      }
    : object;
type HeaderOption<O extends OperationId> = [Exclude<keyof HeadersOf<O>, 'Idempotency-Key'>] extends [never]
  ? object
  : [HeadersOf<O>] extends [never]
    ? object
    : { readonly headers?: Omit<HeadersOf<O>, 'Idempotency-Key'> };
type QueryOption<O extends OperationId> = [NonNullable<operations[O]['parameters']['query']>] extends [never]
  ? object
  : NonNullable<operations[O]['parameters']['query']>;

/** The query parameters by their names, and what concerns the call itself. */
export type Options<O extends OperationId> = CallOptions & KeyOption<O> & HeaderOption<O> & QueryOption<O>;

type PathArguments<P extends string> = P extends `${string}{${string}}${infer Rest}`
  ? [id: string, ...PathArguments<Rest>]
  : [];

type BodyArguments<O extends OperationId> = operations[O] extends { requestBody: { content: Json<infer B> } }
  ? [body: Frozen<B>]
  : operations[O] extends { requestBody?: { content: Json<infer B> } }
    ? Table[O] extends { takesBody: true }
      ? [body?: Frozen<B>]
      : []
    : [];

/** The client changes no body, so constants are welcome. */
type Frozen<T> = T extends readonly (infer E)[]
  ? readonly Frozen<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

interface Json<T> {
  'application/json': T;
}

type Content<O extends OperationId> = operations[O] extends { responses: { 200: { content: Json<infer T> } } }
  ? T
  : undefined;

/** What a call resolves to: the data of the envelope; in the signing API, which has none, the whole answer. */
export type Answer<O extends OperationId> = Content<O> extends { code: 'success'; data: infer D } ? D : Content<O>;

type Entry<O extends OperationId> = Table[O] extends { entries: infer F extends string }
  ? Answer<O> extends Readonly<Record<F, readonly (infer E)[]>>
    ? E
    : never
  : never;

/** Awaited, it is one page. Iterated, it is every entry from there on; pages are asked for as they are needed. */
export type Pages<Page, E> = Promise<Page> & AsyncIterable<E>;

type Result<O extends OperationId> = Table[O] extends { entries: string }
  ? Pages<Answer<O>, Entry<O>>
  : Promise<Answer<O>>;

/** The ids of its path, its body if it takes one, and options. */
export type Call<O extends OperationId> = (
  ...input: [...PathArguments<Table[O]['path']>, ...BodyArguments<O>, options?: Options<O>]
) => Result<O>;
