// What is sent slowly, or never completed, ends at its deadline. All of it waits at the same time.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { RawConnection } from '../../support/raw-http.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const { keyId, authKey } = await app.newKey();

const PUT = 'PUT /openapi/v3/account HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
const TOO_LATE = /^HTTP\/1\.1 408 .*connection: close.*"code":"invalid_parameters","message":"The body took too long/is;

/** Resolves with what was answered when the service closes the connection. */
async function answerTo(text: string): Promise<string> {
  const connection = await RawConnection.to(app.url);
  connection.write(text);
  await connection.closed();
  return connection.received;
}

const ended: string[] = [];
const noted = async (what: string, answer: Promise<string>): Promise<string> => {
  const text = await answer;
  ended.push(what);
  return text;
};
const halfBody = () => answerTo('POST /ocsp HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx');
const begun = {
  length: halfBody(),
  chunked: answerTo('POST /ocsp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'),
  authenticated: answerTo(`${PUT}X-CC-Key-ID: ${keyId}\r\nX-CC-Auth-Key: ${authKey}\r\nContent-Length: 100\r\n\r\n{`),
  unauthenticated: answerTo(`${PUT}Content-Length: 100\r\n\r\n{`),
  unread: answerTo('GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{'),
  unknownPath: answerTo('POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{'),
  headers: noted('headers', answerTo('GET /readyz HTTP/1.1\r\nX-Slow: ')),
  silence: noted('silence', answerTo('')),
};

rule('transport 8', '3 seconds after its head, or 10 seconds in a request that is authenticated', async () => {
  for (const name of ['length', 'chunked', 'authenticated'] as const) assert.match(await begun[name], TOO_LATE, name);
  const line = app.lines.find((one) => one.event === 'request' && one.status === 408 && one.account_id !== null);
  assert.ok(line, 'the log says whose request it was');
});

rule('transport 8', 'where the answer did not need the body, the connection closes', async () => {
  for (const [name, status] of [
    ['unauthenticated', 401],
    ['unread', 200],
    ['unknownPath', 404],
  ] as const) {
    assert.match(await begun[name], new RegExp(`^HTTP/1\\.1 ${status} `), name);
  }
});

rule('transport 9', 'A header block that is not complete within 10 seconds is answered 408', async () => {
  // Bodies are the clock: headers are due before one of 10 seconds and three of 3 are, which by Node's defaults they are not.
  for (let count = 0; count < 3; count += 1) assert.match(await halfBody(), TOO_LATE);
  ended.push('bodies');
  assert.match(await begun.headers, /^HTTP\/1\.1 408 .*"code":"invalid_parameters"/s);
  assert.equal(await begun.silence, '');
  assert.deepEqual(ended.toSorted(), ['bodies', 'headers', 'silence']);
  assert.equal(ended.at(-1), 'bodies');
});
