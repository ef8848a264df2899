// A client with no types but those generated from the OpenAPI document: paths, parameters, bodies, answers and errors.
import type { paths } from '../../clients/typescript/src/openapi.ts';
import type { Key } from './app.ts';

type Method = 'get' | 'put' | 'post' | 'delete';
type Described = { responses: object };

/** The paths that have an operation with this method. */
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends Described ? P : never;
}[keyof paths];

/** `parameters` of the document by place; those that are optional may be left out. */
type Input<O> = (O extends { parameters: infer P }
  ? { [K in keyof P as P[K] extends undefined ? never : K]: P[K] }
  : object) &
  (O extends { requestBody: { content: { 'application/json': infer B } } }
    ? { body: B }
    : O extends { requestBody?: never }
      ? object
      : O extends { requestBody?: { content: { 'application/json': infer B } } }
        ? { body?: B }
        : object);

type Json<R> = R extends { content: { 'application/json': infer T } } ? T : never;
export type Success<O> = O extends { responses: { 200: infer R } } ? Json<R> : never;
type Failure<O> = O extends { responses: infer R } ? Json<R[Exclude<keyof R, 200 | 'default'>]> : never;

type Outcome<O> = Success<O> | Failure<O>;

interface Sent {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly header?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
}

export class TypedClient {
  readonly #url: string;
  readonly #key: Key;

  constructor(url: string, key: Key) {
    this.#url = url;
    this.#key = key;
  }

  /** Told apart by `code`: `success`, or that of an error which the operation declares. */
  async call<M extends Method, P extends PathsWith<M>>(
    method: M,
    path: P,
    input: Input<paths[P][M]>,
  ): Promise<Outcome<paths[P][M]>> {
    const { path: ids = {}, query = {}, header = {}, body }: Sent = input;
    const url = new URL(
      this.#url + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? '')),
    );
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const headers = new Headers({ 'X-CC-Key-ID': this.#key.keyId, 'X-CC-Auth-Key': this.#key.authKey });
    for (const [name, value] of Object.entries(header)) if (value !== undefined) headers.set(name, value);
    if (body) headers.set('Content-Type', 'application/json');
    const init = { method: method.toUpperCase(), headers, ...(body && { body: JSON.stringify(body) }) };
    return JSON.parse(await (await fetch(url, init)).text());
  }
}
