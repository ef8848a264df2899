// One request and its answer. Returns the data of a success; everything else is thrown as a ResealError, or as the reason of
// the caller's signal.
import { type ErrorFacts, ResealError, type ServiceErrorCode } from './errors.ts';
import { ERROR_CODES } from './operations.ts';
import { retryAfterOf } from './retry.ts';

export type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

export interface Request {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
}

/** Far above the longest page of a list: what is longer is no answer of the service, and must not fill the memory. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_EXCERPT = 200;

export async function exchange(
  fetch: Fetch,
  request: Request,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal | undefined },
): Promise<unknown> {
  const { url, ...init } = request;
  const limit = AbortSignal.timeout(limitMs);
  try {
    const response = await fetch(url, {
      ...init,
      // A redirect would carry the key to another host: fetch removes Authorization on the way, and no other header.
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    return dataOf(response, await textWithin(response, MAX_ANSWER_BYTES), hasEnvelope(url));
  } catch (cause) {
    if (cause instanceof ResealError) throw cause;
    signal?.throwIfAborted();
    const none = { details: undefined, field: undefined, status: null, requestId: null, retryAfter: null, cause };
    if (limit.aborted) throw new ResealError({ code: 'timeout', message: `No answer within ${limitMs} ms.`, ...none });
    throw new ResealError({ code: 'network_error', message: `No answer from ${url.origin}.`, ...none });
  }
}

/** Not response.text(), which has no bound. A longer answer is cut off, and so is no JSON. */
async function textWithin({ body }: Response, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let [text, length] = ['', 0];
  const reader = body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    text += decoder.decode(part.value, { stream: true });
    length += part.value.length;
    if (length <= most) continue;
    await reader?.cancel();
    return text.slice(0, MAX_EXCERPT);
  }
  return text + decoder.decode();
}

/** The signing API answers without one. */
const hasEnvelope = ({ pathname }: URL): boolean => !/\/csc\/v\d+\//.test(pathname);

function dataOf(response: Response, text: string, isEnveloped: boolean): unknown {
  if (response.status === 204 && !isEnveloped) return undefined;
  const body = parsed(text);
  // Other JSON with status 200 is of a proxy or another server: returned, it would contradict its type.
  if (response.ok && body && (!isEnveloped || (body.code === 'success' && isObject(body.data)))) {
    return isEnveloped ? body.data : body;
  }
  throw new ResealError(factsOf(response, body, text));
}

type JsonObject = Readonly<Record<string, unknown>>;

function parsed(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const CODES: ReadonlySet<string> = new Set(ERROR_CODES satisfies readonly ServiceErrorCode[]);

function factsOf({ status, headers }: Response, body: JsonObject | null, text: string): ErrorFacts {
  const code = textOf(body?.code) ?? null;
  const common = {
    status,
    requestId: textOf(body?.request_id) ?? headers.get('x-request-id'),
    retryAfter: retryAfterOf(headers.get('retry-after'), Date.now()),
    field: textOf(body?.field),
  };
  const message = textOf(body?.message) ?? textOf(body?.error_description) ?? `The answer has status ${status}.`;
  // Here the bytes get their types: the code is one of the document's, whose schema says what its details are.
  if (code !== null && CODES.has(code)) return { ...common, code, message, details: body?.details } as ErrorFacts;
  if (textOf(body?.error) !== undefined) {
    return { ...common, code: 'signing_error', message, details: body } as ErrorFacts;
  }
  const details = { code, excerpt: text.slice(0, MAX_EXCERPT) };
  return { ...common, code: 'unexpected_response', message, details };
}
