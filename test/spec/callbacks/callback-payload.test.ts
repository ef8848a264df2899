// What a receiver gets: the raw request, its six fields, and its authentication. The signature is recomputed here from
// the definition of Standard Webhooks, independently of the service.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after } from 'node:test';
import type { Key } from '../../support/app.ts';
import { callbackIn, type ReceivedCallback, resultOf, SETTINGS, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { newOrder, show } from '../../support/orders.ts';
import { HOST } from '../../support/outside.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, receiver, url } = world;

const HAN = /\p{Script=Han}/u;
const SAVED = { url: url('/saved?a=1'), access_key: 'saved-key' };
const TEMPORARY = { url: url('/temporary'), access_key: 'temporary-key' };

/** The secret is the one in the response. */
async function configured(account: Parameters<typeof app.newKey>[0] = {}): Promise<Key & { readonly secret: string }> {
  const key = await app.newKey(account);
  const { body } = await world.save(key, SAVED);
  return { ...key, secret: body.data.callback.signing_secret };
}

/** Sends one test and parses the callback. */
async function received(key: Key, json?: unknown, headers: Record<string, string> = {}): Promise<ReceivedCallback> {
  const before = receiver.requests.length;
  assert.equal(resultOf(await world.test(key, json, { headers })), '200 success');
  assert.equal(receiver.requests.length, before + 1);
  return callbackIn(receiver);
}

/** Each variant: saved, and temporary with and without settings. */
async function callbacks(): Promise<ReceivedCallback[]> {
  const saved = await configured();
  return [
    await received(saved),
    await received(saved, TEMPORARY),
    await received(await app.newKey(), TEMPORARY),
    await received(await configured({ locale: 'zh-CN' })),
  ];
}

/** As Standard Webhooks specifies: over id, timestamp and body, keyed with the bytes after `whsec_`. */
function signature({ headers, text }: ReceivedCallback, secret: string): string {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
  return `v1,${createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
    .update(signed)
    .digest('base64')}`;
}
const isSigned = (callback: ReceivedCallback, secret: string): boolean =>
  (callback.headers['webhook-signature'] ?? '').split(' ').includes(signature(callback, secret));

rule(
  'callback-test 5',
  'The service makes a real HTTP POST to the address, with the header `X-CC-Callback-Auth`',
  async () => {
    const { line, headers, text, body } = await received(await configured());
    assert.equal(line, 'POST /saved?a=1 HTTP/1.1');
    assert.equal(headers.host, `${HOST}:${receiver.port}`);
    assert.equal(headers['x-cc-callback-auth'], 'saved-key');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
    const fields = ['action_type', 'action_id', 'order_id', 'order_status', 'cert_id', 'message'];
    assert.deepEqual(Object.keys(body), fields, 'the payload, and nothing else');
    for (const value of Object.values(body)) assert.equal(typeof value, 'string');
  },
);

rule('callback-test.payload action_type', '`action_type` is the string `order`.', async () => {
  for (const { body } of await callbacks()) assert.equal(body.action_type, 'order');
});

rule('callback-test.payload action_id', '`action_id` is the string `order:issued`.', async () => {
  for (const { body } of await callbacks()) assert.equal(body.action_id, 'order:issued');
});

rule('callback-test.payload order_status', '`order_status` is the string `issued`.', async () => {
  for (const { body } of await callbacks()) assert.equal(body.order_status, 'issued');
});

/** Strings that do not occur in the account itself. */
async function requireSimulated(field: string, path: string, code: string): Promise<void> {
  const key = await configured();
  for (const json of [undefined, TEMPORARY]) {
    const id = (await received(key, json)).body[field] ?? '';
    assert.match(id, /^test-[0-9a-z]+$/);
    const { status, body } = await app.call('GET', path + id, { key });
    assert.deepEqual([status, body.code], [404, code], 'it does not exist');
  }
}

rule('callback-test.payload order_id', '`order_id` is a string, the identifier of a simulated order.', async () => {
  await requireSimulated('order_id', '/openapi/v3/orders/', 'order_not_found');
});

rule('callback-test.payload cert_id', '`cert_id` is a string, the identifier of a simulated certificate.', async () => {
  await requireSimulated('cert_id', '/openapi/v3/certs/', 'cert_not_found');
});

rule(
  'callback-test.payload placeholders',
  'The simulated identifiers begin with `test-`, which no real identifier does.',
  async () => {
    const seen = new Set<string>();
    const all = [...(await callbacks()), ...(await callbacks())];
    for (const { body, headers } of all) {
      for (const id of [body.order_id ?? '', body.cert_id ?? '', headers['webhook-id'] ?? '']) {
        assert.ok(id.startsWith('test-'), id);
        seen.add(id);
      }
    }
    assert.equal(seen.size, 3 * all.length, 'none is repeated');
    const order = await newOrder(app);
    const { certificate } = await show(app, order);
    for (const id of [order.id, order.certificateId, certificate.id]) assert.doesNotMatch(id, /^test-|-/);
    for (let made = 0; made < 1_000; made += 1) assert.doesNotMatch(app.app.newId(), /-/);
  },
);

rule('callback-test.payload message', 'is a localized text for people, written by the service', async () => {
  const english = await received(await configured({ locale: 'en' }));
  const chinese = await received(await configured({ locale: 'zh-CN' }));
  assert.match(english.body.message ?? '', /^[A-Z][ -~]+\.$/, 'a full sentence');
  assert.match(english.body.message ?? '', /test/i, 'which says that this is a test');
  assert.match(chinese.body.message ?? '', HAN);
  // The caller cannot influence it.
  const tried = await received(await configured(), { ...TEMPORARY, message: 'mine', order_id: 'mine' });
  assert.equal(tried.body.message, english.body.message);
  assert.doesNotMatch(tried.text, /mine/);
});

rule('callback-test.payload locale', '`message` is in the locale of the account.', async () => {
  for (const [locale, others] of [
    ['en', ['zh-CN', 'zh', '*']],
    ['zh-CN', ['en', 'en-GB', 'fr']],
  ] as const) {
    for (const kind of ['standard', 'managed_pki'] as const) {
      const key = await app.newKey({ locale, kind });
      await world.saveAsOperator(key.accountId, SAVED);
      for (const other of others) {
        const { body } = await received(key, undefined, { 'accept-language': other });
        assert.equal(HAN.test(body.message ?? ''), locale === 'zh-CN', `${locale}, asked in ${other}: ${body.message}`);
      }
    }
  }
  const key = await configured({ locale: 'en' });
  await app.call('PUT', '/openapi/v3/account', { key, json: { locale: 'zh-CN' } });
  assert.match((await received(key)).body.message ?? '', HAN, 'the current locale');
});

rule('event 9', '`X-CC-Callback-Auth` carries the `access_key` itself.', async () => {
  const key = await configured();
  const printable = Array.from({ length: 94 }, (_, code) => String.fromCharCode(code + 33)).join('');
  for (const accessKey of ['k', 'two words', printable, 'k'.repeat(256)]) {
    assert.equal((await received(key, { access_key: accessKey })).headers['x-cc-callback-auth'], accessKey);
    await world.save(key, { url: SAVED.url, access_key: accessKey });
    assert.equal((await received(key)).headers['x-cc-callback-auth'], accessKey);
    const lines = receiver.requests.at(-1)?.match(/^x-cc-callback-auth:/gim);
    assert.equal(lines?.length, 1);
  }
});

rule('event 10', 'as Standard Webhooks defines them, signed with HMAC-SHA256', async () => {
  const key = await configured({ locale: 'zh-CN' });
  const ids = new Set<string>();
  for (const [index, json] of [undefined, { access_key: 'k' }, { url: url('/t') }, TEMPORARY].entries()) {
    app.advance(12_345);
    const callback = await received(key, json);
    const { 'webhook-id': id = '', 'webhook-timestamp': at, 'webhook-signature': signed } = callback.headers;
    assert.equal(at, String(Math.floor(app.now() / 1_000)), 'in seconds, current');
    assert.equal(signed, signature(callback, key.secret));
    assert.match(callback.text, HAN, 'over bytes, not over characters');
    for (const changed of [callback.text.replace('issued', 'issueD'), `${callback.text} `]) {
      assert.ok(!isSigned({ ...callback, text: changed }, key.secret));
    }
    assert.doesNotMatch(id, /\./, 'a dot would make the signed string ambiguous');
    ids.add(id);
    assert.equal(ids.size, index + 1);
  }
  // The response has it too, so that both sides can refer to the same callback.
  const { body } = await world.test(key);
  assert.equal(body.data.callback.webhook_id, callbackIn(receiver).headers['webhook-id']);
  const { headers } = await received(await app.newKey(), TEMPORARY);
  assert.match(
    headers['webhook-signature'] ?? '',
    /^v1,[A-Za-z0-9+/]{43}=$/,
    'every callback, also with temporary settings',
  );
});

rule('event 11', 'belongs to the account alone, is not derived from the `access_key` and is never sent', async () => {
  const [one, other] = [await configured(), await configured()];
  assert.notEqual(one.secret, other.secret, 'although url and access_key are the same');
  const [ofOne, ofOther] = [await received(one), await received(other)];
  assert.ok(isSigned(ofOne, one.secret) && isSigned(ofOther, other.secret));
  assert.ok(!isSigned(ofOne, other.secret) && !isSigned(ofOther, one.secret));
  const second = await app.anotherKey(one.accountId, 'standard');
  assert.ok(isSigned(await received(second), one.secret), 'per account, not per key');

  await world.save(one, { url: url('/newer'), access_key: 'newer-key' });
  assert.ok(isSigned(await received(one), one.secret), 'another access_key does not change it');
  assert.ok(isSigned(await received(one, TEMPORARY), one.secret), 'and so does a temporary one');
  await app.call('DELETE', SETTINGS, { key: one });
  const again = (await world.save(one, SAVED)).body.data.callback.signing_secret;
  assert.notEqual(again, one.secret, 'nor does the same access_key make the same secret');
  assert.ok(isSigned(await received(one), again) && !isSigned(callbackIn(receiver), one.secret));

  const bytes = (secret: string) => Buffer.from(secret.replace('whsec_', ''), 'base64');
  for (const secret of [one.secret, other.secret, again]) {
    for (const form of [
      secret,
      bytes(secret).toString('base64'),
      bytes(secret).toString('hex'),
      bytes(secret).toString('latin1'),
    ]) {
      for (const request of receiver.requests) assert.ok(!request.includes(form));
    }
  }
});
