// The phases of a shutdown, on a server with real connections and without a clock: the test decides when a phase ends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import Fastify, { type FastifyInstance } from 'fastify';
import { drainConnections } from '../../../src/http/front/drain.ts';
import { rule } from '../../support/contract.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { selfSigned } from '../../support/self-signed.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const NEVER_MS = 600_000;
const AS_IN_SERVICE = { return503OnClosing: false };

async function start(app: FastifyInstance) {
  drainConnections(app);
  app.get('/', async () => 'answer');
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ app, port, drain: app.drain, connect: () => RawConnection.to(url) },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

/** Resolves with whether the answer closes the connection. */
async function isLast(connection: RawConnection): Promise<boolean> {
  connection.received = '';
  connection.write(REQUEST);
  await connection.until(/answer$/);
  return /^connection: close\r$/im.test(connection.received);
}

rule('ops 30', 'connections opened before are closed with their next answer', async () => {
  await using server = await start(Fastify(AS_IN_SERVICE));
  const before = await server.connect();
  assert.equal(await isLast(before), false);
  assert.equal(server.drain.isDraining, false);
  server.drain.begin();
  assert.equal(server.drain.isDraining, true);
  const meanwhile = await server.connect();
  // If each were closed, every client would be connecting when the listener closes.
  for (const _ of [1, 2]) assert.equal(await isLast(meanwhile), false);
  assert.equal(await isLast(before), true);
  await before.closed();
});

rule('ops 31', 'it accepts no connections and closes each with its next answer', async () => {
  await using server = await start(Fastify(AS_IN_SERVICE));
  server.drain.begin();
  const connections = [await server.connect(), await server.connect()];
  for (const one of connections) assert.equal(await isLast(one), false);
  server.drain.stopListening();
  await assert.rejects(server.connect(), { code: 'ECONNREFUSED' });
  const closed = server.drain.closeConnections(NEVER_MS);
  for (const one of connections) {
    assert.equal(await isLast(one), true, 'none is cut off while it is idle');
    await one.closed();
  }
  await closed;
});

rule('ops 31', 'idle ones after one and a half seconds', async () => {
  await using server = await start(Fastify(AS_IN_SERVICE));
  const [idle, silent, begun] = [await server.connect(), await server.connect(), await server.connect()];
  await isLast(idle);
  begun.write(REQUEST.slice(0, 20));
  // A complete exchange later, the half has arrived.
  await isLast(await server.connect());
  server.drain.begin();
  server.drain.stopListening();
  await server.drain.closeConnections(1);
  const closed = server.app.close();
  await Promise.all([idle.closed(), silent.closed()]);
  begun.write(REQUEST.slice(20));
  await begun.until(/answer$/);
  await closed;
});

rule('ops 31', 'for at most `RESEAL_SHUTDOWN_SECONDS`', async () => {
  await using server = await start(Fastify(AS_IN_SERVICE));
  const stuck = await server.connect();
  stuck.write(REQUEST.slice(0, 20));
  await isLast(await server.connect());
  server.drain.begin();
  server.drain.stopListening();
  const closed = server.app.close();
  server.drain.closeAll();
  await Promise.all([stuck.closed(), closed]);
});

rule('ops 31', 'idle ones after one and a half seconds', async () => {
  const { certFile, keyFile } = selfSigned('localhost');
  const https = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  await using server = await start(Fastify({ https, ...AS_IN_SERVICE }) as unknown as FastifyInstance);
  const silent = connect({ port: server.port, rejectUnauthorized: false });
  await once(silent, 'secureConnect');
  server.drain.begin();
  const kept = connect({ port: server.port, rejectUnauthorized: false });
  let received = '';
  kept.on('data', (chunk) => (received += chunk));
  for (const _ of [1, 2]) {
    received = '';
    kept.write(REQUEST);
    while (!received.endsWith('answer')) await once(kept, 'data');
    assert.match(received, /connection: keep-alive/i);
  }
  const noHandshake = await server.connect();
  server.drain.stopListening();
  await server.drain.closeConnections(1);
  const closed = server.app.close();
  silent.resume();
  await Promise.all([once(silent, 'close'), once(kept, 'close')]);
  server.drain.closeAll();
  await Promise.all([noHandshake.closed(), closed]);
});
