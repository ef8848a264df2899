// When the store cannot write, requests are refused as busy; the service recovers without a restart.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { RawConnection } from '../../support/raw-http.ts';

const PATH = '/openapi/v3/account';

/** Another process that holds the file's write lock. */
function holdLock(folder: string) {
  const other = new DatabaseSync(join(folder, 'reseal.db'));
  other.exec('begin immediate');
  return { release: () => other.close() };
}

rule('errors service_busy', '`service_busy` is 503 with a `Retry-After` header', async () => {
  await using app = await startApp();
  const key = await app.newKey({ name: 'before' });
  const lock = holdLock(app.folder);
  const { status, headers, body } = await app.call('PUT', PATH, { key, json: { name: 'refused' } });
  assert.deepEqual([status, body.code, headers.get('retry-after')], [503, 'service_busy', '1']);
  // Reads still work, and show that nothing was changed.
  assert.equal((await app.call('GET', PATH, { key })).body.data.account.name, 'before');
  lock.release();
  assert.equal((await app.call('PUT', PATH, { key, json: { name: 'after' } })).status, 200);
  assert.match((await app.call('GET', '/metrics')).text, /^reseal_store_unavailable_total [1-9]/m);
});

rule(
  'ops 3',
  'answers 503 `service_busy` while the store cannot take a durable write, and once a shutdown has begun',
  async () => {
    await using app = await startApp();
    const lock = holdLock(app.folder);
    const unready = await app.call('GET', '/readyz');
    assert.deepEqual([unready.status, unready.body.code], [503, 'service_busy']);
    assert.equal((await app.call('GET', '/healthz')).status, 200);
    lock.release();
    assert.equal((await app.call('GET', '/readyz')).status, 200);

    const open = await RawConnection.to(app.url);
    open.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await open.until(/"alive"/);
    // Half a request keeps the connection busy; a complete one elsewhere shows that the half has arrived.
    open.write('GET /readyz HTTP/1.1\r\nHost: x\r\n');
    await app.call('GET', '/healthz');
    const stopped = app.stop();
    open.write('\r\n');
    await open.until(/HTTP\/1\.1 503 .*"code":"service_busy"/s);
    assert.match(open.received, /connection: close/i);
    await stopped;
  },
);

test('a shutdown finishes requests in progress and accepts no new ones', async () => {
  await using app = await startApp();
  const key = await app.newKey();
  const body = '{"name":"finished"}';
  const begun = await RawConnection.to(app.url);
  begun.write(
    `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await begun.until(/100 Continue/);
  const stopped = app.stop();
  begun.write(body);
  await begun.until(/HTTP\/1\.1 200 .*"name":"finished"/s);
  await begun.closed();
  await stopped;
  await assert.rejects(app.call('GET', '/healthz'));
  assert.deepEqual(
    app.lines.slice(-2).map(({ event }) => event),
    ['request', 'stopped'],
  );
});

test('a shutdown has a deadline', async () => {
  await using app = await startApp({ RESEAL_SHUTDOWN_SECONDS: '0' });
  const stuck = await RawConnection.to(app.url);
  stuck.write('GET /healthz HTTP/1.1\r\nHost: x\r\n');
  await app.call('GET', '/healthz');
  await app.stop();
  await stuck.closed();
});
