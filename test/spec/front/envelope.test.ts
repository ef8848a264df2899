import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { repeatedKey } from '../../../src/domain/strict-json.ts';
import { ERROR_TABLE } from '../../../src/http/front/error-table.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { newOrder } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const PATH = '/openapi/v3/account';
const HAN = /\p{Script=Han}/u;

rule('envelope 1', 'bodies of the interface are JSON, sent as `application/json`', async () => {
  const key = await app.newKey();
  const answers = [
    await app.call('GET', PATH, { key }),
    await app.call('PUT', PATH, { key, json: { name: 'New' } }),
    await app.call('GET', PATH),
  ];
  for (const { headers } of answers) assert.match(headers.get('content-type') ?? '', /^application\/json\b/);
});

rule('envelope 2', 'A success is HTTP 200 with the body `{"code":"success","data":{…}}`', async () => {
  const { status, body } = await app.call('GET', PATH, { key: await app.newKey() });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body), ['code', 'data']);
  assert.equal(body.code, 'success');
  assert.equal(typeof body.data, 'object');
});

rule(
  'envelope 3',
  'a status other than 200 and a body with the strings `code`, `message` and `request_id`',
  async () => {
    const key = await app.newKey();
    const failures = [
      await app.call('GET', PATH),
      await app.call('GET', '/nowhere'),
      await app.call('DELETE', PATH, { key }),
      await app.call('PUT', PATH, { key, json: { name: 7 } }),
      await app.call('PUT', PATH, { key, raw: '{', headers: { 'content-type': 'application/json' } }),
    ];
    for (const { status, body } of failures) {
      assert.notEqual(status, 200);
      const { code, message, request_id, field, details, ...rest } = body;
      assert.deepEqual(rest, {});
      for (const text of [code, message, request_id]) assert.ok(typeof text === 'string' && text !== '');
      assert.equal(status, code === 'invalid_parameters' ? 400 : ERROR_TABLE[code as keyof typeof ERROR_TABLE].status);
      assert.ok(field === undefined || typeof field === 'string');
      assert.ok(details === undefined || typeof details === 'object');
    }
  },
);

rule('envelope 4', '`field` of the error is its dotted path in the body', async () => {
  const key = await app.newKey();
  const wrongType = await app.call('PUT', PATH, { key, json: { locale: 7 } });
  assert.equal(wrongType.body.field, 'locale');
  const wrongValue = await app.call('PUT', PATH, { key, json: { locale: 'fr' } });
  assert.equal(wrongValue.body.field, 'locale');
  const whole = await app.call('PUT', PATH, { key, json: [] });
  assert.equal('field' in whole.body, false);
});

rule('envelope 5', 'Every answer, whatever its status, carries the header `X-Request-Id`', async () => {
  const key = await app.newKey();
  for (const { headers } of [
    await app.call('GET', PATH, { key }),
    await app.call('GET', PATH),
    await app.call('GET', '/nowhere'),
    await app.call('GET', '/%'),
    await app.call('GET', '/healthz'),
    await app.call('GET', '/docs'),
  ]) {
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-z]{26}$/);
  }
});

rule('envelope 6', 'The `request_id` of an error equals the `X-Request-Id` header of the same answer', async () => {
  for (const path of [PATH, '/nowhere', '/%']) {
    const { body, headers } = await app.call('GET', path);
    assert.equal(body.request_id, headers.get('x-request-id'));
  }
});

rule('envelope 7', 'in the language that `Accept-Language` prefers', async () => {
  const chinese = await app.newKey({ locale: 'zh-CN' });
  const message = async (language: string) => {
    const call = { key: chinese, json: {}, headers: { 'accept-language': language } };
    return (await app.call('PUT', PATH, call)).body.message as string;
  };
  for (const language of ['zh-CN', 'zh', 'zh-Hans-CN', 'fr, zh;q=0.9, en;q=0.8', 'en;q=0.1, zh;q=0.2']) {
    assert.match(await message(language), HAN, language);
  }
  for (const language of ['en', 'en-GB', 'EN', 'zh;q=0.5, en', 'zh;q=0, en;q=0.1']) {
    assert.doesNotMatch(await message(language), HAN, language);
  }
});

rule('envelope 8', 'the `message` of an error is in the locale of the authenticated account', async () => {
  const key = await app.newKey({ locale: 'zh-CN' });
  for (const headers of [{ 'accept-language': 'fr' }, { 'accept-language': '*' }, { 'accept-language': ';;,=' }]) {
    assert.match((await app.call('PUT', PATH, { key, json: {}, headers })).body.message, HAN);
  }
});

rule('envelope 9', 'the `message` of an error is in English', async () => {
  const headers = { 'accept-language': 'fr' };
  assert.doesNotMatch((await app.call('GET', PATH, { headers })).body.message, HAN);
  assert.doesNotMatch((await app.call('GET', '/nowhere', { headers })).body.message, HAN);
});

rule('envelope 10', 'The language changes only the `message` of an error', async () => {
  const key = await app.newKey();
  for (const json of [{}, { name: 7 }, { locale: 'fr' }]) {
    const [english, chinese] = await Promise.all(
      ['en', 'zh'].map((language) => app.call('PUT', PATH, { key, json, headers: { 'accept-language': language } })),
    );
    const stable = ({ code, field, details }: Record<string, unknown>) => ({ code, field, details });
    assert.deepEqual(stable(english?.body), stable(chinese?.body));
    assert.equal(english?.status, chinese?.status);
    assert.notEqual(english?.body.message, chinese?.body.message);
  }
});

rule('envelope 11', 'Request fields that the operation does not know are ignored', async () => {
  const key = await app.newKey();
  const { status, body } = await app.call('PUT', PATH, {
    key,
    json: { name: 'Known', kind: 'managed_pki', new_field: 1 },
  });
  assert.equal(status, 200);
  assert.equal(body.data.account.name, 'Known');
  assert.equal(body.data.account.kind, 'standard');
});

rule('envelope 12', 'A request field named `__proto__` is ignored like any other unknown field', async () => {
  const key = await app.newKey();
  const headers = { 'content-type': 'application/json' };
  const raw =
    '{"name":"Plain","__proto__":{"locale":"zh-CN","polluted":true},"constructor":{"prototype":{"polluted":true}}}';
  const { status, body } = await app.call('PUT', PATH, { key, headers, raw });
  assert.equal(status, 200);
  assert.equal(body.data.account.locale, 'en');
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
});

rule('envelope 17', 'is never converted: it is refused with `invalid_parameters` naming the field', async () => {
  const key = await app.newKey();
  for (const field of ['name', 'locale']) {
    for (const value of [null, 7, 0, true, false, [], ['en'], {}]) {
      const { status, body } = await app.call('PUT', PATH, { key, json: { [field]: value } });
      assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', field], JSON.stringify(value));
    }
  }
  for (const json of [null, [], 'text', 7, true]) {
    const { status, body } = await app.call('PUT', PATH, { key, json });
    assert.deepEqual([status, body.code], [400, 'invalid_parameters'], JSON.stringify(json));
  }
});

rule('envelope 14', 'A body that is not well-formed JSON is refused with 400 `invalid_parameters`', async () => {
  const key = await app.newKey();
  const headers = { 'content-type': 'application/json' };
  const notUtf8 = new Uint8Array(Buffer.from('{"name":"\xff"}', 'latin1'));
  const broken = ['{', '{"name":}', "{'name':'x'}", '{"name":"x"}x', '\ufeff{"name":"x"}', 'NaN', '[', notUtf8];
  for (const raw of [...broken, '['.repeat(100_000)]) {
    const { status, body } = await app.call('PUT', PATH, { key, headers, raw });
    assert.deepEqual([status, body.code], [400, 'invalid_parameters'], String(raw).slice(0, 20));
  }
});

const CHANGES: readonly (readonly [method: string, path: string])[] = [
  ['PUT', PATH],
  ['PUT', '/openapi/v3/account/callback'],
  ['PUT', '/openapi/v3/account/callback/test'],
  ['POST', '/openapi/v3/account/callback/deliveries/resend'],
  ['POST', '/openapi/v3/orders/ssl-dv'],
  ['POST', '/openapi/v3/orders/nothing/reissue'],
  ['PUT', '/openapi/v3/orders/nothing/dcv-method'],
  ['PUT', '/openapi/v3/orders/nothing/cancel'],
  ['POST', '/openapi/v3/certs/nothing/revoke'],
];

rule('envelope 19', 'A body of `null` is `invalid_parameters` on every operation', async () => {
  const key = await app.newKey();
  for (const [method, path] of CHANGES) {
    const { status, body } = await app.call(method, path, { key, json: null });
    assert.deepEqual([status, body.code], [400, 'invalid_parameters'], path);
  }
});

rule('envelope 21', 'A body of length zero or of blanks only is no body, on every operation', async () => {
  const order = await newOrder(app);
  const json = { 'Content-Type': 'application/json' };
  const send = (method: string, path: string, raw: string) =>
    app.call(method, `/openapi/v3/${path}`, { key: order.key, headers: json, raw });
  for (const blanks of ['', '\t', ' \r\n']) {
    const needed = await send('POST', `orders/${order.id}/reissue`, blanks);
    assert.deepEqual([needed.status, needed.body.code], [400, 'invalid_parameters'], needed.text);
    const optional = await send('POST', `certs/${order.certificateId}/revoke`, blanks);
    assert.equal(optional.status, 200, optional.text);
  }
});

rule('envelope 20', 'A key that one object of a body has twice, at any depth, is refused', async () => {
  const key = await app.newKey();
  const headers = { 'content-type': 'application/json' };
  const send = (raw: string, path = PATH) => app.call('PUT', path, { key, headers, raw });
  const twice = [
    ['{"name":"a","name":"b"}', 'name'],
    ['{"name":"a","x":[{"y":{"z":1,"z":2}}]}', 'z'],
    ['{"name":"a","n\\u0061me" : "a"}', 'name'],
    ['{"name":"a","__proto__":1,"__proto__":1}', '__proto__'],
    ['{"name":"a","\\"":1,"\\u0022":1}', '"'],
  ] as const;
  for (const [raw, field] of twice) {
    for (const path of [PATH, '/openapi/v3/account/callback/test']) {
      const { status, body } = await send(raw, path);
      assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', field], raw);
    }
  }
  const once = [
    '{"name":"a","x":{"name":1},"y":[{"name":1},{"name":2}]}',
    '{"name":"a","x":["name","name",":","\\":{}"],"y":"{\\"name\\":1,\\"name\\":2}"}',
    '{"name":"\\\\","x":{"":{"":1}}}',
  ];
  for (const raw of once) assert.equal((await send(raw)).status, 200, raw);
});

test('keys are found as a parser finds them', () => {
  const found = (text: string) => repeatedKey(text) !== undefined;
  const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', ':', '{', '}', ' ', '\n', 'é') });
  fc.assert(
    fc.property(fc.jsonValue(), text, text, (value, one, other) => {
      assert.equal(found(JSON.stringify(value, null, 1)), false);
      const [first, second] = [JSON.stringify(one), JSON.stringify(other)];
      assert.equal(
        found(`[${JSON.stringify(value)},{${first} :1,"v":${JSON.stringify(value)},${second}:2}]`),
        one === other || one === 'v' || other === 'v',
      );
    }),
  );
});
