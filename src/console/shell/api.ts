// Requests to /console/api. A refusal of the service is thrown as a Problem with the service's own words.
import { signal } from '@preact/signals';
import { languageTag } from './language.ts';

/** An address of this service. Modules are at console/assets/DIGEST/shell, whatever page uses them, below any path prefix. */
export const serviceUrl = (path: string): URL => new URL(`../../../../${path}`, import.meta.url);

/** No request waits longer, so no spinner does. */
const TIMEOUT_MS = 20_000;

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | undefined;

  constructor(status: number, body: Partial<Refused>) {
    super(body.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = body.code ?? 'unreadable_answer';
    this.field = body.field;
    this.details = body.details ?? {};
    this.requestId = body.request_id;
  }
}

interface Refused {
  readonly code: string;
  readonly message: string;
  readonly field?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly request_id?: string;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Call {
  readonly body?: unknown;
  readonly query?: Query;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** No session, or one whose key or account is refused: only signing in leads on. */
export const isEnd = ({ status, code }: Pick<Problem, 'status' | 'code'>): boolean =>
  status === 401 || code === 'api_key_disabled' || code === 'account_suspended';

/** Set when the service says that there is no session any more; the shell shows the sign-in page. */
export const signedOut = signal(false);

/** `path` is relative to /console/api, without a leading slash: 'account/orders'. */
export async function call<T>(
  method: Method,
  path: string,
  { body, query = {}, headers, signal: given }: Call = {},
): Promise<T> {
  const url = serviceUrl(`console/api/${path}`);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value));
  }
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, {
    method,
    headers: {
      'accept-language': languageTag(),
      // Also without a body: the service takes changes only as what no form of another site can send.
      ...(method !== 'GET' && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    credentials: 'same-origin',
    cache: 'no-store',
    signal: given ? AbortSignal.any([given, timeout]) : timeout,
  });
  const answer = (await response.json().catch(() => ({}))) as Partial<Refused> & { readonly data?: T };
  if (!response.ok) {
    const refused = new Problem(response.status, answer);
    if (isEnd(refused) && !path.includes('session')) signedOut.value = true;
    throw refused;
  }
  return answer.data as T;
}

/** The operations of /openapi/v3, for the account of the session. */
export const account = <T>(method: Method, path: string, options?: Call): Promise<T> =>
  call<T>(method, `account/${path}`, options);
export const operator = <T>(method: Method, path: string, options?: Call): Promise<T> =>
  call<T>(method, `operator/${path}`, options);
