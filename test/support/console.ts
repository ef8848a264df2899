// Signing in to the console over HTTP, and calling with the session's cookie as a page of the service would.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import type { OperatorRole } from '../../src/domain/console/session.ts';
import type { Answer, Call, Key, TestApp } from './app.ts';

export interface SignedIn {
  readonly cookie: string;
  readonly token: string;
  readonly setCookie: string;
  // biome-ignore lint/suspicious/noExplicitAny: as in Answer.
  readonly session: any;
}

/** Where the service listens, whatever its public URL says. */
export const listening = ({ server }: TestApp): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** As sent by a page of the service itself. */
export const fromPage = (app: TestApp, headers: Record<string, string> = {}): Record<string, string> => ({
  origin: new URL(app.url).origin,
  'Content-Type': 'application/json',
  ...headers,
});

export const post = (app: TestApp, path: string, json: unknown, headers?: Record<string, string>): Promise<Answer> =>
  app.call('POST', `/console/api/${path}`, { base: listening(app), json, headers: fromPage(app, headers) });

export function signedIn({ status, headers, body, text }: Answer): SignedIn {
  assert.equal(status, 200, text);
  const setCookie = headers.get('set-cookie') ?? '';
  const [cookie = ''] = setCookie.split(';');
  return { cookie, token: cookie.split('=')[1] ?? '', setCookie, session: body.data };
}

/** The time in which a network may sign in once more. */
const REFILL_MS = 3_000;

export async function signIn(app: TestApp, key: Key, headers?: Record<string, string>): Promise<SignedIn> {
  app.advance(REFILL_MS);
  return signedIn(await post(app, 'session', { key_id: key.keyId, secret: key.authKey }, headers));
}

export async function signInOperator(app: TestApp, name: string, role: OperatorRole): Promise<SignedIn> {
  await app.app.operators.create(name, role);
  return await signInAgain(app, name);
}

export async function signInAgain(app: TestApp, name: string): Promise<SignedIn> {
  app.advance(REFILL_MS);
  const { token } = await app.app.operators.makeLink(name);
  return signedIn(await post(app, 'operator-session', { token: token.reveal() }));
}

/** Calls below /console/api with the session's cookie. */
export const withSession =
  (app: TestApp, { cookie }: Pick<SignedIn, 'cookie'>) =>
  (method: string, path: string, { headers, ...call }: Call = {}): Promise<Answer> =>
    app.call(method, `/console/api/${path}`, {
      base: listening(app),
      ...call,
      headers: fromPage(app, { cookie, ...headers }),
    });

/** Calls of an operator's routes: the answer, or its data if it must succeed. */
export function operatorCalls(app: TestApp, session: Pick<SignedIn, 'cookie'>) {
  const call = withSession(app, session);
  const succeed = ({ status, body, text }: Answer) => {
    assert.equal(status, 200, text);
    return body.data;
  };
  const ask = (path: string, headers = {}) => call('GET', `operator/${path}`, { headers });
  return {
    call,
    ask,
    data: async (path: string, headers = {}) => succeed(await ask(path, headers)),
    act: async (path: string, json: unknown = {}, method = 'POST') =>
      succeed(await call(method, `operator/${path}`, { json })),
  };
}
