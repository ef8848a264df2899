// Provokes every error that an operation declares, and only through requests: what no request can cause is caused by the
// state of the service around it.
import assert from 'node:assert/strict';
import type { Answer, Key } from './app.ts';
import { waitFor } from './deliveries.ts';
import type { Json } from './document.ts';
import { ownCases } from './example-cases.ts';
import type { Entities, ExampleSession } from './example-session.ts';
import { sendRaw } from './raw-http.ts';

export interface ProvokedError {
  readonly operationId: string;
  /** The code, or the status for an error of the HTTP message itself. */
  readonly code: string;
  readonly answer: Answer;
}

export async function provokeErrors(session: ExampleSession, entities: Entities): Promise<ProvokedError[]> {
  const provoked: ProvokedError[] = [];
  const { client } = session;
  const cases = await ownCases(session, entities);
  const done = new Set<string>();
  const add = (operationId: string, code: string, answer: Answer) => {
    if (/^\d/.test(code)) assert.equal(answer.status, Number(code), `${operationId}: ${answer.text}`);
    else assert.equal(answer.body.code, code, `${operationId}: ${answer.text}`);
    provoked.push({ operationId, code, answer });
    done.add(`${operationId} ${code}`);
  };
  for (const [operationId, codes] of Object.entries(cases)) {
    for (const [code, how] of Object.entries(codes)) {
      const answer =
        typeof how === 'function' ? await how() : await client.call(operationId, { key: entities.key, ...how });
      add(operationId, code, answer);
    }
  }
  for (const [code, provoke] of await commonCases(session)) {
    for (const { operation, method } of client.operations) {
      const { operationId } = operation;
      if (done.has(`${operationId} ${code}`) || !isDeclared(operation, code)) continue;
      add(operationId, code, await provoke(operationId, method));
    }
  }
  return provoked;
}

/** Whether the operation has an error of that code; of that status if errors have another form, or none of the operation. */
function isDeclared({ tags, responses }: Json, code: string): boolean {
  if (!/^\d/.test(code)) return codesIn(responses).includes(code);
  return code in responses && (tags[0] === 'signing' || code === '413' || code === '415');
}

interface ErrorResponse {
  readonly content?: { readonly 'application/json': { readonly schema: ErrorSchema } };
}
interface ErrorSchema {
  readonly oneOf?: readonly ErrorSchema[];
  readonly properties?: { readonly code?: { readonly enum?: readonly string[] } };
}

/** The codes that an operation's responses list, those of the HTTP message itself apart. */
export const codesIn = (responses: Readonly<Record<string, ErrorResponse>>): string[] =>
  Object.entries(responses)
    .filter(([status]) => /^[45]/.test(status) && status !== '413' && status !== '415')
    .flatMap(([, { content }]) => {
      const schema = content?.['application/json'].schema ?? {};
      return (schema.oneOf ?? [schema]).flatMap((one) => one.properties?.code?.enum ?? []);
    });

type ProvokeAnywhere = (operationId: string, method: string) => Promise<Answer>;

/** What every operation may answer, in the same way: by code, or by status where errors have another form. */
async function commonCases(session: ExampleSession): Promise<[string, ProvokeAnywhere][]> {
  const { app, client } = session;
  const key = await app.newKey();
  const disabled = await app.newKey();
  await app.app.access.disableKey(disabled.keyId);
  const suspended = await app.newKey();
  await app.app.access.suspendAccount(suspended.accountId, null);
  const limited = await app.newKey({}, 'integration_key');
  const as =
    (one: Key | undefined): ProvokeAnywhere =>
    (operationId) =>
      client.call(operationId, { key: one });
  const raw =
    (text: string): ProvokeAnywhere =>
    (operationId) =>
      client.call(operationId, { key, raw: text });
  const notJson: ProvokeAnywhere = (operationId, method) =>
    app.call(method, client.operation(operationId).path, {
      key,
      raw: 'a=b',
      headers: { 'Content-Type': 'text/plain' },
    });
  const full = await whileFull(session);
  const own: ProvokeAnywhere = async (operationId) => full.own.get(operationId) ?? assert.fail(operationId);
  const busy: ProvokeAnywhere = async (operationId) => full.busy.get(operationId) ?? assert.fail(operationId);
  const broken: ProvokeAnywhere = (operationId) =>
    whileBroken(app.app.store.credentials, () => client.call(operationId, { key }));
  return [
    ['unauthenticated_request', as(undefined)],
    ['401', as(undefined)],
    ['api_key_disabled', as(disabled)],
    ['account_suspended', as(suspended)],
    ['403', as(suspended)],
    ['permission_denied', as(limited)],
    [
      'invalid_parameters',
      (operationId, method) =>
        method === 'GET'
          ? withoutHost(app.url, client.operation(operationId).path)
          : client.call(operationId, { key, raw: '{' }),
    ],
    ['400', raw('[]')],
    ['413', raw(`"${'x'.repeat(300_000)}"`)],
    ['415', notJson],
    ['request_too_fast', own],
    ['429', own],
    ['service_busy', busy],
    ['503', busy],
    ['service_internal_error', broken],
    ['500', broken],
  ];
}

async function withoutHost(url: string, path: string): Promise<Answer> {
  const { status, headers, body } = await sendRaw(url, `GET ${path} HTTP/1.1\r\nConnection: close\r\n\r\n`);
  return { status, headers: new Headers(headers), text: body, body: JSON.parse(body) };
}

/**
 * The answers of all operations while an account holds its share, which is one of two places, and while both are taken.
 * Callback tests hold them, whose receiver is silent.
 */
async function whileFull(session: ExampleSession) {
  const { app, silent } = session;
  const mine = await app.newKey();
  const tests = [await holdPlace(session, mine)];
  const own = await answersWhileWaiting(session, mine);
  tests.push(await holdPlace(session, await app.newKey()));
  const busy = await answersWhileWaiting(session, await app.newKey());
  for (const socket of silent) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  await Promise.all(tests.map(({ ended }) => ended));
  return { own, busy };
}

async function holdPlace({ client, world, silent }: ExampleSession, key: Key) {
  const before = silent.length;
  const ended = client.call('testCallback', { key, body: { url: world.url('/silent'), access_key: 'silent' } });
  await waitFor('the test to wait', () => silent.length > before);
  return { ended };
}

/** Another request of the account waits for a place, and as no more may wait, the others are refused at once. */
async function answersWhileWaiting({ client }: ExampleSession, key: Key): Promise<ReadonlyMap<string, Answer>> {
  const done = new AbortController();
  const waiting = (async () => {
    while (!done.signal.aborted) await client.call('getAccount', { key });
  })();
  const answers = new Map<string, Answer>();
  for (const { operation } of client.operations) {
    answers.set(operation.operationId, await client.call(operation.operationId, { key }));
  }
  done.abort();
  await waiting;
  return answers;
}

async function whileBroken<T extends { findForAuthentication: unknown }>(
  credentials: T,
  call: () => Promise<Answer>,
): Promise<Answer> {
  const { findForAuthentication } = credentials;
  Object.assign(credentials, {
    findForAuthentication: async () => {
      throw new Error('broken for an example');
    },
  });
  try {
    return await call();
  } finally {
    Object.assign(credentials, { findForAuthentication });
  }
}
