// Provokes every error that an operation declares, and only through requests: what no request can cause is caused by the
// state of the service around it.
import assert from 'node:assert/strict';
import type { Answer, Key } from './app.ts';
import { ownCases } from './example-cases.ts';
import { type Entities, type ExampleSession, MAX_REQUESTS } from './example-session.ts';
import { RawConnection, sendRaw } from './raw-http.ts';

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
    assert.equal(answer.body.code, /^\d/.test(code) ? 'invalid_parameters' : code, `${operationId}: ${answer.text}`);
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
      if (done.has(`${operationId} ${code}`) || !isDeclared(operation.responses, code)) continue;
      add(operationId, code, await provoke(operationId, method));
    }
  }
  return provoked;
}

/** Whether the operation's own responses have an error of that code, or of that status. */
function isDeclared(responses: Record<string, never>, code: string): boolean {
  if (/^\d/.test(code)) return code in responses;
  return codesIn(responses).includes(code);
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

/** What every operation may answer, in the same way. */
async function commonCases({ app, client }: ExampleSession): Promise<[string, ProvokeAnywhere][]> {
  const key = await app.newKey();
  const disabled = await app.newKey();
  await app.app.access.disableKey(disabled.keyId);
  const suspended = await app.newKey();
  await app.app.access.suspendAccount(suspended.accountId, null);
  const limited = await app.newKey({}, 'integration_key');
  const with_ =
    (one: Key | undefined): ProvokeAnywhere =>
    (operationId) =>
      client.call(operationId, { key: one });
  const json = { 'Content-Type': 'application/json' };
  return [
    ['unauthenticated_request', with_(undefined)],
    ['api_key_disabled', with_(disabled)],
    ['account_suspended', with_(suspended)],
    ['permission_denied', with_(limited)],
    [
      'invalid_parameters',
      (operationId, method) =>
        method === 'GET'
          ? withoutHost(client.app.url, client.operation(operationId).path)
          : client.call(operationId, { key, raw: '{' }),
    ],
    ['413', (operationId) => client.call(operationId, { key, raw: `"${'x'.repeat(300_000)}"` })],
    [
      '415',
      (operationId, method) =>
        app.call(method, client.operation(operationId).path, {
          key,
          raw: 'a=b',
          headers: { ...json, 'Content-Type': 'text/plain' },
        }),
    ],
    ['service_busy', (operationId) => whileBusy(app.url, key, () => client.call(operationId, { key }))],
    [
      'service_internal_error',
      (operationId) => whileBroken(app.app.store.credentials, () => client.call(operationId, { key })),
    ],
  ];
}

async function withoutHost(url: string, path: string): Promise<Answer> {
  const { status, headers, body } = await sendRaw(url, `GET ${path} HTTP/1.1\r\nConnection: close\r\n\r\n`);
  return { status, headers: new Headers(headers), text: body, body: JSON.parse(body) };
}

/** All places are taken by requests whose body does not come. */
async function whileBusy(url: string, { keyId, authKey }: Key, call: () => Promise<Answer>): Promise<Answer> {
  const head = `PUT /openapi/v3/account HTTP/1.1\r\nHost: x\r\nX-CC-Key-ID: ${keyId}\r\nX-CC-Auth-Key: ${authKey}\r\n`;
  const held = await Promise.all(Array.from({ length: MAX_REQUESTS }, () => RawConnection.to(url)));
  for (const connection of held) connection.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n`);
  try {
    for (;;) {
      const answer = await call();
      if (answer.status === 503) return answer;
    }
  } finally {
    for (const connection of held) connection.write('{}');
    await Promise.all(held.map((connection) => connection.until(/"code"/)));
    for (const connection of held) connection.end();
  }
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
