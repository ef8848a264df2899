// The bytes sent to a receiver, and how its response is classified: the status line decides, redirects are not followed,
// and the rest is truncated and never interpreted.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { gzipSync } from 'node:zlib';
import { callbackIn, resultOf, startCallbackApp, startPublicCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { HOST } from '../../support/outside.ts';
import {
  drip,
  resetAfter,
  respond,
  respondAndKeepOpen,
  respondEndlessly,
  type Script,
} from '../../support/receiver.ts';

const world = await startCallbackApp({
  RESEAL_CALLBACK_TEST_RATE: '1000/s',
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '100',
  RESEAL_CALLBACK_TESTS_PER_HOST: '100',
});
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside, url } = world;
const key = await app.newKey();

rule('egress 2', 'Redirects are not followed: a 3xx is `callback_response_not_200`.', async () => {
  outside.dns.set('elsewhere.example.test', 'A', ['127.0.0.1']);
  const elsewhere = await outside.receiver({ identity: outside.ca.identity([HOST, 'elsewhere.example.test']) });
  const plain = await outside.receiver({ identity: null });
  const places = [
    ...[url('/again'), '/again', '?again', `//${HOST}:${elsewhere.port}/`, `https://${HOST}:${elsewhere.port}/there`],
    ...[
      `https://elsewhere.example.test:${elsewhere.port}/there`,
      `http://127.0.0.1:${plain.port}/`,
      'file:///etc/passwd',
    ],
    ...['https://169.254.169.254/latest/meta-data/', 'https://10.0.0.1/', 'https://localhost/', '', 'https://'],
  ];
  const asked = outside.dns.queries.length;
  let sent = 0;
  for (const status of [300, 301, 302, 303, 304, 305, 307, 308, 399]) {
    for (const place of places) {
      const before = receiver.requests.length;
      const fields = [`Location: ${place}`, `Refresh: 0; url=${place}`, `Alt-Svc: h2=":${elsewhere.port}"`];
      receiver.script = respond(`HTTP/1.1 ${status} Moved\r\n${fields.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`);
      const answer = await world.test(key, { url: url('/first'), access_key: 'k' });
      assert.equal(resultOf(answer), '422 callback_response_not_200', `${status} ${place}`);
      assert.deepEqual([answer.body.details.http_status, answer.body.details.reason], [status, null]);
      assert.equal(receiver.requests.length, before + 1, 'one request, and no second');
      assert.match(callbackIn(receiver).line, /^POST \/first /);
      sent += 1;
    }
  }
  assert.deepEqual([elsewhere.connections, plain.connections], [[], []]);
  assert.equal(outside.dns.queries.length - asked, 2 * sent, 'and only the receiver’s name was resolved');
});

const HEAD = 'HTTP/1.1 200 OK\r\n';
const CHUNKS = 'Transfer-Encoding: chunked\r\n\r\n';

const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024, 'A')).toString('latin1');

const BODIES: Readonly<Record<string, (head: string) => Script>> = {
  'none at all': (head) => respondAndKeepOpen(`${head}Content-Length: 0\r\n\r\n`),
  'a body that never comes': (head) => respondAndKeepOpen(`${head}Content-Length: 5\r\n\r\n`),
  'an endless body without length': (head) => respondAndKeepOpen(`${head}\r\nbeginning`),
  'a body sent a byte at a time': (head) => drip(`${head}\r\n`, 'a'),
  'chunks that drip': (head) => drip(head + CHUNKS, '1\r\na\r\n'),
  'bytes without end': (head) => respondEndlessly(`${head}\r\n`, 'x'.repeat(5_000)),
  'a length beyond all memory': (head) =>
    respondEndlessly(`${head}Content-Length: 9007199254740991\r\n\r\n`, 'x'.repeat(5_000)),
  'chunks without end': (head) => respondEndlessly(head + CHUNKS, '1\r\nx\r\n'),
  'an extension without end': (head) => respondEndlessly(`${head}${CHUNKS}2;`, 'a=b;'),
  'a trailer without end': (head) => respondEndlessly(`${head}${CHUNKS}2\r\nok\r\n0\r\n`, 'a: b\r\n'),
  'a truncated body': (head) => respond(`${head}Content-Length: 20\r\n\r\nok`),
  'a body ended by a reset': (head) => resetAfter(`${head}Content-Length: 20\r\n\r\nok`),
  'chunks that are reset': (head) => resetAfter(`${head}${CHUNKS}5\r\nok`),
  'a chunk of no size': (head) => respond(`${head}${CHUNKS}zz\r\n`),
  'a chunk longer than it says': (head) => respond(`${head}${CHUNKS}2\r\nokzz`),
  'a decompression bomb': (head) => respond(`${head}Content-Encoding: gzip\r\n\r\n`, bomb),
  'a body that cannot be decompressed': (head) => respond(`${head}Content-Encoding: gzip\r\n\r\n`, 'this is not gzip'),
  'another answer behind it': (head) =>
    respondAndKeepOpen(`${head}Content-Length: 2\r\n\r\nok`, 'HTTP/1.1 500 X\r\n\r\n'),
};

rule('egress 3', 'after a 200, a slow, broken or endless body is cut off', async () => {
  const scripts = Object.values(BODIES);
  receiver.script = (socket, request) => {
    const [, status = '', index = ''] = /^POST \/(\d+)\/(\d+)/.exec(request) ?? [];
    scripts[Number(index)]?.(`HTTP/1.1 ${status} Whatever\r\n`)(socket, request);
  };
  // Concurrently, because some of them are slow.
  await Promise.all(
    Object.keys(BODIES).map(async (title, index) => {
      const answer = await world.test(key, { url: url(`/200/${index}`), access_key: 'k' });
      assert.equal(resultOf(answer), '200 success', `${title} ${answer.text}`);
      const { stage, reason, http_status } = answer.body.data.callback;
      assert.deepEqual([stage, reason, http_status], ['response', null, 200], title);
    }),
  );
  await receiver.deserted();
  // Conversely, no body makes another status a success.
  await Promise.all(
    Object.keys(BODIES).map(async (title, index) => {
      const answer = await world.test(key, { url: url(`/500/${index}`), access_key: 'k' });
      assert.equal(resultOf(answer), '422 callback_response_not_200', `${title} ${answer.text}`);
      assert.equal(answer.body.details.http_status, 500);
    }),
  );
  await receiver.deserted();
});

rule('egress 3', 'is cut off, at 16 KiB at the latest, and does not fail the callback', async () => {
  // A receiver on loopback that counts as public, because bodies of private ones are not shown.
  await using open = await startPublicCallbackApp();
  const caller = await open.app.newKey();
  const excerptOf = async (script: Script) => {
    open.receiver.script = script;
    const answer = await open.test(caller, { url: open.url(), access_key: 'k' });
    assert.equal(resultOf(answer), '200 success');
    await open.receiver.deserted();
    return answer.body.data.callback.excerpt as string;
  };
  // Control characters count as bytes but are shown as one space, so the excerpt reveals where the body is cut.
  const hidden = (count: number) => '\x01'.repeat(count);
  assert.equal(await excerptOf(respond(`${HEAD}\r\nA${hidden(1_000)}B`)), 'A B');
  for (const beyond of [16_384, 16_385, 20_000, 65_536, 1_000_000]) {
    const body = `A${hidden(beyond - 1)}B`;
    for (const script of [
      respond(`${HEAD}\r\n${body}`),
      respond(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`),
      respond(`${HEAD}${CHUNKS}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`),
    ]) {
      assert.equal(await excerptOf(script), 'A', `byte ${beyond} is not shown`);
    }
  }
  const raw = await excerptOf(respond(`${HEAD}Content-Encoding: gzip\r\n\r\n`, bomb));
  assert.doesNotMatch(raw, /AAAA/, 'and nothing is decompressed');
});

/** Everything in a request that could leak into another one. */
const OF_THE_CALLER: Readonly<Record<string, string>> = {
  'accept-language': 'zh-CN, from-caller',
  accept: 'text/from-caller',
  authorization: 'Bearer from-caller',
  cookie: 'session=from-caller',
  forwarded: 'for=from-caller',
  from: 'from-caller@example.com',
  origin: 'https://from-caller.example',
  referer: 'https://from-caller.example/',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=from-caller',
  'user-agent': 'from-caller/1.0',
  via: '1.1 from-caller',
  'webhook-id': 'from-caller',
  'webhook-signature': 'v1,from-caller',
  'x-cc-callback-auth': 'from-caller',
  'x-forwarded-for': '203.0.113.77',
  'x-forwarded-host': 'from-caller.example',
  'x-request-id': 'from-caller',
  'x-anything-else': 'from-caller',
};

rule(
  'egress 6',
  '`Host`, `User-Agent`, `Content-Type` (`application/json`), `Content-Length`, `X-CC-Callback-Auth`, the signature headers and `Connection`, and nothing of the request of the caller',
  async () => {
    receiver.script = respond(`${HEAD}Content-Length: 0\r\n\r\n`);
    const json = { url: url('/hook?q=1'), access_key: 'the-key', note: 'from-caller', message: 'from-caller' };
    const answer = await world.test(key, json, { headers: OF_THE_CALLER });
    assert.equal(resultOf(answer), '200 success', answer.text);
    const { line, headers, text } = callbackIn(receiver);
    const [head = ''] = receiver.requests.at(-1)?.split('\r\n\r\n') ?? [];
    const names = head
      .split('\r\n')
      .slice(1)
      .map((field) => field.split(':')[0]?.toLowerCase());
    assert.equal(line, 'POST /hook?q=1 HTTP/1.1');
    // In addition to the contract, only what HTTP requires: that the connection is closed afterwards.
    assert.deepEqual(names.sort(), [
      ...['connection', 'content-length', 'content-type', 'host', 'user-agent'],
      ...['webhook-id', 'webhook-signature', 'webhook-timestamp', 'x-cc-callback-auth'],
    ]);
    assert.equal(headers.connection, 'close');
    assert.equal(headers.host, `${HOST}:${receiver.port}`);
    assert.match(headers['user-agent'] ?? '', /^Reseal[\w-]*\/[\d.]+$/);
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
    assert.equal(headers['x-cc-callback-auth'], 'the-key');
    const secrets = [key.keyId, key.authKey, key.accountId, answer.headers.get('x-request-id') ?? '-'];
    const known = ['from-caller', '203.0.113.77', '0af7651916cd43dd', 'gzip', new URL(app.url).host, ...secrets];
    for (const one of known) assert.ok(!receiver.requests.at(-1)?.includes(one), `the receiver got ${one}`);
    assert.equal(receiver.serverNames.at(-1), HOST);
  },
);

const TARGETS = [
  ...[
    '/',
    '//',
    '/a//b/../c/./d',
    '/%2e%2E/%7E~%zz%',
    '/a;b=c,d',
    '/?',
    '/?a=b&a=b&&=',
    '/?x=%20&y=+&z=/?',
    '/UPPER/lower',
  ],
  ...['/"<>^`{|}\'', '/@:!$&()*+', '/?u=https://user:pw@evil.example/%23', '/%0d%0aX-Evil:%201', '/[x]', '/..;/..'],
];

rule('egress 6', 'The request to the receiver has the path and query of the URL unchanged', async () => {
  receiver.script = respond(`${HEAD}Content-Length: 0\r\n\r\n`);
  const other = await app.newKey();
  for (const [written, expected] of [
    ...TARGETS.map((target) => [target, target] as const),
    ['', '/'] as const,
    ['?only=query', '/?only=query'] as const,
  ]) {
    const given = { url: url(written), access_key: 'k' };
    assert.equal(resultOf(await world.test(key, given)), '200 success', written);
    assert.equal(callbackIn(receiver).line, `POST ${expected} HTTP/1.1`);
    await world.save(other, given);
    assert.equal(resultOf(await world.test(other)), '200 success', written);
    assert.equal(callbackIn(receiver).line, `POST ${expected} HTTP/1.1`, 'as saved');
  }
});
