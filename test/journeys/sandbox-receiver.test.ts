// The sandbox's receiver of callbacks, over real TLS: what it keeps, each fault it injects, and that no client can take
// it down or hold a connection for long.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import https from 'node:https';
import net from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { type ReceivedCallback, type Receiver, startReceiver } from '../../src/sandbox/receiver.ts';
import { Outside, verdict } from '../support/outside.ts';
import { TestCa } from '../support/receiver-certificates.ts';

const HOST = 'receiver.sandbox.test';
const UNTRUSTED = 'untrusted.sandbox.test';
const CA = new TestCa('Sandbox Root');
const CERTIFICATES = {
  good: CA.identity([HOST]),
  untrusted: new TestCa('Nobody’s Root').identity([UNTRUSTED]),
};

const start = (onCallback = () => {}, earlier: readonly ReceivedCallback[] = []) =>
  startReceiver({ host: '127.0.0.1', port: 0, certificates: CERTIFICATES, onCallback, earlier });

interface Options {
  readonly method?: string;
  readonly servername?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function request({ port }: Receiver, path: string, { servername = HOST, method = 'POST', headers, body }: Options) {
  const to = { host: '127.0.0.1', port, servername, ca: CA.root, agent: false };
  const outgoing = https.request({ ...to, path, method, ...(headers ? { headers } : {}) });
  outgoing.end(body);
  return outgoing;
}

/** Returns the complete response; rejects with the error of the socket. */
async function call(receiver: Receiver, path: string, options: Options = {}) {
  const [answer] = await once(request(receiver, path, options), 'response');
  let text = '';
  for await (const chunk of answer) text += chunk;
  return { status: answer.statusCode as number, headers: answer.headers as Record<string, string>, text };
}

const answersOf = (receiver: Receiver) => receiver.callbacks().map(({ answer }) => answer);
const coded = (code: string) => (error: NodeJS.ErrnoException) => error.code === code || assert.fail(error);

test('a callback is answered with 200 and recorded: its headers, its body, the action taken', async () => {
  let notified = 0;
  await using receiver = await start(() => {
    notified += 1;
  });
  const headers = {
    'Content-Type': 'application/json',
    'X-CC-Callback-Auth': 'an access key',
    'webhook-id': 'test-1',
    'webhook-timestamp': '1700000000',
    'webhook-signature': 'v1,abc',
    'User-Agent': 'Reseal-Callback/1',
    Cookie: 'never kept',
  };
  const { status, text, headers: answered } = await call(receiver, '/hooks?a=1', { headers, body: '{"order_id":"x"}' });
  assert.deepEqual([status, text, answered.connection], [200, '{"received":true}', 'close']);
  const [kept] = receiver.callbacks();
  const { Cookie: _, ...own } = headers;
  assert.deepEqual(
    { ...kept, at: '' },
    {
      at: '',
      method: 'POST',
      path: '/hooks?a=1',
      headers: Object.fromEntries(Object.entries(own).map(([name, value]) => [name.toLowerCase(), value])),
      body: { order_id: 'x' },
      answer: '200',
    },
  );
  assert.ok(Math.abs(Date.now() - Date.parse(kept?.at ?? '')) < 60_000);
  assert.equal(notified, 1);

  await call(receiver, '/', { body: 'not JSON' });
  assert.deepEqual([receiver.callbacks()[0]?.body, notified], ['not JSON', 2]);
});

test('the last fifty are kept, newest first', async () => {
  await using receiver = await start();
  for (let count = 1; count <= 53; count += 1) await call(receiver, `/${count}`);
  const paths = receiver.callbacks().map(({ path }) => path);
  assert.deepEqual([paths.length, paths[0], paths.at(-1)], [50, '/53', '/4']);
});

test('callbacks of an earlier start are kept, after newer ones', async () => {
  await using first = await start();
  for (let count = 1; count <= 50; count += 1) await call(first, `/${count}`);
  await using second = await start(() => {}, first.callbacks());
  await call(second, '/new');
  const paths = second.callbacks().map(({ path }) => path);
  assert.deepEqual([paths.length, paths[0], paths[1], paths.at(-1)], [50, '/new', '/50', '/2']);
});

test('the path selects the status', async () => {
  await using receiver = await start();
  const table: [string, number, string][] = [
    ['/', 200, '{"received":true}'],
    ['/anything/else', 200, '{"received":true}'],
    ['/constructor', 200, '{"received":true}'],
    ['/status/200', 200, '{"received":true}'],
    ['/status/204', 204, ''],
    ['/status/503?again', 503, '{"received":false}'],
    ['/status/599', 599, '{"received":false}'],
    ['/status/199', 400, '{"received":false,"use":"/status/503, with a status from 200 to 599"}'],
    ['/status/600', 400, '{"received":false,"use":"/status/503, with a status from 200 to 599"}'],
    ['/status', 400, '{"received":false,"use":"/status/503, with a status from 200 to 599"}'],
    ['/delay/61', 400, '{"received":false,"use":"/delay/12, in whole seconds, at most 60"}'],
    ['/delay/-1', 400, '{"received":false,"use":"/delay/12, in whole seconds, at most 60"}'],
    ['/redirect', 302, '{"received":false}'],
  ];
  for (const [path, status, text] of table) {
    const answer = await call(receiver, path);
    assert.deepEqual([answer.status, answer.text], [status, text], path);
  }
  assert.deepEqual(
    answersOf(receiver).reverse(),
    table.map(([, status]) => String(status)),
  );
  assert.equal((await call(receiver, '/redirect')).headers.location, '/');
});

test('the echo repeats everything, including the access key', async () => {
  await using receiver = await start();
  const { text } = await call(receiver, '/echo', {
    headers: { 'X-CC-Callback-Auth': 'k3y', Accept: '*/*' },
    body: 'b',
  });
  const { headers, body } = JSON.parse(text);
  assert.deepEqual([headers['x-cc-callback-auth'], headers.accept, body], ['k3y', '*/*', 'b']);
});

test('the path selects the delay', async () => {
  await using receiver = await start();
  const since = performance.now();
  assert.equal((await call(receiver, '/delay/1')).status, 200);
  const took = performance.now() - since;
  assert.ok(took >= 990 && took < 5_000, String(took));
  assert.deepEqual(answersOf(receiver), ['200 after 1 s']);
});

test('the client sees a reset, garbage or silence', async () => {
  await using receiver = await start();
  await assert.rejects(call(receiver, '/reset', { body: '{}' }), coded('ECONNRESET'));
  await assert.rejects(call(receiver, '/garbage'), coded('HPE_INVALID_CONSTANT'));
  const silent = request(receiver, '/silent', {});
  silent.on('response', () => assert.fail('it answered'));
  silent.on('error', () => {});
  await sleep(300);
  silent.destroy();
  assert.deepEqual(answersOf(receiver), ['nothing', 'garbage', 'reset']);
});

test('the reset is a TCP RST, not a FIN', async () => {
  await using receiver = await start();
  const connection = net.connect(receiver.port, '127.0.0.1');
  const secured = tls.connect({ socket: connection, servername: HOST, ca: CA.root });
  secured.on('end', () => assert.fail('it ended politely'));
  secured.write(`POST /reset HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 0\r\n\r\n`);
  const [error] = await once(secured, 'error');
  assert.equal(error.code, 'ECONNRESET');
});

test('an endless response is sent slowly until the peer disconnects', async () => {
  await using receiver = await start();
  const endless = request(receiver, '/endless', {});
  const [answer] = await once(endless, 'response');
  assert.equal(answer.statusCode, 200);
  let length = 0;
  const since = performance.now();
  for await (const chunk of answer) {
    length += chunk.length;
    if (length >= 5 * 64) break;
  }
  assert.ok(performance.now() - since >= 300, 'too fast');
  assert.deepEqual(answersOf(receiver), ['200 without an end']);
});

test('SNI selects the certificate, and a new one applies from the next connection', async () => {
  await using receiver = await start();
  const get = (servername: string) => call(receiver, '/', { servername });
  await assert.rejects(get(UNTRUSTED), coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'));
  await assert.rejects(get('UNTRUSTED.elsewhere.test'), coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'));
  await assert.rejects(get('wrong-host.sandbox.test'), coded('ERR_TLS_CERT_ALTNAME_INVALID'));
  assert.equal((await get(HOST)).status, 200);
  // Without SNI, as for an IP address, the valid certificate is served.
  await assert.rejects(get(''), coded('ERR_TLS_CERT_ALTNAME_INVALID'));

  const expired = CA.identity([HOST], { from: Date.now() - 2 * 86_400_000, until: Date.now() - 86_400_000 });
  receiver.replaceCertificates({ good: expired, untrusted: CA.identity([UNTRUSTED]) });
  await assert.rejects(get(HOST), coded('CERT_HAS_EXPIRED'));
  assert.equal((await get(UNTRUSTED)).status, 200);
  assert.throws(() => receiver.replaceCertificates({ ...CERTIFICATES, good: { cert: 'none', key: 'none' } }));
  assert.equal((await get(UNTRUSTED)).status, 200);
  assert.equal(receiver.callbacks().length, 3);
});

test('the callback sender classifies each fault as intended', async () => {
  await using outside = await Outside.open();
  const certificates = { ...CERTIFICATES, good: outside.ca.identity([HOST]) };
  await using receiver = await startReceiver({ host: '127.0.0.1', port: 0, certificates, onCallback() {} });
  const table: [string, string, string][] = [
    [HOST, '/', 'answered 200'],
    [HOST, '/status/503', 'answered 503'],
    [HOST, '/redirect', 'answered 302'],
    [HOST, '/endless', 'answered 200'],
    [HOST, '/reset', 'failed response connection_closed'],
    [HOST, '/garbage', 'failed response response_invalid'],
    [HOST, '/silent', 'failed response response_timeout'],
    [HOST, '/delay/30', 'failed response response_timeout'],
    [UNTRUSTED, '/', 'failed tls certificate_untrusted'],
    ['wrong-host.sandbox.test', '/', 'failed tls certificate_wrong_host'],
  ];
  for (const [host] of table) outside.dns.set(host, 'A', ['127.0.0.1']);
  const seen = await Promise.all(
    table.map(([host, path]) => outside.call(`https://${host}:${receiver.port}${path}`, { totalMs: 3_000 })),
  );
  assert.deepEqual(
    seen.map(verdict),
    table.map(([, , expected]) => expected),
  );
});

test('a body of more than 16 KiB is refused, and the recorded part is bounded', async () => {
  await using receiver = await start();
  const limit = 16 * 1024;
  assert.equal((await call(receiver, '/', { body: 'x'.repeat(limit) })).status, 200);
  assert.equal((await call(receiver, '/', { body: 'x'.repeat(limit + 1) })).status, 413);
  assert.equal((await call(receiver, '/reset', { body: 'x'.repeat(1_000_000) })).status, 413);
  await assert.rejects(call(receiver, '/', { body: 'x'.repeat(6 * 1024 * 1024) }));
  assert.deepEqual(
    receiver.callbacks().map(({ answer, body }) => [answer, String(body).length]),
    [
      ['413', limit],
      ['413', limit],
      ['200', limit],
    ],
  );
  const tooMany = await call(receiver, '/', { headers: { 'X-CC-Callback-Auth': 'k'.repeat(9_000) } });
  assert.equal(tooMany.status, 431);
});

test('deeply nested, malformed and empty bodies are recorded as text', async () => {
  await using receiver = await start();
  const bodies = ['['.repeat(8_000) + ']'.repeat(8_000), '{"a":'.repeat(9) + '1'.padEnd(10, '}'), '\0\xff', ''];
  for (const body of bodies) await call(receiver, '/', { body });
  await call(receiver, '/', { body: '{"__proto__":{"answer":"mine"}}' });
  const [proto, ...kept] = JSON.parse(JSON.stringify(receiver.callbacks())) as ReceivedCallback[];
  assert.deepEqual(kept.map(({ body }) => body).reverse(), bodies);
  assert.equal(proto?.answer, '200');
});

test('no malformed client crashes it', async () => {
  await using receiver = await start();
  const secure = async () => {
    const socket = tls.connect({ port: receiver.port, host: '127.0.0.1', servername: HOST, ca: CA.root });
    await once(socket, 'secureConnect');
    return socket;
  };
  const plain = async () => {
    const socket = net.connect(receiver.port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };
  const table: [() => Promise<net.Socket>, string][] = [
    [plain, 'GET / HTTP/1.1\r\n\r\n'],
    [plain, '\x16\x03\x01\xff\xff\x01garbage'],
    [secure, '\0\0\0\0\r\n\r\n'],
    [secure, 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    [secure, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    [secure, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ];
  for (const [connect, bytes] of table) {
    const socket = await connect();
    socket.on('error', () => {});
    socket.resume();
    socket.write(bytes, 'latin1');
    await once(socket, 'close');
  }
  // Peers that disconnect at once, in the handshake, and in the middle of a request.
  for (const connect of [plain, secure]) {
    const socket = await connect();
    socket.on('error', () => {});
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab');
    socket.destroy();
  }
  assert.equal((await call(receiver, '/')).status, 200);
  assert.deepEqual(answersOf(receiver), ['200']);
});

test('one request per connection, and 64 concurrent connections', async () => {
  await using receiver = await start();
  const two = tls.connect({ port: receiver.port, host: '127.0.0.1', servername: HOST, ca: CA.root });
  two.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
  let text = '';
  while (!/ 503 .*\r\n\r\n/s.test(text)) text += (await once(two, 'data'))[0];
  two.destroy();
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.deepEqual(
    receiver.callbacks().map(({ path }) => path),
    ['/1'],
  );

  const waiting = Array.from({ length: 64 }, () => net.connect(receiver.port, '127.0.0.1').on('error', () => {}));
  await Promise.all(waiting.map((socket) => once(socket, 'connect')));
  await assert.rejects(call(receiver, '/'));
  for (const socket of waiting) socket.destroy();
  // The receiver notices the disconnects one by one.
  while ((await call(receiver, '/').catch(() => undefined))?.status !== 200) await sleep(20);
});

test('a silent client is disconnected', async () => {
  await using receiver = await start();
  const connect = () => tls.connect({ port: receiver.port, host: '127.0.0.1', servername: HOST, ca: CA.root });
  const sockets = [net.connect(receiver.port, '127.0.0.1'), connect(), connect(), connect()];
  for (const socket of sockets) socket.on('error', () => {}).resume();
  sockets[2]?.write('POST / HTTP/1.1\r\nHost: a\r\n');
  sockets[3]?.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab');
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
  assert.equal(receiver.callbacks().length, 0);
});

test('closing disconnects everything at once and leaks nothing', async () => {
  /** Waits for handles of earlier tests to close, and compares counts, because the test runner has handles too. */
  const handles = async () => {
    await sleep(100);
    return process.getActiveResourcesInfo().filter((one) => /Timeout|TCP|TLS/.test(one));
  };
  let before = await handles();
  while (before.includes('TCPServerWrap')) before = await handles(); // A handle that an earlier test is still closing.
  const receiver = await start();
  const clients = ['/silent', '/endless', '/delay/60'].map((path) => request(receiver, path, {}));
  const ended = clients.map((client) => new Promise((resolve) => client.on('error', () => {}).once('close', resolve)));
  clients[1]?.on('response', (answer) => answer.on('error', () => {}).resume());
  const idle = net.connect(receiver.port, '127.0.0.1').on('error', () => {});
  await once(idle, 'connect');
  while (receiver.callbacks().length < 3) await sleep(10);
  assert.notDeepEqual(await handles(), before);
  const since = performance.now();
  await receiver.close();
  await Promise.all([...ended, once(idle.resume(), 'close')]);
  assert.ok(performance.now() - since < 2_000);
  assert.deepEqual(await handles(), before);
  await receiver.close();
  await assert.rejects(call(receiver, '/'), coded('ECONNREFUSED'));
});

test('a port that is taken is an error, not a crash', async () => {
  await using receiver = await start();
  const again = startReceiver({ host: '127.0.0.1', port: receiver.port, certificates: CERTIFICATES, onCallback() {} });
  await assert.rejects(again, coded('EADDRINUSE'));
});
