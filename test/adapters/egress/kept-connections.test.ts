// Kept connections: when one is reused, when never, and their limits. Every call resolves and judges; no byte is sent over a
// connection to an address that was not judged for the call.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { type CallOptions, HOST, isLocalAddress, Outside, verdict } from '../../support/outside.ts';
import {
  OK,
  type Receiver,
  type ReceiverOptions,
  reset,
  resetAfter,
  respondAndKeepOpen,
  type Script,
} from '../../support/receiver.ts';

let outside: Outside;
before(async () => {
  outside = await Outside.open();
});
after(() => outside[Symbol.asyncDispose]());
beforeEach(() => outside.dns.set(HOST, 'A', ['127.0.0.1']));

const open = (script: Script = respondAndKeepOpen(OK), options: ReceiverOptions = {}) =>
  outside.receiver({ script, ...options });
const send = async ({ port }: { port: number }, options: CallOptions = {}) =>
  verdict(await outside.call(`https://${HOST}:${port}/`, { keptFor: 'a', ...options }));

/** The first request of each connection is answered, the second gets this. */
function onSecond(script: Script): Script {
  const seen = new WeakSet<object>();
  return (socket, request) => {
    if (seen.has(socket)) return script(socket, request);
    seen.add(socket);
    socket.write(OK);
  };
}

test('20 calls to a plain Node server share one handshake, and each resolves the name', async (t) => {
  const server = createServer(outside.ca.identity([HOST]), (request, response) => {
    request.resume().on('end', () => response.end('ok'));
  });
  let handshakes = 0;
  server.on('secureConnection', () => {
    handshakes += 1;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const asked = outside.dns.queries.length;
  for (let count = 0; count < 20; count += 1) assert.equal(await send({ port }), 'answered 200');
  assert.equal(handshakes, 1);
  assert.equal(outside.dns.queries.length - asked, 40);
});

test('a call without an account opens its own connection and sends Connection: close', async () => {
  const receiver = await open();
  await send(receiver);
  assert.equal(verdict(await outside.call(`https://${HOST}:${receiver.port}/`)), 'answered 200');
  await send(receiver);
  assert.deepEqual(
    receiver.requests.map((request) => /^connection: (.*)\r$/im.exec(request)?.[1]),
    ['keep-alive', 'close', 'keep-alive'],
  );
  assert.equal(receiver.connections.length, 2);
});

for (const [title, addresses, options] of [
  ['a private address', ['10.0.0.1'], {}],
  ['the same and a private address', ['127.0.0.1', '10.0.0.1'], {}],
  ['the same address, denied meanwhile', ['127.0.0.1'], { deny: ['127.0.0.1'] }],
] as const) {
  test(`the name resolves to ${title}: no byte is sent, and the connection is closed`, async () => {
    const receiver = await open();
    assert.equal(await send(receiver), 'answered 200');
    const bytes = receiver.bytesRead;
    outside.dns.set(HOST, 'A', [...addresses]);
    assert.equal(await send(receiver, options), 'private');
    await receiver.deserted();
    assert.equal(receiver.bytesRead, bytes);
    assert.equal(receiver.requests.length, 1);
  });
}

test('the name resolves to another allowed address: no byte on the old connection, and a new one', async (t) => {
  if (!(await isLocalAddress('127.0.0.2'))) return t.diagnostic('this machine has only 127.0.0.1');
  const old = await open();
  const next = await open(respondAndKeepOpen(OK), { host: '127.0.0.2', port: old.port });
  await send(old);
  const bytes = old.bytesRead;
  outside.dns.set(HOST, 'A', ['127.0.0.2']);
  assert.equal(await send(old), 'answered 200');
  await old.deserted();
  assert.equal(old.bytesRead, bytes);
  assert.deepEqual([old.requests.length, next.requests.length], [1, 1]);
  outside.dns.set(HOST, 'A', ['127.0.0.1', '127.0.0.2']);
  assert.equal(await send(old), 'answered 200');
  assert.deepEqual([next.requests.length, next.connections.length], [2, 1], 'of several addresses, the connected one');
});

test('accounts never share a connection, nor do host names', async () => {
  const receiver = await open(respondAndKeepOpen(OK), { identity: outside.ca.identity([HOST, 'other.example.test']) });
  outside.dns.set('other.example.test', 'A', ['127.0.0.1']);
  for (let round = 0; round < 5; round += 1) {
    for (const keptFor of ['a', 'b']) assert.equal(await send(receiver, { keptFor }), 'answered 200');
    const outcome = await outside.call(`https://other.example.test:${receiver.port}/`, { keptFor: 'a' });
    assert.equal(verdict(outcome), 'answered 200');
  }
  assert.deepEqual(receiver.serverNames, [HOST, HOST, 'other.example.test']);
  assert.equal(receiver.requests.length, 15);
});

const STALE: Readonly<Record<string, Script>> = {
  'resets it': reset,
  'ends it': (socket) => socket.end(),
  'destroys it': (socket) => socket.destroy(),
};
for (const [title, script] of Object.entries(STALE)) {
  test(`a receiver that ${title} just as it is used again gets the request on a new connection`, async () => {
    const receiver = await open(onSecond(script));
    for (let count = 0; count < 3; count += 1) assert.equal(await send(receiver), 'answered 200');
    assert.equal(receiver.connections.length, 3);
    assert.equal(receiver.requests.length, 5);
  });
}

test('the new connection is not replaced again', async () => {
  let isUp = true;
  const receiver = await open((socket, request) => (isUp ? socket.write(OK) : reset(socket, request)));
  await send(receiver);
  isUp = false;
  assert.equal(await send(receiver), 'failed response connection_closed');
  assert.deepEqual([receiver.connections.length, receiver.requests.length], [2, 3]);
});

/** Sends a record that no key has encrypted. */
function breakAfter(text: string): Script {
  const record = Buffer.from([0x17, 3, 3, 0, 20, ...Buffer.alloc(20, 7)]);
  return (socket) =>
    socket.write(text, () => {
      const { _parent: transport } = socket as unknown as { readonly _parent: Socket };
      transport.write(record);
    });
}

const NOT_REPEATED: Readonly<Record<string, readonly [Script, string, CallOptions?]>> = {
  'resets within the head': [resetAfter('HTTP/1.1 2'), 'failed response connection_closed'],
  'breaks TLS within the head': [breakAfter('HTTP/1.1 2'), 'failed response tls_failed'],
  'breaks TLS after an interim response': [breakAfter('HTTP/1.1 102 Processing\r\n\r\n'), 'failed response tls_failed'],
  'does not speak HTTP': [respondAndKeepOpen('SSH-2.0-OpenSSH_9.6\r\n'), 'failed response response_invalid'],
  'is half-open': [() => {}, 'failed response response_timeout', { totalMs: 500 }],
};
for (const [title, [script, expected, options]] of Object.entries(NOT_REPEATED)) {
  test(`a receiver that ${title} on a kept connection fails the call, and all its idle connections are closed`, async () => {
    const receiver = await open(onSecond(script));
    // Two at once, so that there is an idle connection besides the one that fails.
    await Promise.all([send(receiver), send(receiver)]);
    assert.equal(await send(receiver, options), expected);
    assert.equal(receiver.requests.length, 3);
    await receiver.deserted();
    assert.equal(await send(receiver), 'answered 200');
    assert.equal(receiver.connections.length, 3);
  });
}

const head = (...fields: readonly string[]) =>
  `HTTP/1.1 200 OK\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`;
const NOT_REUSED: Readonly<Record<string, Script>> = {
  'closes after each response': (socket) => socket.end(OK),
  'sends Connection: close': respondAndKeepOpen(`${head('Content-Length: 2', 'Connection: close')}ok`),
  'speaks HTTP/1.0': respondAndKeepOpen('HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'),
  'answers in chunks': respondAndKeepOpen(`${head('Transfer-Encoding: chunked')}2\r\nok\r\n0\r\n\r\n`),
  'sends no length': respondAndKeepOpen(`${head()}ok`),
  'sends half of the body': respondAndKeepOpen(`${head('Content-Length: 9')}ok`),
  'sends more body than is read': respondAndKeepOpen(`${head('Content-Length: 20000')}${'x'.repeat(20_000)}`),
  'sends a byte too many': respondAndKeepOpen(`${OK}!`),
  'sends the beginning of a second response': respondAndKeepOpen(`${OK}HTTP/1.1 `),
  'sends a second response': respondAndKeepOpen(OK, OK),
  'sends a blank line after the response': respondAndKeepOpen(`${OK}\r\n`),
  'sends an interim response first': respondAndKeepOpen('HTTP/1.1 102 Processing\r\n\r\n', OK),
};
for (const [title, script] of Object.entries(NOT_REUSED)) {
  test(`a receiver that ${title} gets a new connection each time`, async () => {
    const receiver = await open(script);
    for (let count = 0; count < 2; count += 1) {
      assert.equal(await send(receiver, { limits: { bodyMs: 100 } }), 'answered 200');
      await receiver.deserted();
    }
    assert.deepEqual([receiver.connections.length, receiver.requests.length], [2, 2]);
  });
}

test('a receiver that answers before reading the request gets a new connection', async () => {
  const hasty = await open(() => {}, {
    onSecure: (socket) => {
      socket.pause();
      socket.write(OK);
    },
  });
  assert.equal(await send(hasty, { body: 'x'.repeat(8 * 1024 * 1024) }), 'answered 200');
  assert.equal(await send(hasty), 'answered 200');
  assert.equal(hasty.connections.length, 2);
});

test('a header value with a line break is refused before anything is sent', async () => {
  const receiver = await open();
  await send(receiver);
  for (const value of ['a\r\nX: b', 'a\nb', 'a\0', 'ü']) {
    await assert.rejects(send(receiver, { headers: { 'X-CC-Callback-Auth': value } }), TypeError);
  }
  assert.equal(receiver.requests.length, 1);
});

test('bytes that arrive while a connection is idle close it', async () => {
  const { promise, resolve } = Promise.withResolvers<() => void>();
  const receiver = await open((socket) => {
    socket.write(OK);
    resolve(() => socket.write(OK));
  });
  await send(receiver);
  (await promise)();
  await receiver.deserted();
  assert.equal(await send(receiver), 'answered 200');
  assert.equal(receiver.connections.length, 2);
});

test('a call that is canceled closes its kept connection', async () => {
  const controller = new AbortController();
  const receiver = await open(onSecond(() => controller.abort()));
  await send(receiver);
  assert.match(await send(receiver, { signal: controller.signal }), / canceled$/);
  await receiver.deserted();
});

test('a connection is closed after its maximum of exchanges', async () => {
  const receiver = await open();
  for (let count = 0; count < 7; count += 1) await send(receiver, { keep: { exchanges: 3 } });
  assert.equal(receiver.connections.length, 3);
});

for (const [title, keep] of [
  ['idle for too long', { idleMs: 1 }],
  ['open for too long', { ageMs: 1 }],
  ['idle when its age ran out', { ageMs: 200 }],
] as const) {
  test(`a connection that was ${title} is closed`, async () => {
    const receiver = await open();
    assert.equal(await send(receiver, { keep }), 'answered 200');
    await receiver.deserted();
  });
}

/** Answers once `count` requests wait, so that each has a connection of its own. */
function together(count: number): Script {
  const waiting: (() => void)[] = [];
  return (socket) => {
    waiting.push(() => socket.write(OK));
    if (waiting.length === count) for (const answer of waiting.splice(0)) answer();
  };
}

async function idleAfter(receiver: Receiver, expected: number): Promise<void> {
  while (receiver.openSockets > expected) await receiver.left();
  assert.equal(receiver.openSockets, expected);
}

test('idle connections are limited per account and in total; the account with the most gives way', async () => {
  const receiver = await open(together(4));
  const keep = { perAccount: 3, total: 4 };
  const sendFour = (keptFor: string) => Promise.all(Array.from({ length: 4 }, () => send(receiver, { keptFor, keep })));
  await sendFour('a');
  await idleAfter(receiver, 3);
  receiver.script = respondAndKeepOpen(OK);
  for (const keptFor of ['b', 'c', 'd']) await send(receiver, { keptFor, keep });
  await idleAfter(receiver, 4);
  const opened = receiver.connections.length;
  for (const keptFor of ['b', 'c', 'd']) await send(receiver, { keptFor, keep });
  assert.equal(receiver.connections.length, opened, 'only the first account lost connections');
});

test('disposal closes idle connections at once, and busy ones after their exchange', async () => {
  const own = await Outside.open();
  const waiting = Promise.withResolvers<() => void>();
  const receiver = await own.receiver({
    script: (socket, request) => {
      if (request.startsWith('POST /last')) waiting.resolve(() => socket.write(OK));
      else socket.write(OK);
    },
  });
  for (const keptFor of ['a', 'b']) await own.call(`https://${HOST}:${receiver.port}/`, { keptFor });
  const last = own.call(`https://${HOST}:${receiver.port}/last`, { keptFor: 'c' });
  const answer = await waiting.promise;
  own.closeKept();
  await idleAfter(receiver, 1);
  answer();
  assert.equal(verdict(await last), 'answered 200');
  await receiver.deserted();
  await own[Symbol.asyncDispose]();
});
