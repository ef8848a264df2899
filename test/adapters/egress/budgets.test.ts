// Egress, timeouts and leaks: every call ends, at its own limits or when the caller aborts, and releases everything it
// opened.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { getEventListeners, once } from 'node:events';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { CallScope } from '../../../src/adapters/egress/call-scope.ts';
import { Connection } from '../../../src/adapters/egress/connection.ts';
import { exchange } from '../../../src/adapters/egress/exchange.ts';
import { HOST, isLocalAddress, Outside, verdict } from '../../support/outside.ts';
import { OK, type ReceiverOptions, respond, respondAndKeepOpen } from '../../support/receiver.ts';

let outside: Outside;
const children: ChildProcess[] = [];
before(async () => {
  outside = await Outside.open();
});
after(async () => {
  for (const child of children) child.kill('SIGKILL');
  await outside[Symbol.asyncDispose]();
});

const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf';

/** Active resources of the process, except those that the tests themselves hold. */
const leftovers = () =>
  process
    .getActiveResourcesInfo()
    .filter((one) => /^(TCPSocketWrap|TLSWrap|QueryReqWrap|Timeout|.*ReqWrap)$/.test(one));

async function settlesTo(expected: number): Promise<void> {
  // Handles close in the next turn of the event loop, and a name server's socket a few turns later.
  for (let turns = 0; turns < 1_000 && leftovers().length > expected; turns += 1) await setImmediate();
  assert.ok(leftovers().length <= expected, leftovers().join());
}

test('50 calls to receivers that never answer end in time and leak nothing', async () => {
  const quiet = leftovers().length;
  const silent = await outside.receiver({ script: () => {} });
  const mute = await outside.receiver({ onAccept: () => {} });
  outside.dns.set('silence.example.test', 'A', 'silence');
  const controller = new AbortController();
  const callOptions = { totalMs: 1_500, limits: { resolveMs: 300, connectMs: 800 }, signal: controller.signal };
  const warnings: unknown[] = [];
  const onWarning = (warning: unknown) => warnings.push(warning);
  process.on('warning', onWarning);
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, (_, index) => {
      if (index % 5 === 0) return outside.call('https://silence.example.test/', callOptions);
      return outside.call(`https://${HOST}:${index % 2 ? silent.port : mute.port}/`, callOptions);
    }),
  );
  await setImmediate();
  process.off('warning', onWarning);
  const reasons = new Set(outcomes.map(verdict));
  assert.deepEqual([...reasons].sort(), [
    'failed resolve dns_timeout',
    'failed response response_timeout',
    'failed tls tls_timeout',
  ]);
  assert.deepEqual(warnings, []);
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
  await Promise.all([silent.deserted(), mute.deserted()]);
  await settlesTo(quiet);
});

test('50 calls that are answered leak nothing either', async () => {
  const quiet = leftovers().length;
  const receiver = await outside.receiver({ script: respondAndKeepOpen(OK) });
  const { signal } = new AbortController();
  const calls = Array.from({ length: 50 }, () => outside.call(`https://${HOST}:${receiver.port}/`, { signal }));
  for (const outcome of await Promise.all(calls)) assert.equal(verdict(outcome), 'answered 200');
  assert.equal(receiver.requests.length, 50);
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  await receiver.deserted();
  await settlesTo(quiet);
});

test('a call aborted before it starts causes neither query nor connection', async () => {
  const receiver = await outside.receiver({ identity: outside.ca.identity([HOST, '127.0.0.1']) });
  const asked = outside.dns.queries.length;
  const signal = AbortSignal.abort();
  for (const host of [HOST, '127.0.0.1']) {
    const outcome = await outside.call(`https://${host}:${receiver.port}/`, { signal });
    assert.ok(outcome.kind === 'failed' && outcome.reason === 'canceled', host);
  }
  assert.equal(outside.dns.queries.length, asked);
  assert.deepEqual(receiver.connections, []);
});

const LEAVING: Readonly<Record<string, readonly [(leave: () => void) => ReceiverOptions, RegExp, requests: number]>> = {
  'when the connection is accepted': [(leave) => ({ onAccept: leave }), /^failed (connect|tls) canceled$/, 0],
  'when our first words arrive': [
    (leave) => ({ onAccept: (socket) => socket.on('data', leave) }),
    /^failed tls canceled$/,
    0,
  ],
  'after the handshake': [
    (leave) => ({ onSecure: leave, script: () => {} }),
    /^failed (tls|request|response) canceled$/,
    1,
  ],
  'when the request was read': [(leave) => ({ script: leave }), /^failed response canceled$/, 1],
  'in the head of the answer': [
    (leave) => ({ script: (socket) => socket.write('HTTP/1.1 200 OK\r\n', leave) }),
    /^failed response canceled$/,
    1,
  ],
};

for (const [moment, [options, expected, requests]] of Object.entries(LEAVING)) {
  test(`an abort ${moment} ends the call at once`, async () => {
    const controller = new AbortController();
    const quiet = leftovers().length;
    const receiver = await outside.receiver(options(() => controller.abort()));
    const outcome = await outside.call(`https://${HOST}:${receiver.port}/`, { signal: controller.signal });
    assert.match(verdict(outcome), expected);
    await receiver.deserted();
    assert.ok(receiver.requests.length <= requests);
    assert.equal(receiver.connections.length, 1);
    assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
    await settlesTo(quiet);
  });
}

test('an abort during the DNS query ends the call at once', async () => {
  const controller = new AbortController();
  outside.dns.set('unheard.example.test', 'A', 'silence');
  const call = outside.call('https://unheard.example.test/', { signal: controller.signal });
  while (!outside.dns.queries.some(({ name }) => name === 'unheard.example.test')) await setImmediate();
  controller.abort();
  assert.equal(verdict(await call), 'failed resolve canceled');
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
});

test('an abort during the body returns the status received so far', async () => {
  const controller = new AbortController();
  const receiver = await outside.receiver({ script: respondAndKeepOpen(HALF) });
  const callOptions = { signal: controller.signal, limits: { bodyMs: 60_000 }, totalMs: 60_000 };
  const call = outside.call(`https://${HOST}:${receiver.port}/`, callOptions);
  await receiver.received(1);
  // Data written to loopback has arrived; it only has to be read.
  for (let turns = 0; turns < 100; turns += 1) await setImmediate();
  controller.abort();
  assert.equal(verdict(await call), 'answered 200');
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
  await receiver.deserted();
});

test('reading the body ends at its own limit, or at the limit of the call', async () => {
  const receiver = await outside.receiver({ script: respondAndKeepOpen(HALF) });
  for (const callOptions of [{ limits: { bodyMs: 50 } }, { limits: { bodyMs: 60_000 }, totalMs: 1_000 }]) {
    const outcome = await outside.call(`https://${HOST}:${receiver.port}/`, callOptions);
    assert.ok(outcome.kind === 'answered');
    assert.equal(Buffer.from(outcome.body).toString(), 'half');
  }
});

/** Its accept queue is full, so the kernel drops further SYNs, as a firewall does. */
async function blackHole(host: string): Promise<number> {
  const program = `
    const server = require('node:net').createServer();
    server.listen({ host: ${JSON.stringify(host)}, port: 0, backlog: 1 }, () => {
      require('node:fs').writeSync(1, String(server.address().port) + '\\n');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
      process.exit();
    });`;
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const fillers = Array.from({ length: 8 }, () => net.connect(Number(line), host).on('error', () => {}));
  await Promise.all(fillers.slice(0, 2).map((one) => once(one, 'connect')));
  return Number(line);
}

test('an address that drops every packet costs its share of the time, and the next one answers', async (t) => {
  if (!(await isLocalAddress('127.0.0.3'))) return t.diagnostic('this machine has 127.0.0.1 only: there is no next');
  const port = await blackHole('127.0.0.2');
  const good = await outside.receiver({ host: '127.0.0.3', port });
  outside.dns.set('hole.example.test', 'A', ['127.0.0.2']);
  const alone = await outside.call(`https://hole.example.test:${port}/`, { limits: { connectMs: 300 } });
  assert.equal(verdict(alone), 'failed connect connect_timeout');
  const hurried = await outside.call(`https://hole.example.test:${port}/`, { totalMs: 300 });
  assert.equal(verdict(hurried), 'failed connect connect_timeout');
  // Of two reasons the first is reported: it belongs to the preferred address.
  outside.dns.set('hole.example.test', 'A', ['127.0.0.4', '127.0.0.2']);
  const refused = await outside.call(`https://hole.example.test:${port}/`, { limits: { connectMs: 300 } });
  assert.equal(verdict(refused), 'failed connect connection_refused');
  outside.dns.set(HOST, 'A', ['127.0.0.2', '127.0.0.3']);
  t.after(() => outside.dns.set(HOST, 'A', ['127.0.0.1']));
  const together = await outside.call(`https://${HOST}:${port}/`, { limits: { connectMs: 2_000 } });
  assert.equal(verdict(together), 'answered 200');
  assert.equal(good.requests.length, 1);
});

test('a receiver that takes the request without reading it runs into the limit of the call', async () => {
  const receiver = await outside.receiver({ onSecure: (socket) => socket.pause() });
  const callOptions = { body: 'x'.repeat(8 * 1024 * 1024), totalMs: 1_000 };
  const outcome = await outside.call(`https://${HOST}:${receiver.port}/`, callOptions);
  assert.equal(verdict(outcome), 'failed request response_timeout');
});

test('a connection that was closed before the request is noticed at once', async () => {
  const receiver = await outside.receiver({ identity: null });
  const socket = net.connect(receiver.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
  await once(socket, 'close');
  using scope = new CallScope(60_000, undefined);
  const url = { scheme: 'http', host: HOST, literal: null, port: receiver.port, target: '/' } as const;
  const policy = { allow: [], deny: [], totalMs: 60_000 };
  const call = { url, method: 'POST', headers: {}, body: '{}', policy } as const;
  await assert.rejects(
    exchange({
      call,
      connection: new Connection(socket, Buffer.from([127, 0, 0, 1])),
      userAgent: 'test',
      bodyMs: 1_000,
      scope,
    }),
    {
      reason: 'connection_closed',
    },
  );
});

test('the resolver is cancelled, so that it sends no further queries', async (t) => {
  const cancel = t.mock.method(Resolver.prototype, 'cancel');
  outside.dns.set('unheard.example.test', 'A', 'silence');
  await outside.call('https://unheard.example.test/', { limits: { resolveMs: 100 } });
  assert.equal(cancel.mock.callCount(), 1);
});

// Destroyed in the wrong order, the two sockets of a call crash the process: see CallScope.own.
test('an internal error is an exception, and still leaks nothing', async () => {
  const quiet = leftovers().length;
  const receiver = await outside.receiver({ script: respond(OK) });
  const call = outside.call(`https://${HOST}:${receiver.port}/`, { headers: { 'X-Bad': 'a\r\nb' } });
  await assert.rejects(call, { code: 'ERR_INVALID_CHAR' });
  await receiver.deserted();
  assert.deepEqual(receiver.requests, []);
  await settlesTo(quiet);
});
