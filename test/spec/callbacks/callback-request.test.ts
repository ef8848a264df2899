// What a callback test accepts, and what it then calls: the saved URL, a temporary one, or a combination. Verified by
// the receiver: which path was called with which key.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { Call, Key } from '../../support/app.ts';
import { callbackIn, resultOf, startCallbackApp, TEST } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { pathsOf } from '../../support/document.ts';
import { HOST } from '../../support/outside.ts';
import { sendRaw } from '../../support/raw-http.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside, url } = world;
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());

const BAD = '400 invalid_parameters';
const SAVED = { url: url('/saved?a=1'), access_key: 'saved-key' };
const rows = () => db.prepare('select * from callback_settings order by 1').all();

async function configured(change: Record<string, unknown> = {}): Promise<Key> {
  const key = await app.newKey();
  assert.equal(resultOf(await world.save(key, { ...SAVED, ...change })), '200 success');
  return key;
}

/** The path and key that the receiver saw from this call. */
async function called(key: Key, json?: unknown, call?: Call): Promise<string> {
  const before = receiver.requests.length;
  const answer = await world.test(key, json, call);
  assert.equal(resultOf(answer), '200 success', `${JSON.stringify(json)} ${answer.text}`);
  assert.equal(receiver.requests.length, before + 1);
  const { line, headers } = callbackIn(receiver);
  return `${line.split(' ')[1]} ${headers['x-cc-callback-auth']}`;
}

/** Asserts a refusal, with no query and no call made. */
async function requireUncalled(key: Key, json: unknown, expected: string, call?: Call): Promise<void> {
  const before = [receiver.connections.length, outside.dns.queries.length];
  const answer = await world.test(key, json, call);
  assert.equal(resultOf(answer), expected, `${JSON.stringify(json)} ${JSON.stringify(call)} ${answer.text}`);
  assert.deepEqual([receiver.connections.length, outside.dns.queries.length], before, expected);
}

const asJson = (raw: string): Call => ({ raw, headers: { 'content-type': 'application/json' } });

rule('callback-test.request 1', 'is a `PUT` to `/openapi/v3/account/callback/test`', async () => {
  const key = await configured();
  assert.equal(await called(key), '/saved?a=1 saved-key');
  const before = receiver.connections.length;
  for (const method of ['GET', 'POST', 'DELETE', 'PATCH']) {
    const { status, headers } = await app.call(method, TEST, { key });
    assert.deepEqual([status, headers.get('allow')], [405, 'PUT'], method);
  }
  for (const path of [`${TEST}s`, `${TEST}/x`, TEST.replace('v3', 'v2')]) {
    assert.equal((await app.call('PUT', path, { key })).status, 404, path);
  }
  assert.equal(receiver.connections.length, before);
});

rule('callback-test.request 2', 'one that is sent is a JSON object declared as `application/json`', async () => {
  const key = await configured();
  const raw = JSON.stringify({ url: url('/sent') });
  const typed = (type: string): Call => ({ raw, headers: { 'content-type': type } });
  assert.equal(await called(key, undefined, {}), '/saved?a=1 saved-key');
  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON']) {
    assert.equal(await called(key, undefined, typed(type)), '/sent saved-key', type);
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'text/json', 'json']) {
    await requireUncalled(key, undefined, '415 invalid_parameters', typed(type));
  }
  for (const broken of ['{', '{"url":}', `${raw}x`, `{'url':1}`, '{"url":"\n"}', 'undefined']) {
    await requireUncalled(key, undefined, BAD, asJson(broken));
  }
  const paths = await pathsOf(app);
  assert.notEqual(paths[TEST].put.requestBody.required, true, 'and the document declares it optional');
});

rule(
  'callback-test.field url',
  '`url` is an optional string, an HTTPS address used for this test instead',
  async () => {
    const key = await configured();
    assert.equal(await called(key, { access_key: 'k' }), '/saved?a=1 k', 'it may be omitted');
    assert.equal(await called(key, { url: url('/temporary?x=%2F&y'), access_key: 'k' }), '/temporary?x=%2F&y k');
    assert.equal(await called(key, { url: url('/upper').replace('https', 'HTTPS') }), '/upper saved-key');
    for (const value of [null, 5, true, [], [url()], {}, { href: url() }]) {
      await requireUncalled(key, { url: value }, `${BAD} url`);
    }
    assert.equal(await called(key), '/saved?a=1 saved-key', 'the saved one is unchanged');
  },
);

rule('callback-test.field access_key', 'an optional string, used for this test instead of the saved one', async () => {
  const key = await configured();
  assert.equal(await called(key, { url: url('/x') }), '/x saved-key', 'it may be omitted');
  assert.equal(await called(key, { access_key: 'temporary' }), '/saved?a=1 temporary');
  for (const value of [null, 5, true, [], ['k'], {}])
    await requireUncalled(key, { access_key: value }, `${BAD} access_key`);
  assert.equal(await called(key), '/saved?a=1 saved-key', 'the saved one is unchanged');
});

rule('callback-test 1', 'With an empty body the saved `url` and `access_key` are tested.', async () => {
  const key = await configured();
  const other = await configured({ url: url('/other'), access_key: 'other-key' });
  assert.equal(await called(key), '/saved?a=1 saved-key');
  assert.equal(await called(other), '/other other-key', 'of the calling account');
  await world.save(key, { url: url('/newer'), access_key: 'newer-key' });
  assert.equal(await called(key), '/newer newer-key', 'the current settings, not earlier ones');
});

rule('callback-test 2', 'is completed from the saved settings and tested, and nothing is saved', async () => {
  const key = await configured({ disabled: true, enabled_actions: ['order:revoked'] });
  const [before, shown] = [rows(), (await world.show(key)).body.data];
  // A write would now have another timestamp.
  app.advance(5_000);
  assert.equal(await called(key, { url: url('/t') }), '/t saved-key');
  assert.equal(await called(key, { access_key: 't' }), '/saved?a=1 t');
  assert.equal(await called(key, { url: url('/t'), access_key: 't' }), '/t t');
  assert.equal(await called(key, { url: url('/t'), access_key: 't', disabled: false, enabled_actions: [] }), '/t t');
  await world.test(key, { url: 'https://missing.example.test/', access_key: 't' });
  assert.deepEqual(rows(), before);
  assert.deepEqual((await world.show(key)).body.data, shown);
  assert.equal(await called(key), '/saved?a=1 saved-key');
});

rule('callback-test 3', 'An account without saved settings must send both `url` and `access_key`.', async () => {
  const never = await app.newKey();
  const noMore = await configured();
  await app.call('DELETE', TEST.replace('/test', ''), { key: noMore });
  for (const key of [never, noMore]) {
    const before = rows();
    for (const json of [undefined, {}, { url: url() }, { access_key: 'k' }, { disabled: true }]) {
      await requireUncalled(key, json, '400 callback_not_configured');
    }
    assert.equal(await called(key, { url: url('/both'), access_key: 'k' }), '/both k');
    assert.deepEqual(rows(), before);
    await requireUncalled(key, {}, '400 callback_not_configured');
    assert.equal((await world.show(key)).body.data.callback, null);
  }
});

rule('callback-test 4', 'even if callbacks are paused or `enabled_actions` leaves out `order:issued`', async () => {
  const pauses = [
    { disabled: true },
    { enabled_actions: [] },
    { enabled_actions: ['order:revoked', 'order:rejected'] },
    { disabled: true, enabled_actions: [] },
  ];
  for (const pause of pauses) {
    const key = await configured(pause);
    assert.equal(await called(key), '/saved?a=1 saved-key', JSON.stringify(pause));
    assert.equal(callbackIn(receiver).body.action_id, 'order:issued');
    assert.equal(await called(key, { url: url('/t'), access_key: 't' }), '/t t', JSON.stringify(pause));
  }
});

rule('callback-test 8', 'No body, a body of length zero with any content type, blanks only, and `{}`', async () => {
  const key = await configured();
  const types = ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', '*/*'];
  const oddTypes = [
    '',
    '/',
    'garbage',
    'application/',
    'application/json;',
    'a/b; c="',
    '\u00e9',
    'application/xml, text/plain',
  ];
  const json = 'Content-Type: application/json\r\n';
  const withLength = (head: string, body: string) => `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const empties = [
    '\r\n',
    `${json}\r\n`,
    withLength('', ''),
    ...[...types, ...oddTypes].map((type) => withLength(`Content-Type: ${type}\r\n`, '')),
    'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    `${json}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${json}Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n\r\n`,
    ...[' ', '\t', '\r\n', ' \r\n\t \n', ' '.repeat(5_000)].map((blanks) => withLength(json, blanks)),
    withLength('', ' \n'),
    withLength('Content-Type: text/plain\r\n', ' '),
    ...['{}', '{ }', '\r\n{\t}\n', '{"other":1}'].map((object) => withLength(json, object)),
  ];
  const head = `PUT ${TEST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n`;
  for (const empty of empties) {
    const before = receiver.requests.length;
    const { status, body } = await sendRaw(app.url, head + empty);
    assert.equal(status, 200, `${JSON.stringify(empty.slice(0, 80))} ${body}`);
    assert.equal(receiver.requests.length, before + 1);
    assert.match(callbackIn(receiver).line, /\/saved\?a=1 /);
  }
});

rule('callback-test 9', 'A body that is `null`, an array or a scalar is `invalid_parameters`.', async () => {
  for (const key of [await app.newKey(), await configured(), await app.newKey({ kind: 'managed_pki' })]) {
    const wrong = ['null', '[]', '[{}]', `["${url()}"]`, '""', '" "', '"{}"', '0', '1', '-1.5e3', 'true', 'false'];
    for (const raw of wrong) await requireUncalled(key, undefined, BAD, asJson(raw));
  }
});

rule('callback-test 12', 'A `url` or `access_key` of blanks only counts as empty.', async () => {
  const key = await configured();
  for (const blank of ['', ' ', '   ', '\t', '\n', '\r\n ', '\u00a0', '\u3000', '\ufeff', ' '.repeat(300)]) {
    await requireUncalled(key, { url: blank }, `${BAD} url`);
    await requireUncalled(key, { access_key: blank }, `${BAD} access_key`);
    await requireUncalled(key, { url: url(), access_key: blank }, `${BAD} access_key`);
    await requireUncalled(key, { url: blank, access_key: 'k' }, `${BAD} url`);
  }
});

rule('callback-test 13', 'a control character, a character beyond ASCII or a blank at either end', async () => {
  const key = await configured();
  const controls = [...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)), '\x7f'];
  const beyond = ['\x80', '\u00a0', '\u00e9', '\u00ff', '\u0131', '钥', '🔑', '\ud800', '\u2028'];
  const unfit = [...controls, ...beyond].map((one) => `a${one}b`);
  for (const value of [...unfit, ' a', 'a ', '\ta', 'a\n', 'a\r\nX-Evil: 1', '钥'.repeat(257)]) {
    await requireUncalled(key, { access_key: value }, `${BAD} access_key`);
  }
  const printable = Array.from({ length: 94 }, (_, code) => String.fromCharCode(code + 33)).join('');
  for (const value of [printable, 'a b', 'a  b', '!', '"\\"', 'a, b; c=d']) {
    assert.equal(await called(key, { access_key: value }), `/saved?a=1 ${value}`);
  }
});

rule('callback-test 16', 'is sent the saved `access_key`, and the reference page says so', async () => {
  const key = await configured();
  outside.dns.set('elsewhere.example.test', 'A', ['127.0.0.1']);
  const elsewhere = await outside.receiver({ identity: outside.ca.identity(['elsewhere.example.test']) });
  const { status } = await world.test(key, { url: `https://elsewhere.example.test:${elsewhere.port}/new` });
  assert.equal(status, 200);
  assert.equal(callbackIn(elsewhere).headers['x-cc-callback-auth'], 'saved-key');

  const paths = await pathsOf(app);
  const { description, requestBody } = paths[TEST].put;
  const { properties } = requestBody.content['application/json'].schema;
  for (const text of [description, properties.url.description]) assert.match(text, /saved access key/);
  // The page renders the operations and fields of the document.
  const [, entry = ''] = /src="(\S+)\/app\.ts"/.exec((await app.call('GET', '/docs')).text) ?? [];
  const table = await app.call('GET', `/${entry}/field-table.ts`);
  assert.match(table.text, /prose\(overall\(schema\)\.description\)/);
});

rule('envelope 12', 'is ignored like any other unknown field and changes nothing', async () => {
  const key = await configured();
  const evil = `{"url":"${url('/evil')}","access_key":"evil","disabled":true}`;
  for (const raw of [
    `{"__proto__":${evil}}`,
    `{"constructor":{"prototype":${evil}}}`,
    `{"prototype":${evil},"Url":"x"}`,
  ]) {
    assert.equal(await called(key, undefined, asJson(raw)), '/saved?a=1 saved-key', raw);
  }
  await requireUncalled(await app.newKey(), undefined, '400 callback_not_configured', asJson(`{"__proto__":${evil}}`));
  assert.equal(({} as { url?: string }).url, undefined);
});

rule('limit url', 'of 256 characters is accepted, and one of 257 is `invalid_callback_url`', async () => {
  const key = await app.newKey();
  const long = (length: number) => url('/').padEnd(length, 'x');
  assert.equal(await called(key, { url: long(256), access_key: 'k' }), `${long(256).slice(url('').length)} k`);
  for (const length of [257, 258, 512, 513, 10_000]) {
    await requireUncalled(key, { url: long(length), access_key: 'k' }, '400 invalid_callback_url url');
  }
});

rule('limit access_key', 'of 256 characters is accepted, and one of 257 is `invalid_callback_url`', async () => {
  const key = await configured();
  assert.equal(await called(key, { access_key: 'k'.repeat(256) }), `/saved?a=1 ${'k'.repeat(256)}`);
  for (const length of [257, 10_000]) {
    await requireUncalled(key, { access_key: 'k'.repeat(length) }, '400 invalid_callback_url access_key');
  }
});

rule('limit scheme', 'A callback test goes to HTTPS addresses only.', async () => {
  const key = await configured();
  let heard = '';
  const plain = await outside.receiver({
    onAccept: (socket) =>
      socket.once('data', (chunk) => {
        heard += chunk.toString('latin1');
        socket.destroy();
      }),
  });
  for (const scheme of ['http', 'HTTP', 'ws', 'wss', 'ftp', 'file', 'httpss', 'h2', 'unix']) {
    const json = { url: `${scheme}://${HOST}:${plain.port}/x` };
    await requireUncalled(key, json, '400 callback_url_not_https url');
  }
  assert.equal(plain.connections.length, 0);
  // Nor is there a downgrade from TLS: a plaintext receiver sees only the ClientHello.
  const { body } = await world.test(key, { url: `https://${HOST}:${plain.port}/x` });
  assert.deepEqual([body.code, body.details.stage], ['callback_send_error', 'tls']);
  assert.ok(heard.startsWith('\x16\x03'), heard);
  assert.doesNotMatch(heard, /POST|saved-key/);
});

rule('limit schema', 'The OpenAPI document states the limits of `url` and `access_key`', async () => {
  const paths = await pathsOf(app);
  const key = await configured();
  for (const [path, at] of [
    [TEST, paths[TEST]],
    ['settings', paths[TEST.replace('/test', '')]],
  ] as const) {
    const { required = [], properties } = at.put.requestBody.content['application/json'].schema;
    const { url: address, access_key: accessKey } = properties;
    assert.deepEqual(
      [address.type, address.maxLength, accessKey.type, accessKey.maxLength],
      ['string', 256, 'string', 256],
      path,
    );
    assert.match('https://x', new RegExp(address.pattern));
    assert.doesNotMatch('http://x', new RegExp(address.pattern));
    assert.deepEqual(required, []);
  }
  // A schema validator would answer invalid_parameters to all of these.
  await requireUncalled(key, { url: url('/').padEnd(257, 'x') }, '400 invalid_callback_url url');
  await requireUncalled(key, { access_key: 'k'.repeat(257) }, '400 invalid_callback_url access_key');
  await requireUncalled(key, { url: 'http://example.com/' }, '400 callback_url_not_https url');
  await requireUncalled(key, { url: 'example.com' }, '400 invalid_callback_url url');
});
