// The client of the service: a method per operation, named as in the document. Only globals of the web platform are used, so
// that it runs in Node, Deno and browsers.
import { ResealError } from './errors.ts';
import { exchange, type Fetch, type Request } from './exchange.ts';
import { attemptLimit, DEFAULT_LIMITS, isRepeatable, pause, retryDelay } from './retry.ts';
import { type Call, type CallOptions, type Limits, type Operation, type OperationId, TABLE } from './signatures.ts';

export { type RejectionReason, ResealError, type ServiceErrorCode } from './errors.ts';
export type { Answer, Call, CallOptions, Limits, OperationId, Options, Pages, Schemas } from './signatures.ts';
export { type CallbackEvent, type CallbackSecrets, type VerifiedCallback, verifyCallback } from './verify-callback.ts';

export interface ClientSettings {
  /** Where the service is: `https://certs.example.com`. */
  readonly url: string | URL;
  /** Both parts of an API key, sent as X-CC-Key-ID and X-CC-Auth-Key. */
  readonly keyId: string;
  readonly authKey: string;
  /** Of messages; left out, the account's. */
  readonly language?: 'en' | 'zh-CN';
  readonly limits?: Partial<Limits>;
  /** In place of the global one: for a proxy, or an authority of your own. */
  readonly fetch?: Fetch;
}

/** A method per operation. */
export type ResealClient = { readonly [O in OperationId]: Call<O> };

export function createClient(settings: ClientSettings): ResealClient {
  const call = caller(settings);
  const methods = Object.entries(TABLE).map(([id, operation]) => [
    id,
    (...input: readonly unknown[]) => call(id as OperationId, operation, input),
  ]);
  // The compiler does not follow a type through Object.entries: keys and rows are those of the table.
  return Object.freeze(Object.fromEntries(methods)) as ResealClient;
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The last argument: query parameters beside what concerns the call. */
interface GivenOptions extends CallOptions {
  readonly idempotencyKey?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

interface Input {
  readonly ids: readonly unknown[];
  readonly body: unknown;
  readonly options: GivenOptions;
  readonly query: Query;
}

const PARAMETER = /\{\w+\}/g;

/** Sorts the arguments of a method by their places, which its type fixes. */
function sorted({ path, takesBody }: Operation, given: readonly unknown[]): Input {
  const count = path.match(PARAMETER)?.length ?? 0;
  const [body, last = {}] = takesBody ? given.slice(count) : [undefined, given[count]];
  const { signal, limits, idempotencyKey, headers, ...query } = last as GivenOptions & Query;
  const options = { signal, limits, idempotencyKey, headers } as GivenOptions;
  return { ids: given.slice(0, count), body, options, query };
}

/** An empty id would address another resource, and so would a dot segment, which URLs resolve even if it is encoded. */
function requiredId(id: unknown): string {
  if (typeof id !== 'string' || /^\.{0,2}$/.test(id))
    throw new TypeError('An id is a string, not empty, and no dots only.');
  return id;
}

function caller({ url, keyId, authKey, language, limits: general, fetch = globalThis.fetch }: ClientSettings) {
  const base = new URL(url).href.replace(/\/+$/, '');
  // Kept here and in no property, so that a logged client shows no key. A value that no header can hold throws.
  const credentials = new Headers({ Accept: 'application/json', 'X-CC-Key-ID': keyId, 'X-CC-Auth-Key': authKey });
  if (language) credentials.set('Accept-Language', language);

  function requestFor(operation: Operation, { ids, body, options, query }: Input): Request {
    const left = ids.map(requiredId).values();
    const target = new URL(base + operation.path.replace(PARAMETER, () => encodeURIComponent(left.next().value ?? '')));
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) target.searchParams.set(name, String(value));
    }
    const headers = new Headers(credentials);
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    for (const [name, value] of Object.entries(options.headers ?? {}))
      if (value !== undefined) headers.set(name, value);
    // Made once per call: all tries carry the same key, so that at most one of them takes effect.
    if (operation.takesIdempotencyKey) headers.set('Idempotency-Key', options.idempotencyKey ?? crypto.randomUUID());
    return { url: target, method: operation.method, headers, body: body === undefined ? null : JSON.stringify(body) };
  }

  async function perform(id: OperationId, operation: Operation, input: Input): Promise<unknown> {
    const limits = { ...DEFAULT_LIMITS, ...general, ...input.options.limits };
    const { signal } = input.options;
    const request = requestFor(operation, input);
    const began = performance.now();
    for (let tries = 1; ; tries++) {
      try {
        return await exchange(fetch, request, { limitMs: attemptLimit(limits, performance.now() - began), signal });
      } catch (error) {
        if (!(error instanceof ResealError)) throw error;
        const elapsedMs = performance.now() - began;
        const repeatable = isRepeatable(id, operation);
        const delay = retryDelay({ error, isRepeatable: repeatable, tries, elapsedMs, limits, random: Math.random() });
        if (delay === null) throw error;
        await pause(delay, signal);
      }
    }
  }

  return (id: OperationId, operation: Operation, given: readonly unknown[]): Promise<unknown> => {
    const input = sorted(operation, given);
    const first = perform(id, operation, input);
    const { entries } = operation;
    if (entries === undefined) return first;
    const pageAfter = (after: string) => perform(id, operation, { ...input, query: { ...input.query, after } });
    return Object.assign(first, {
      [Symbol.asyncIterator]: () => entriesOf(first as Promise<Page>, pageAfter, entries),
    });
  };
}

type Page = Readonly<Record<string, readonly unknown[]>> & { readonly next_after: string | null };

async function* entriesOf(
  first: Promise<Page>,
  pageAfter: (after: string) => Promise<unknown>,
  field: string,
): AsyncGenerator<unknown, void> {
  let page = await first;
  for (;;) {
    yield* page[field] ?? [];
    const after = page.next_after;
    if (after === null) return;
    page = (await pageAfter(after)) as Page;
    // A cursor that does not move would be asked for without end.
    if (page.next_after === after) throw new TypeError(`The page after ${after} names itself as the next.`);
  }
}
