import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { sendRaw } from '../../support/raw-http.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const key = await app.newKey();

const PATH = '/openapi/v3/account';
const JSON_TYPE = { 'content-type': 'application/json' };
const LIMIT = 256 * 1024;

rule('transport 1', 'A body larger than the service accepts is refused with 413 `invalid_parameters`', async () => {
  const bodyOf = (bytes: number) => `{"name":"x"${' '.repeat(bytes - 12)}}`;
  const fits = await app.call('PUT', PATH, { key, headers: JSON_TYPE, raw: bodyOf(LIMIT) });
  assert.equal(fits.status, 200);
  const announced = await app.call('PUT', PATH, { key, headers: JSON_TYPE, raw: bodyOf(LIMIT + 1) });
  assert.deepEqual([announced.status, announced.body.code], [413, 'invalid_parameters']);
  // A chunked body announces no length and must be counted.
  const chunk = bodyOf(LIMIT + 1);
  const chunked = await sendRaw(
    app.url,
    `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n` +
      `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n` +
      `${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
  );
  assert.deepEqual([chunked.status, JSON.parse(chunked.body).code], [413, 'invalid_parameters']);
});

rule(
  'transport 2',
  'A header block larger than the service accepts is refused with 431 `invalid_parameters`',
  async () => {
    const answer = await sendRaw(app.url, `GET ${PATH} HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`);
    assert.equal(answer.status, 431);
    const body = JSON.parse(answer.body);
    assert.equal(body.code, 'invalid_parameters');
    assert.equal(body.request_id, answer.headers['x-request-id']);
  },
);

rule('transport 3', 'A path with broken percent-encoding is refused with 400 `invalid_parameters`', async () => {
  for (const path of ['/%', '/openapi/v3/%zz', '/openapi/v3/%ff', '/openapi/v3/orders/%E4%A/reissue']) {
    const { status, body } = await app.call('GET', path, { key });
    assert.deepEqual([status, body.code], [400, 'invalid_parameters'], path);
  }
});

rule(
  'transport 4',
  'A body that is not empty and not declared as JSON is refused with 415 `invalid_parameters`',
  async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'text/json',
      '???',
      'json',
    ]) {
      const { status, body } = await app.call('PUT', PATH, {
        key,
        headers: { 'content-type': type },
        raw: '{"name":"x"}',
      });
      assert.deepEqual([status, body.code], [415, 'invalid_parameters'], type);
    }
    for (const type of ['text/plain', '???', 'application/json']) {
      const { status, body } = await app.call('PUT', PATH, { key, headers: { 'content-type': type }, raw: '' });
      assert.deepEqual([status, body.code], [400, 'invalid_parameters'], `empty ${type}`);
    }
    for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset=UTF-8']) {
      const { status } = await app.call('PUT', PATH, { key, headers: { 'content-type': type }, raw: '{"name":"x"}' });
      assert.equal(status, 200, type);
    }
  },
);

rule('transport 5', 'One slash at the end of a path makes no difference', async () => {
  assert.equal((await app.call('GET', `${PATH}/`, { key })).status, 200);
  assert.equal((await app.call('PUT', `${PATH}/`, { key, json: { name: 'x' } })).status, 200);
  assert.equal((await app.call('GET', '/healthz/')).status, 200);
  assert.equal((await app.call('DELETE', `${PATH}/`, { key })).status, 405);
});

rule('transport 6', 'A 405 answer carries the header `Allow` with the methods the path has', async () => {
  for (const method of ['POST', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']) {
    const { status, headers } = await app.call(method, PATH, { key });
    assert.deepEqual([status, headers.get('allow')], [405, 'GET, HEAD, PUT'], method);
  }
  const health = await app.call('POST', '/healthz', { raw: '{', headers: JSON_TYPE });
  assert.deepEqual([health.status, health.headers.get('allow')], [405, 'GET, HEAD']);
});

test('invalid HTTP is answered in the envelope', async () => {
  const broken = {
    'not HTTP': 'hello\r\n\r\n',
    'no Host': `GET ${PATH} HTTP/1.1\r\nConnection: close\r\n\r\n`,
    'bad header': `GET ${PATH} HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n`,
    'two lengths': `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
    'length and chunks': `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  };
  for (const [fault, text] of Object.entries(broken)) {
    const answer = await sendRaw(app.url, text);
    assert.equal(answer.status, 400, fault);
    const { code, request_id } = JSON.parse(answer.body);
    assert.equal(code, 'invalid_parameters', fault);
    assert.equal(request_id, answer.headers['x-request-id'], fault);
  }
});

test('an unknown Expect header is ignored', async () => {
  const answer = await sendRaw(app.url, `GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n`);
  assert.equal(answer.status, 200);
});

test('look-alike paths do not bypass authentication', async () => {
  for (const path of [
    '/%6fpenapi/v3/account',
    '/openapi/v3/./account',
    '/openapi/%763/account',
    '/openapi/v3/account%2f',
  ]) {
    const { status } = await app.call('GET', path);
    assert.ok(status === 401 || status === 404, `${path} answered ${status}`);
  }
  const absolute = await sendRaw(app.url, `GET http://x${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  assert.ok(absolute.status === 401 || absolute.status === 404, `absolute form answered ${absolute.status}`);
});

test('a service behind a path prefix answers with and without it', async () => {
  await using prefixed = await startApp({ RESEAL_PUBLIC_URL: 'http://127.0.0.1:1/pki/' });
  const address = (prefixed.lines.find(({ event }) => event === 'listening') as { text: string }).text.split(' ')[0];
  assert.equal(prefixed.url, 'http://127.0.0.1:1/pki');
  assert.equal((await fetch(`${address}/pki/healthz`)).status, 200);
  assert.equal((await fetch(`${address}/healthz`)).status, 200);
  assert.equal((await fetch(`${address}/pkihealthz`)).status, 404);
});

test('requests beyond the concurrency limit are refused as busy; health checks are exempt', async () => {
  await using small = await startApp({ RESEAL_MAX_REQUESTS: '1' });
  const slowKey = await small.newKey();
  const { promise: unblocked, resolve: unblock } = Promise.withResolvers<void>();
  // An open transaction holds the store's only writer, and with it the one request that is allowed.
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const holder = small.app.store.transaction(async () => {
    start();
    await unblocked;
  });
  await started;
  const first = small.call('PUT', PATH, { key: slowKey, json: { name: 'first' } });
  let second = await small.call('GET', PATH, { key: slowKey });
  // The first request may not have arrived yet; once it waits, no other is admitted.
  for (let tries = 0; second.status === 200 && tries < 1_000; tries += 1)
    second = await small.call('GET', PATH, { key: slowKey });
  assert.deepEqual([second.status, second.body.code, second.headers.get('retry-after')], [503, 'service_busy', '1']);
  assert.equal((await small.call('GET', '/healthz')).status, 200);
  unblock();
  await holder;
  assert.equal((await first).status, 200);
  assert.equal((await small.call('GET', PATH, { key: slowKey })).status, 200);
});
