// Egress, the HTTP part: what is sent, and how any response is classified. The status decides; nothing else that a
// receiver sends has an effect.
import assert from 'node:assert/strict';
import { Socket, type TcpSocketConnectOpts } from 'node:net';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type CallOptions, HOST, Outside, USER_AGENT, verdict } from '../../support/outside.ts';
import {
  drip,
  OK,
  type Receiver,
  reset,
  resetAfter,
  respond,
  respondAndKeepOpen,
  respondEndlessly,
  type Script,
} from '../../support/receiver.ts';

let outside: Outside;
let receiver: Receiver;
before(async () => {
  outside = await Outside.open();
  receiver = await outside.receiver();
});
after(() => outside[Symbol.asyncDispose]());

/** On a connection of its own, and on one that may be kept. */
const EITHER: readonly CallOptions[] = [{}, { keptFor: 'a', keep: { exchanges: 1 } }];
/** Bounds endless responses, and is far more than any other case needs. */
const SHORT: CallOptions = { totalMs: 1_500, limits: { bodyMs: 200 } };

async function answerTo(script: Script, callOptions: CallOptions = SHORT) {
  receiver.script = script;
  const before = receiver.requests.length;
  const outcome = await outside.call(`https://${HOST}:${receiver.port}/hook`, callOptions);
  assert.ok(receiver.requests.length - before <= 1, 'it was sent twice');
  await receiver.deserted();
  return outcome;
}

const REST = 'Content-Length: 2\r\n\r\nok';
const status = (code: number | string, ...headers: readonly string[]) =>
  `HTTP/1.1 ${code}\r\n${headers.map((header) => `${header}\r\n`).join('')}${REST}`;
const interim = (count: number) => respond('HTTP/1.1 102 Processing\r\n\r\n'.repeat(count), OK);
const chunked = (...chunks: readonly string[]) =>
  respond('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', ...chunks);

const INVALID = 'failed response response_invalid';
const CLOSED = 'failed response connection_closed';
const TIMED_OUT = 'failed response response_timeout';

const STATUSES = [
  201, 202, 203, 205, 206, 300, 302, 303, 307, 308, 400, 401, 403, 404, 410, 413, 429, 500, 502, 503, 999,
];

const CASES: Readonly<Record<string, readonly [Script, string]>> = {
  ...Object.fromEntries(STATUSES.map((code) => [`status ${code}`, [respond(status(code)), `answered ${code}`]])),
  'a plain 200': [respond(OK), 'answered 200'],
  'a 200 that leaves the connection open': [respondAndKeepOpen(OK), 'answered 200'],
  'no reason phrase': [respond(`HTTP/1.1 200\r\n${REST}`), 'answered 200'],
  'HTTP/1.0': [respond('HTTP/1.0 200 OK\r\n\r\nhello'), 'answered 200'],
  'a body until the end of the connection': [respond('HTTP/1.1 200 OK\r\n\r\nhello'), 'answered 200'],
  'chunks, an extension and a trailer': [chunked('2\r\nok\r\n1;a=b\r\n!\r\n0\r\nT: x\r\n\r\n'), 'answered 200'],
  '204 without a body': [respondAndKeepOpen('HTTP/1.1 204 No Content\r\n\r\n'), 'answered 204'],
  '304 with the length of a body it has not': [
    respondAndKeepOpen('HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'),
    'answered 304',
  ],
  'an offer to upgrade': [respond(status('200 OK', 'Upgrade: h2c', 'Connection: Upgrade')), 'answered 200'],
  'a second answer behind the first': [respondAndKeepOpen(OK, status(500)), 'answered 200'],
  'an unsolicited 100 Continue': [respond('HTTP/1.1 100 Continue\r\n\r\n', OK), 'answered 200'],
  '103 Early Hints': [respond('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', OK), 'answered 200'],
  '16 interim answers': [interim(16), 'answered 200'],
  '17 interim answers': [interim(17), INVALID],
  'interim answers without end': [respondEndlessly('', 'HTTP/1.1 102 Processing\r\n\r\n'), INVALID],
  'an interim response only': [respond('HTTP/1.1 102 Processing\r\n\r\n'), CLOSED],
  'an interim answer with a body': [respond('HTTP/1.1 102 P\r\nContent-Length: 2\r\n\r\nok', OK), INVALID],
  '101 with an upgrade': [
    respondAndKeepOpen('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
    INVALID,
  ],
  '101 without one': [respondAndKeepOpen('HTTP/1.1 101 Switching Protocols\r\n\r\n'), INVALID],
  '101 and then a 200': [respond('HTTP/1.1 101 S\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n', OK), INVALID],
  'status 000': [respond(status('000')), INVALID],
  'status 099': [respond(status('099')), INVALID],
  'a status of two digits': [respond(status(20)), INVALID],
  'a status of four digits': [respond(status(2000)), INVALID],
  'a status that is no number': [respond(status('two hundred')), INVALID],
  'HTTP/0.9': [respond('<html>hello</html>'), INVALID],
  'HTTP/1.2': [respond(`HTTP/1.2 200 OK\r\n${REST}`), INVALID],
  'RTSP, which the parser takes for HTTP': [respond('RTSP/1.0 200 OK\r\n\r\n'), INVALID],
  'ICE, likewise': [respond('ICE/1.0 200 OK\r\n\r\n'), INVALID],
  'a status line in pieces': [
    (socket) => {
      for (const [index, one] of [...OK].entries()) setTimeout(() => socket.destroyed || socket.write(one), index);
    },
    'answered 200',
  ],
  'HTTP/2.0 in words': [respond(`HTTP/2.0 200 OK\r\n${REST}`), INVALID],
  'HTTP/2 in frames': [respond('\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64'), INVALID],
  'http in small letters': [respond(`http/1.1 200 OK\r\n${REST}`), INVALID],
  'another protocol': [respond('SSH-2.0-OpenSSH_9.6\r\n'), INVALID],
  'a request': [respond('POST / HTTP/1.1\r\nHost: a\r\n\r\n'), INVALID],
  'random bytes': [respond('\x00\xff\x80\x7f\x01random'), INVALID],
  'lines without CR': [respond('HTTP/1.1 200 OK\nContent-Length: 2\n\nok'), INVALID],
  'two different lengths': [respond(status('200 OK', 'Content-Length: 3')), INVALID],
  'a negative length': [respond('HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok'), INVALID],
  'a length beyond all numbers': [respond(`HTTP/1.1 200 OK\r\nContent-Length: ${'9'.repeat(30)}\r\n\r\nok`), INVALID],
  'a length and chunks': [respond(status('200 OK', 'Transfer-Encoding: chunked')), INVALID],
  'a header without a colon': [respond(status('200 OK', 'nonsense')), INVALID],
  'a blank before the colon': [respond(status('200 OK', 'a : b')), INVALID],
  'a NUL in a header': [respond(status('200 OK', 'a: \0')), INVALID],
  'a CR in a header': [respond(status('200 OK', 'a: b\rc: d')), INVALID],
  'a folded header': [respond(status('200 OK', 'a: b\r\n c')), INVALID],
  'a head of 15 KiB': [respond(status('200 OK', `a: ${'a'.repeat(15_000)}`)), 'answered 200'],
  'a head of 17 KiB': [respond(status('200 OK', `a: ${'a'.repeat(17_000)}`)), INVALID],
  'a head without end': [respondEndlessly('HTTP/1.1 200 OK\r\n', `a: ${'a'.repeat(1_000)}\r\n`), INVALID],
  'a reason phrase without end': [respondEndlessly('HTTP/1.1 200 ', 'a'.repeat(1_000)), INVALID],
  'the end instead of an answer': [respond(), CLOSED],
  'the end in the status line': [respond('HTTP/1.'), CLOSED],
  'the end in the head': [respond('HTTP/1.1 200 OK\r\nContent-'), CLOSED],
  'a reset instead of an answer': [reset, CLOSED],
  'a reset in the head': [resetAfter('HTTP/1.1 200 OK\r\nContent-'), CLOSED],
  silence: [() => {}, TIMED_OUT],
  'half a status line and silence': [respondAndKeepOpen('HTTP/1.1 2'), TIMED_OUT],
  'a head that drips': [drip('HTTP/1.1 200 OK\r\n', 'a'), TIMED_OUT],
  'a body that never comes': [respondAndKeepOpen('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'), 'answered 200'],
  'a body that drips': [drip('HTTP/1.1 200 OK\r\n\r\n', 'a'), 'answered 200'],
  'a body that is cut off': [respond('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok'), 'answered 200'],
  'a reset in the body': [resetAfter('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok'), 'answered 200'],
  'a chunk of no size': [chunked('zz\r\n'), 'answered 200'],
  'a chunk longer than it says': [chunked('2\r\nokzz'), 'answered 200'],
  'an extension without end': [
    respondEndlessly('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;', 'a=b;'),
    'answered 200',
  ],
  'a trailer without end': [
    respondEndlessly('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n', 'a: b\r\n'),
    'answered 200',
  ],
};

for (const [title, [script, expected]] of Object.entries(CASES)) {
  test(`answer: ${title}`, async () => {
    for (const kept of EITHER) assert.equal(verdict(await answerTo(script, { ...SHORT, ...kept })), expected);
  });
}

test('the outcome has status, headers, body and the stage reached', async () => {
  const outcome = await answerTo(respond(status('200 OK', 'Set-Cookie: a=1', 'Set-Cookie: b=2', '__proto__: c')));
  assert.ok(outcome.kind === 'answered');
  assert.deepEqual(outcome.headers, { 'set-cookie': 'a=1, b=2', 'content-length': '2' });
  assert.equal(Buffer.from(outcome.body).toString(), 'ok');
  assert.equal(outcome.isPrivate, true);
  assert.equal(outcome.seen.stage, 'response');
  assert.deepEqual(Object.keys(outcome.seen.phases), ['resolve', 'connect', 'tls', 'request', 'response']);
  for (const ms of Object.values(outcome.seen.phases)) assert.ok(Number.isInteger(ms) && ms >= 0);
});

test('a body is cut at 16 KiB, and never decompressed', async () => {
  const bomb = gzipSync(Buffer.alloc(1024 * 1024)).toString('latin1');
  const head = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n';
  const cases: readonly (readonly [Script, number])[] = [
    [respondEndlessly('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(5_000)), 16_384],
    [respondEndlessly('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n'), 16_384],
    [respond(head, bomb), bomb.length],
    [respond('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(16_384)), 16_384],
    [respond('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(16_385)), 16_384],
  ];
  for (const [script, length] of cases) {
    for (const kept of EITHER) {
      const outcome = await answerTo(script, { totalMs: 60_000, limits: { bodyMs: 60_000 }, ...kept });
      assert.ok(outcome.kind === 'answered');
      assert.equal(outcome.body.length, length);
    }
  }
});

test('a body that has ended, in any way, is not waited for', { timeout: 20_000 }, async () => {
  const short = 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok';
  for (const script of [respondAndKeepOpen(OK), respond(short), resetAfter(short), chunked('zz\r\n')]) {
    for (const kept of EITHER) {
      const outcome = await answerTo(script, { totalMs: 60_000, limits: { bodyMs: 60_000 }, ...kept });
      assert.equal(verdict(outcome), 'answered 200');
    }
  }
});

test('a redirect is a response, and is not followed', async () => {
  const elsewhere = await outside.receiver();
  const to = `https://${HOST}:${elsewhere.port}/there`;
  const outcome = await answerTo(respond(status('301 Moved', `Location: ${to}`)));
  assert.equal(verdict(outcome), 'answered 301');
  assert.ok(outcome.kind === 'answered' && outcome.headers.location === to);
  assert.deepEqual(elsewhere.connections, []);
});

test('a response may arrive before the request was read, or sent', async () => {
  for (const answer of [OK, status(413)]) {
    const hasty = await outside.receiver({ onSecure: (socket) => socket.write(answer) });
    for (const kept of EITHER) {
      const outcome = await outside.call(`https://${HOST}:${hasty.port}/`, { body: 'x'.repeat(65_536), ...kept });
      assert.equal(verdict(outcome), `answered ${answer === OK ? 200 : 413}`);
      await hasty.deserted();
    }
  }
});

test('a receiver that aborts a large request yields its response, or a failure', async () => {
  const enough = status('413 Content Too Large');
  const cases: readonly (readonly [(socket: Socket) => void, string])[] = [
    [(socket) => socket.pause().end(enough), 'answered 413'],
    [(socket) => socket.write(enough, () => socket.destroy()), 'answered 413'],
    [(socket) => reset(socket, ''), 'failed request connection_closed'],
  ];
  for (const [answer, expected] of cases) {
    const picky = await outside.receiver({ onSecure: (socket) => socket.once('data', () => answer(socket)) });
    for (const kept of EITHER) {
      const body = 'x'.repeat(8 * 1024 * 1024);
      assert.equal(verdict(await outside.call(`https://${HOST}:${picky.port}/`, { body, ...kept })), expected);
    }
  }
});

test('the receiver sees exactly these bytes', async () => {
  const headers = { 'Content-Type': 'application/json', 'X-CC-Callback-Auth': 's3cret', 'webhook-id': 'evt_1' };
  receiver.script = respond(OK);
  const target = '/a//b/../%7E/%7e;c=d?x=%20&y=+&z=/?';
  const from = receiver.requests.length;
  await outside.call(`https://${HOST}:${receiver.port}${target}`, { headers, body: '{"ü":1}' });
  assert.deepEqual(receiver.requests.slice(from), [
    [
      `POST ${target} HTTP/1.1`,
      `Host: ${HOST}:${receiver.port}`,
      `User-Agent: ${USER_AGENT}`,
      'Content-Type: application/json',
      'X-CC-Callback-Auth: s3cret',
      'webhook-id: evt_1',
      'Content-Length: 8',
      'Connection: close',
      '',
      Buffer.from('{"ü":1}').toString('latin1'),
    ].join('\r\n'),
  ]);
});

test('the default port is not in the Host header', async (t) => {
  receiver.script = respond(OK);
  const { connect } = Socket.prototype;
  t.mock.method(Socket.prototype, 'connect', function (this: Socket, options: TcpSocketConnectOpts) {
    assert.equal(options.port, 443);
    return Reflect.apply(connect, this, [{ ...options, port: receiver.port }]);
  });
  assert.equal(verdict(await outside.call(`https://${HOST}/`)), 'answered 200');
  assert.match(receiver.requests.at(-1) ?? '', new RegExp(`\r\nHost: ${HOST}\r\n`));
});

test('a GET has no body, an empty POST has Content-Length: 0', async () => {
  receiver.script = respond(OK);
  const from = receiver.requests.length;
  await outside.call(`https://${HOST}:${receiver.port}/`, { method: 'GET', headers: {} });
  await outside.call(`https://${HOST}:${receiver.port}/`, { body: '', headers: {} });
  const common = `Host: ${HOST}:${receiver.port}\r\nUser-Agent: ${USER_AGENT}\r\n`;
  assert.deepEqual(receiver.requests.slice(from), [
    `GET / HTTP/1.1\r\n${common}Connection: close\r\n\r\n`,
    `POST / HTTP/1.1\r\n${common}Content-Length: 0\r\nConnection: close\r\n\r\n`,
  ]);
});

test('a large body arrives completely', async () => {
  const body = JSON.stringify('x'.repeat(300_000));
  const outcome = await answerTo(respond(OK), { body });
  assert.equal(verdict(outcome), 'answered 200');
  assert.ok(receiver.requests.at(-1)?.endsWith(`\r\n\r\n${body}`));
});

test('plain HTTP is the same without TLS', async () => {
  const bare = await outside.receiver({ identity: null });
  const outcome = await outside.call(`http://${HOST}:${bare.port}/a`, { method: 'GET' });
  assert.equal(verdict(outcome), 'answered 200');
  assert.ok(outcome.kind === 'answered' && outcome.seen.tls === null);
  assert.deepEqual(Object.keys(outcome.seen.phases), ['resolve', 'connect', 'request', 'response']);
});
