// Responses to a callback test: the nine codes with their conditions, and the one object that reports the observed
// phases, for success and failure alike.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Answer, Call, Key } from '../../support/app.ts';
import { resultOf, SETTINGS, startCallbackApp, TEST } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { pathsOf } from '../../support/document.ts';
import { HOST } from '../../support/outside.ts';
import { OK, respond } from '../../support/receiver.ts';
import { TestCa } from '../../support/receiver-certificates.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside, url } = world;

const DAY = 86_400_000;
const BAD = '400 invalid_parameters';
const STAGES = ['resolve', 'connect', 'tls', 'request', 'response'];
const SAVED = { url: url('/saved'), access_key: 'k' };

const at = (port: number, host = HOST) => `https://${host}:${port}/`;
const asJson = (raw: string): Call => ({ raw, headers: { 'content-type': 'application/json' } });
async function configured(): Promise<Key> {
  const key = await app.newKey();
  assert.equal(resultOf(await world.save(key, SAVED)), '200 success');
  return key;
}
async function answered(status: number, key: Key): Promise<Answer> {
  receiver.script = respond(`HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`);
  const answer = await world.test(key);
  receiver.script = respond(OK);
  return answer;
}

const closedPort = await (async () => {
  await using closed = await outside.receiver();
  return closed.port;
})();
const [trusted, unknown] = [outside.ca, new TestCa('Unknown Root')];
const ofToday = (from: number, until: number) => ({ from: Date.now() + from * DAY, until: Date.now() + until * DAY });
const portWith = async (identity: ReturnType<typeof trusted.identity>) => (await outside.receiver({ identity })).port;
const portThat = async (onAccept: NonNullable<Parameters<typeof outside.receiver>[0]>['onAccept']) =>
  (await outside.receiver({ onAccept: onAccept! })).port;
const portSaying = async (...bytes: string[]) => (await outside.receiver({ script: respond(...bytes) })).port;
for (const failure of ['servfail', 'refused', 'silence'] as const) {
  outside.dns.set(`${failure}.example.test`, 'A', failure);
  outside.dns.set(`${failure}.example.test`, 'AAAA', failure);
}
outside.dns.set('private.example.test', 'A', ['192.168.0.1']);
outside.dns.set('mixed.example.test', 'A', ['127.0.0.1', '10.0.0.1']);
outside.dns.set('private6.example.test', 'AAAA', ['fd00::1']);

/** Every reason why a callback cannot be sent: the cause, the URL, the stage reached and the reason. */
const UNSENT: readonly (readonly [cause: string, url: string, stage: string, reason: string])[] = [
  ['DNS', 'https://missing.example.test/', 'resolve', 'name_not_found'],
  ['DNS', 'https://servfail.example.test/', 'resolve', 'dns_failure'],
  ['DNS', 'https://refused.example.test/', 'resolve', 'dns_failure'],
  ['time-out', 'https://silence.example.test/', 'resolve', 'dns_timeout'],
  ['network', at(closedPort), 'connect', 'connection_refused'],
  ['network', at(await portThat((socket) => socket.destroy())), 'tls', 'connection_closed'],
  ['network', at(await portSaying('')), 'response', 'connection_closed'],
  ['network', at(await portSaying('nonsense\r\n\r\n')), 'response', 'response_invalid'],
  ['TLS', at(await portThat((socket) => socket.end('plain text'))), 'tls', 'tls_failed'],
  ['TLS', at(await portWith(unknown.identity([HOST]))), 'tls', 'certificate_untrusted'],
  ['TLS', at(await portWith(trusted.identity([HOST], ofToday(-9, -2)))), 'tls', 'certificate_expired'],
  ['TLS', at(await portWith(trusted.identity([HOST], ofToday(2, 9)))), 'tls', 'certificate_not_yet_valid'],
  ['TLS', at(await portWith(trusted.identity(['other.example.test']))), 'tls', 'certificate_wrong_host'],
];

rule('errors callback_send_error', 'could not be sent because of the network, DNS, TLS or a time-out', async () => {
  const key = await configured();
  // Concurrently, because one of them takes the full DNS timeout.
  const answers = UNSENT.map(async ([cause, address, stage, reason], index) => {
    const own = await configured();
    const english = await world.test(own, { url: address });
    assert.equal(resultOf(english), '422 callback_send_error', address);
    assert.deepEqual([english.body.details.stage, english.body.details.reason], [stage, reason], cause);
    if (index % 4 !== 0) return english.body.message;
    const chinese = await world.test(own, { url: address }, { headers: { 'accept-language': 'zh-CN' } });
    assert.match(chinese.body.message, /\p{Script=Han}/u);
    assert.equal(chinese.body.details.reason, reason);
    return english.body.message;
  });
  const messages = new Set(await Promise.all(answers));
  const reasons = new Set(UNSENT.map(([, , , reason]) => reason));
  assert.equal(messages.size, reasons.size, 'every reason has a distinct message');
  assert.equal(resultOf(await world.test(key)), '200 success');
});

rule('errors callback_response_not_200', 'is 422: the receiver answered with a status that is not 200', async () => {
  const key = await configured();
  for (const status of [201, 202, 204, 206, 299, 301, 302, 304, 307, 400, 401, 403, 404, 418, 429, 500, 503, 599]) {
    const answer = await answered(status, key);
    assert.equal(resultOf(answer), '422 callback_response_not_200', String(status));
    assert.equal(answer.body.details.http_status, status);
    assert.ok(answer.body.message.includes(String(status)), 'the message says which');
  }
});

rule(
  'errors callback_private_domain',
  'the host of the callback `url` stands for an address that is not public',
  async () => {
    const key = await configured();
    const hosts = ['10.0.0.1', '192.168.1.1', '[fd00::1]', '[::ffff:10.0.0.1]', '0x0a000001', '169.254.169.254'];
    const names = ['private.example.test', 'mixed.example.test', 'private6.example.test'];
    for (const host of [...hosts, ...names]) {
      const before = receiver.connections.length;
      const answer = await world.test(key, { url: at(receiver.port, host) });
      assert.equal(resultOf(answer), '422 callback_private_domain', host);
      assert.deepEqual(Object.keys(answer.body).sort(), ['code', 'message', 'request_id']);
      assert.equal(receiver.connections.length, before, 'no call was made');
    }
  },
);

rule('errors callback_not_configured', 'the request did not bring both `url` and `access_key`', async () => {
  const key = await app.newKey();
  for (const json of [undefined, {}, { url: url() }, { access_key: 'k' }]) {
    assert.equal(resultOf(await world.test(key, json)), '400 callback_not_configured', JSON.stringify(json));
  }
  assert.equal(resultOf(await world.save(key, {})), '400 callback_not_configured');
  assert.equal(resultOf(await world.test(key, SAVED)), '200 success');
});

rule('errors callback_url_not_https', 'is 400: the callback `url` has a scheme other than HTTPS', async () => {
  const key = await configured();
  for (const address of ['http://example.com/', 'HTTP://example.com', 'ftp://example.com:21/x', 'wss://10.0.0.1/']) {
    assert.equal(resultOf(await world.test(key, { url: address })), '400 callback_url_not_https url', address);
    const stored = await world.save(key, { url: address, access_key: 'k' });
    assert.equal(resultOf(stored), '400 callback_url_not_https url', address);
  }
});

rule('errors invalid_callback_url', 'is not of a valid form, or the `url` or the `access_key` is longer', async () => {
  const key = await configured();
  const malformed = [
    'example.com',
    'https:/example.com',
    'https://',
    'https://a b/',
    'https://u@a.com/',
    'https://a.com/#x',
  ];
  for (const address of [...malformed, 'https://a..com/', 'https://a.com:99999/', url('/').padEnd(257, 'x')]) {
    for (const answer of [
      await world.test(key, { url: address }),
      await world.save(key, { url: address, access_key: 'k' }),
    ]) {
      assert.equal(resultOf(answer), '400 invalid_callback_url url', address);
    }
  }
  const { body } = await world.test(key, { url: 'https://a b/?token=s3cret' });
  assert.doesNotMatch(body.message, /s3cret/, 'the URL may contain a secret, and is not repeated');
  const long = { url: url(), access_key: 'k'.repeat(257) };
  assert.equal(resultOf(await world.test(key, long)), '400 invalid_callback_url access_key');
  assert.equal(resultOf(await world.save(key, long)), '400 invalid_callback_url access_key');
});

rule('errors invalid_parameters', 'is 400, unless a transport line gives another status', async () => {
  const key = await configured();
  const put = (path: string, call: Call) => app.call('PUT', path, { key, ...call });
  const cases: readonly (readonly [what: string, answer: Promise<Answer>, expected: string])[] = [
    ['malformed', put(TEST, asJson('{"url":')), BAD],
    ['malformed', put(SETTINGS, asJson('')), BAD],
    ['not an object', put(TEST, asJson('[]')), BAD],
    ['missing', put(SETTINGS, { json: { url: url() } }), `${BAD} access_key`],
    ['missing', put('/openapi/v3/account', { json: {} }), BAD],
    ['of the wrong type', put(TEST, { json: { url: 5 } }), `${BAD} url`],
    ['of the wrong type', put(SETTINGS, { json: { disabled: 'true' } }), `${BAD} disabled`],
    ['out of range', put('/openapi/v3/account', { json: { name: 'n'.repeat(201) } }), `${BAD} name`],
    ['out of range', put('/openapi/v3/account', { json: { locale: 'fr' } }), `${BAD} locale`],
    ['empty', put(TEST, { json: { url: '' } }), `${BAD} url`],
    ['empty', put(TEST, { json: { access_key: '' } }), `${BAD} access_key`],
    [
      'another status',
      put(TEST, { raw: '{"url":"x"}', headers: { 'content-type': 'text/plain' } }),
      '415 invalid_parameters',
    ],
    ['another status', put(TEST, asJson(`"${'x'.repeat(300_000)}"`)), '413 invalid_parameters'],
  ];
  for (const [what, answer, expected] of cases) assert.equal(resultOf(await answer), expected, what);
});

rule(
  'callback-test 6',
  'The test fails if the network fails, if the host resolves to a private address, or if',
  async () => {
    const key = await configured();
    assert.equal(resultOf(await world.test(key, { url: at(closedPort) })), '422 callback_send_error');
    assert.equal(
      resultOf(await world.test(key, { url: 'https://mixed.example.test/' })),
      '422 callback_private_domain',
    );
    assert.equal(resultOf(await answered(201, key)), '422 callback_response_not_200');
    assert.equal(resultOf(await answered(200, key)), '200 success', 'and otherwise it is not');
  },
);

rule('callback-test.answer 1', 'when the receiver answers the simulated callback with HTTP 200', async () => {
  const key = await configured();
  const fine = [
    OK,
    'HTTP/1.1 200 \r\n\r\n',
    'HTTP/1.0 200 OK\r\n\r\n',
    'HTTP/1.1 200 Not Good\r\n\r\n{"code":"error"}',
  ];
  const interim = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n';
  for (const answer of [...fine, interim + OK]) {
    receiver.script = respond(answer);
    const { status, body } = await world.test(key);
    assert.deepEqual(
      [status, body.code, body.data.callback.http_status],
      [200, 'success', 200],
      JSON.stringify(answer),
    );
    assert.deepEqual(Object.keys(body).sort(), ['code', 'data']);
    assert.deepEqual(Object.keys(body.data), ['callback']);
  }
  receiver.script = respond('HTTP/1.1 500 OK 200\r\nX-Status: 200\r\n\r\nHTTP/1.1 200 OK');
  assert.equal(
    resultOf(await world.test(key)),
    '422 callback_response_not_200',
    'the status, and nothing that resembles it',
  );
  receiver.script = respond(OK);
});

rule(
  'callback-test.answer 2',
  '`data.callback` of a success, and `details` after a failure to send or an answer',
  async () => {
    const key = await configured();
    const success = (await world.test(key)).body;
    const notOk = (await answered(500, key)).body;
    const unsent = (await world.test(key, { url: at(closedPort) })).body;
    const keys = Object.keys(success.data.callback);
    for (const { details } of [notOk, unsent]) assert.deepEqual(Object.keys(details), keys, 'the same object');
    assert.ok(!('details' in success) && !('data' in notOk) && !('data' in unsent));
    // Nothing is reported for phases that were not reached.
    for (const json of [{ url: 'http://x/' }, { url: '' }, { url: 'https://10.0.0.1/' }, { url: 'x' }]) {
      assert.ok(!('details' in (await world.test(key, json)).body), JSON.stringify(json));
    }
  },
);

rule(
  'callback-test.answer 3',
  'a `reason` from a closed list, the `http_status`, the milliseconds of each phase',
  async () => {
    const key = await configured();
    const paths = await pathsOf(app);
    const { properties } =
      paths[TEST].put.responses[200].content['application/json'].schema.properties.data.properties.callback;
    const [{ enum: closedList }] = properties.reason.anyOf;
    assert.deepEqual(properties.stage.enum, STAGES);

    const until = Math.floor(Date.now() / 1_000) * 1_000 + 40 * DAY;
    const days = () => Math.floor((until - app.now()) / DAY);
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const identity = trusted.identity([HOST], { until });
      const { port } = await outside.receiver({ identity, tls: { maxVersion: version } });
      for (let round = 0; round < 2; round += 1) {
        const { callback } = (await world.test(key, { url: at(port) })).body.data;
        const { webhook_id: id, phases_ms: phases, ...rest } = callback;
        assert.match(id, /^test-/);
        assert.deepEqual(Object.keys(phases), STAGES);
        const seen = { stage: 'response', reason: null, http_status: 200, tls_version: version, excerpt: null };
        assert.deepEqual(rest, { ...seen, certificate_expires_in_days: days() });
        app.advance(1.5 * DAY);
      }
    }
    const { details } = (await answered(503, key)).body;
    assert.deepEqual([details.stage, details.reason, details.http_status], ['response', null, 503]);
    for (const [, address, stage, reason] of UNSENT.filter(([cause]) => cause !== 'time-out')) {
      const told = (await world.test(key, { url: address })).body.details;
      assert.deepEqual([told.stage, told.reason, told.http_status], [stage, reason, null], address);
      assert.ok(closedList.includes(reason), reason);
      assert.deepEqual(
        Object.keys(told.phases_ms),
        STAGES.slice(0, STAGES.indexOf(stage) + 1),
        'up to the stage reached',
      );
      for (const ms of Object.values(told.phases_ms)) assert.ok(Number.isInteger(ms) && Number(ms) >= 0);
      const isSecure = stage === 'request' || stage === 'response';
      assert.equal(told.tls_version, isSecure ? 'TLSv1.3' : null);
      assert.equal(told.certificate_expires_in_days === null, !isSecure);
    }
  },
);
