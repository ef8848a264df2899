// The sandbox's web server, byte by byte: which text is at which URL, and that no connection stays open.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startWebServer } from '../../src/sandbox/web-server.ts';
import { RawConnection, sendRaw } from '../support/raw-http.ts';

const PATH = '/.well-known/pki-validation/fileauth.txt';
const TEXTS = new Map([
  [`http://www.example.com${PATH}`, 'the token, ü'],
  ['http://www.example.com/empty', ''],
  ['http://www.example.com/large', 'x'.repeat(65_536)],
]);
const web = await startWebServer({ host: '127.0.0.1', port: 0, textAt: (url) => TEXTS.get(url) });
after(() => web.close());
const URL_OF_IT = `http://127.0.0.1:${web.port}`;

const CASES: readonly (readonly [request: string, host: string, status: number, body: string | undefined])[] = [
  [`GET ${PATH}`, 'www.example.com', 200, 'the token, ü'],
  [`GET ${PATH}`, 'WWW.Example.com.', 200, 'the token, ü'],
  [`GET ${PATH}`, 'www.example.com:80', 200, 'the token, ü'],
  [`GET ${PATH}?a=b?c`, `www.example.com:${web.port}`, 200, 'the token, ü'],
  [`HEAD ${PATH}`, 'www.example.com', 200, ''],
  ['GET /empty', 'www.example.com', 200, ''],
  [`GET ${PATH}`, 'example.com', 404, undefined],
  [`GET ${PATH}`, 'www.example.com.evil.test', 404, undefined],
  [`GET ${PATH}`, '', 404, undefined],
  [`GET ${PATH}/`, 'www.example.com', 404, undefined],
  [`GET ${PATH.toUpperCase()}`, 'www.example.com', 404, undefined],
  [`GET /x/..${PATH}`, 'www.example.com', 404, undefined],
  [`GET http://www.example.com${PATH}`, 'www.example.com', 404, undefined],
  ['OPTIONS *', 'www.example.com', 404, undefined],
  [`POST ${PATH}`, 'www.example.com', 404, undefined],
];
for (const [request, host, status, body] of CASES) {
  test(`${request} of ${host || 'no host'}: ${status}`, async () => {
    const answer = await sendRaw(URL_OF_IT, `${request} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.equal(answer.status, status);
    if (body !== undefined) assert.equal(answer.body, body);
    assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8');
    assert.equal(answer.headers.connection, 'close');
    if (request.startsWith('HEAD')) assert.equal(answer.headers['content-length'], '13');
  });
}

test('a large text arrives completely', async () => {
  const { body } = await sendRaw(URL_OF_IT, 'GET /large HTTP/1.1\r\nHost: www.example.com\r\n\r\n');
  assert.equal(body.length, 65_536);
});

test('one request per connection, headers of a few KiB, and malformed requests get no response', async () => {
  const get = `GET ${PATH} HTTP/1.1\r\nHost: www.example.com\r\n`;
  const two = await sendRaw(URL_OF_IT, `${get}\r\n${get}\r\n`);
  assert.equal(two.body, 'the token, ü');
  assert.equal((await sendRaw(URL_OF_IT, `${get}X: ${'x'.repeat(9_000)}\r\n\r\n`)).status, 431);
  assert.equal((await sendRaw(URL_OF_IT, 'nonsense\r\n\r\n')).status, 400);
  assert.equal((await sendRaw(URL_OF_IT, 'GET / HTTP/1.1\r\n\r\n')).status, 400);
});

test('a client that never completes a request is disconnected, and does not delay closing', async () => {
  const other = await startWebServer({ host: '127.0.0.1', port: 0, textAt: () => undefined });
  const waiting = await RawConnection.to(`http://127.0.0.1:${other.port}`);
  waiting.write('GET / HT');
  const answered = sendRaw(URL_OF_IT, 'GET / HT');
  // Once this is answered, the previous one has arrived.
  await sendRaw(`http://127.0.0.1:${other.port}`, 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n');
  const first = await Promise.race([other.close().then(() => 'the end'), answered.then(() => 'a time limit')]);
  assert.equal(first, 'the end');
  // A reset ends the connection too.
  await waiting.closed().catch(() => {});
  await other.close();
  assert.equal((await answered).status, 408);
  await assert.rejects(startWebServer({ host: '127.0.0.1', port: web.port, textAt: () => undefined }), {
    code: 'EADDRINUSE',
  });
});
