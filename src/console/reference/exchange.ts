// Sends a request with the session of this browser: to the operations of /openapi/v3 where sessions are taken (ADR 0071).
import { serviceUrl } from '../shell/api.ts';
import { languageTag } from '../shell/language.ts';
import type { PreparedRequest } from './request.ts';

const SENT_TO = '/console/api/account';
const INTERFACE = '/openapi/v3';

/** The signing API has tokens of its own: its operations are not under a session. */
export const canBeSent = ({ path }: { readonly path: string }): boolean => path.startsWith(`${INTERFACE}/`);

/** Longer than any operation takes; the test of a callback is the slowest. */
const TIMEOUT_MS = 60_000;
/** More of a body is not shown. */
const SHOWN_CHARACTERS = 200_000;

/** Headers that say something to a reader. */
const TELLING = ['content-type', 'x-request-id', 'retry-after', 'link', 'allow', 'www-authenticate'];

export interface Exchange {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly isCut: boolean;
  /** Of an error, what programs decide by. */
  readonly code: string | undefined;
  readonly ms: number;
}

export async function send({ method, target, headers, body }: PreparedRequest): Promise<Exchange> {
  const url = serviceUrl(`${SENT_TO}${target.slice(INTERFACE.length)}`.slice(1));
  const begun = performance.now();
  const response = await fetch(url, {
    method,
    headers: [
      ['accept-language', languageTag()],
      ...headers.filter(([name]) => name !== 'Content-Type').map(([name, value]): [string, string] => [name, value]),
      // Also without a body: sessions are taken only with what no form of another site can send.
      ...(method === 'GET' ? [] : [['content-type', 'application/json'] as [string, string]]),
    ],
    ...(body !== undefined && { body }),
    credentials: 'same-origin',
    cache: 'no-store',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.text();
  const ms = Math.round(performance.now() - begun);
  const { shown, code } = readBody(text);
  return {
    status: response.status,
    headers: TELLING.flatMap((name) => {
      const value = response.headers.get(name);
      return value === null ? [] : [[name, value] as const];
    }),
    body: shown.slice(0, SHOWN_CHARACTERS),
    isCut: shown.length > SHOWN_CHARACTERS,
    code: response.ok ? undefined : code,
    ms,
  };
}

function readBody(text: string): { readonly shown: string; readonly code: string | undefined } {
  try {
    const value = JSON.parse(text);
    return { shown: JSON.stringify(value, null, 2), code: typeof value?.code === 'string' ? value.code : undefined };
  } catch {
    return { shown: text, code: undefined };
  }
}
