// Abusive callers: disconnects, floods, malformed input. Other callers are still served, and every request is logged.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { startApp, type TestApp } from '../../support/app.ts';
import { RawConnection } from '../../support/raw-http.ts';

const PATH = '/openapi/v3/account';

/** Sends the bytes, then resets the connection (RST instead of FIN). */
async function sendAndReset(app: TestApp, bytes: string): Promise<void> {
  const { hostname, port } = new URL(app.url);
  const socket = net.connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(bytes);
  // A busy machine may read the bytes before the reset; both orders are tested.
  await new Promise((resolve) => setImmediate(resolve));
  socket.resetAndDestroy();
  await once(socket, 'close');
}

test('requests of disconnected callers release capacity and are logged', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '5' });
  const key = await app.newKey();
  const head = `Host: x\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\nContent-Type: application/json\r\n`;
  const rude = [
    'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n',
    `GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET ${PATH} HTTP/1.1\r\n${head}\r\n`,
    'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n',
    `PUT ${PATH} HTTP/1.1\r\n${head}Content-Length: 100\r\n\r\n{"name":`,
    `PUT ${PATH} HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `PUT ${PATH} HTTP/1.1\r\n${head}Content-Length: 14\r\n\r\n{"name":"gone"}GARBAGE`,
  ];
  for (const bytes of rude) for (let time = 0; time < 10; time += 1) await sendAndReset(app, bytes);
  assert.equal((await app.call('GET', PATH, { key })).status, 200, 'after 70 disconnects, with 5 slots');
  assert.equal(
    app.lines.some(({ event }) => event === 'error'),
    false,
    app.output,
  );
  const aborted = app.lines.filter((line) => line.event === 'request' && line.code === 'aborted');
  assert.ok(aborted.length > 0 && aborted.every((line) => line.event === 'request' && line.status === 499));
});

test('requests refused early do not raise the concurrency limit', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '1' });
  const [key, other] = [await app.newKey(), await app.newKey()];
  for (let time = 0; time < 20; time += 1) {
    assert.equal((await app.call('GET', PATH)).status, 401);
    assert.equal((await app.call('GET', '/nowhere')).status, 404);
    assert.equal((await app.call('PUT', PATH, { key, json: 7 })).status, 400);
  }
  const [end, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const blocked = app.app.store.transaction(async () => {
    begun.resolve();
    await end.promise;
  });
  await begun.promise;
  const held = app.call('PUT', PATH, { key, json: { name: 'held' } });
  // It may not have arrived yet; once it holds the one place, no other is admitted.
  while ((await app.call('GET', PATH, { key: other })).status === 200);
  assert.equal((await app.call('GET', PATH, { key: other })).status, 503);
  end.resolve();
  await blocked;
  assert.equal((await held).status, 200);
});

test('one connection cannot exhaust capacity by pipelining', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '50' });
  const [, style] = /href="(\S+\.css)"/.exec((await app.call('GET', '/docs')).text) ?? [];
  const greedy = await RawConnection.to(app.url);
  greedy.pause();
  greedy.write(`GET /${style} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(1_500));
  await app.call('GET', '/healthz');
  assert.equal((await app.call('GET', '/docs')).status, 200);
  greedy.end();
});

test('garbage after a request does not replace its response', async () => {
  await using app = await startApp();
  const key = await app.newKey({ name: 'before' });
  const pushy = await RawConnection.to(app.url);
  const body = '{"name":"after"}';
  pushy.write(
    `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}\0GARBAGE\r\n\r\n`,
  );
  await pushy.closed();
  assert.doesNotMatch(pushy.received, /^HTTP\/1\.1 400/);
});

test('paths that cannot be decoded are not found and reveal nothing', async () => {
  await using app = await startApp();
  const key = await app.newKey();
  const statusOf = async (target: string, headers = '') => {
    const connection = await RawConnection.to(app.url);
    connection.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`);
    await connection.closed();
    return Number(connection.received.split(' ')[1]);
  };
  for (const target of ['/nope#%zz', '/x#%', '/openapi%2Fv3/account', '/healthz%2f', '/nope?%zz']) {
    assert.equal(await statusOf(target), 404, target);
  }
  const auth = `X-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n`;
  assert.equal(await statusOf(`${PATH}%2f`, auth), 404);
});

test('CONNECT is answered in the envelope', async () => {
  await using app = await startApp();
  const tunnel = await RawConnection.to(app.url);
  tunnel.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  await tunnel.closed();
  assert.match(tunnel.received, /^HTTP\/1\.1 405 .*"code":"method_not_allowed"/s);
});

test('a request with any proxy header does not count as local', async () => {
  await using app = await startApp();
  for (const name of ['via', 'forwarded', 'x-real-ip', 'x-forwarded-proto', 'x-forwarded-host']) {
    assert.equal((await app.call('GET', '/metrics', { headers: { [name]: 'x' } })).status, 403, name);
  }
});

test('a forwarded client is logged only if it is an IP address', async () => {
  await using app = await startApp({ RESEAL_TRUSTED_PROXIES: '127.0.0.1' });
  await app.call('GET', '/healthz', { headers: { 'x-forwarded-for': 'a-secret-in-disguise' } });
  await app.stop();
  assert.doesNotMatch(app.output, /disguise/);
});

test('every wait on a connection has a timeout', async () => {
  await using app = await startApp();
  const { headersTimeout, requestTimeout, keepAliveTimeout, timeout } = app.server;
  assert.deepEqual(
    { headersTimeout, requestTimeout, keepAliveTimeout, timeout },
    { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 72_000, timeout: 90_000 },
  );
});

test('polling readiness writes at most once a second', async () => {
  await using app = await startApp();
  const commits = async () =>
    Number(/^reseal_store_group_commit_transactions_sum (\d+)$/m.exec((await app.call('GET', '/metrics')).text)?.[1]);
  const [before, started] = [await commits(), performance.now()];
  for (let time = 0; time < 50; time += 1) assert.equal((await app.call('GET', '/readyz')).status, 200);
  const seconds = Math.floor((performance.now() - started) / 1000);
  assert.ok((await commits()) - before <= 1 + seconds);
});

test('a database file that was deleted is not written to', async () => {
  await using app = await startApp();
  const key = await app.newKey();
  rmSync(app.folder, { recursive: true });
  const { status, body } = await app.call('PUT', PATH, { key, json: { name: 'lost' } });
  assert.deepEqual([status, body.code], [503, 'service_busy']);
  assert.equal((await app.call('GET', '/readyz')).status, 503);
});
