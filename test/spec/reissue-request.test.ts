// The door of the reissue: path, body, fields, answer, and everything that is no request at all.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../src/domain/credential.ts';
import { type Answer, startApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const HAN = /\p{Script=Han}/u;
const JSON_TYPE = { 'content-type': 'application/json' };
const path = ({ id }: Pick<PlacedOrder, 'id'>) => `/openapi/v3/orders/${id}/reissue`;
const short = (value: unknown) => JSON.stringify(value)?.slice(0, 200) ?? 'undefined';

const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());
const TABLES = ['certificate_order', 'certificate', 'revocation', 'outbox', 'idempotency_key', 'audit'];
/** Every row that a reissue could have written. */
const rows = () => TABLES.map((table) => db.prepare(`select * from ${table} order by 1, 2, 3`).all());

function requireRefused(answer: Answer, status: number, code: string, field: string | undefined, what?: string): void {
  const found = [answer.status, answer.body?.code, answer.body?.field];
  assert.deepEqual(found, [status, code, field], what ?? answer.text);
}

/** Refused, naming the field, in both languages, and nothing is written. */
async function requireBad(order: PlacedOrder, json: unknown, field: string | undefined, code = 'invalid_parameters') {
  const before = rows();
  const english = await reissue(app, order, json);
  const chinese = await reissue(app, order, json, '', { 'accept-language': 'zh-CN' });
  requireRefused(english, 400, code, field, `${short(json)}: ${english.text}`);
  requireRefused(chinese, 400, code, field, chinese.text);
  assert.doesNotMatch(english.body.message.replace(/"[^"]*"/g, ''), HAN);
  assert.match(chinese.body.message, HAN);
  assert.deepEqual(rows(), before, 'a refusal writes nothing');
}

async function requireIssued(order: PlacedOrder, json: unknown): Promise<string> {
  const answer = await reissue(app, order, json);
  assert.equal(answer.status, 200, `${short(json)}: ${answer.text}`);
  return answer.body.data.certificate.id;
}
const issued = async (order: PlacedOrder, json: unknown) =>
  new X509Certificate((await certificate(app, order, await requireIssued(order, json))).pem);

const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(body().certificate).filter(([name]) => !names.includes(name)));

rule('version 1', 'The path of every operation of the interface begins with `/openapi/v3`', async () => {
  const { paths } = (await app.call('GET', '/openapi.json')).body;
  assert.ok('/openapi/v3/orders/{id}/reissue' in paths);
  for (const one of Object.keys(paths)) assert.match(one, /^\/openapi\/v3\//);
  const order = await newOrder(app);
  for (const prefix of ['', '/openapi', '/v3', '/openapi/v2', '/openapi/v4', '/OpenAPI/v3', '/openapi/V3']) {
    const { status, body: answer } = await app.call('POST', `${prefix}/orders/${order.id}/reissue`, {
      key: order.key,
      json: body(),
    });
    assert.deepEqual([status, answer.code], [404, 'route_not_found'], prefix);
  }
});

rule('reissue.request 1', 'A reissue is a `POST` to `/openapi/v3/orders/{id}/reissue`', async () => {
  const [order, other] = [await newOrder(app), await newOrder(app)];
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
    const answer = await app.call(method, path(order), { key: order.key });
    requireRefused(answer, 405, 'method_not_allowed', undefined, method);
    assert.equal(answer.headers.get('allow'), 'POST');
  }
  assert.equal((await show(app, order)).certificate_id, order.certificateId);
  const { status, body: answer } = await app.call('POST', path(order), { key: order.key, json: body() });
  assert.equal(status, 200);
  assert.equal((await show(app, order)).certificate_id, answer.data.certificate.id);
  assert.equal((await show(app, other)).certificate_id, other.certificateId, 'the order of the path, and no other');
});

rule('reissue.request 2', 'The body of a reissue is a JSON object, sent as `application/json`', async () => {
  const order = await newOrder(app);
  const before = rows();
  for (const json of [null, [], [body()], 'text', 7, true, JSON.stringify(body())]) {
    requireRefused(await reissue(app, order, json), 400, 'invalid_parameters', undefined, short(json));
  }
  for (const raw of ['', '   ']) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_parameters'], answer.text);
  }
  const raw = JSON.stringify(body());
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'multipart/form-data']) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: { 'content-type': type } });
    requireRefused(answer, 415, 'invalid_parameters', undefined, type);
  }
  assert.deepEqual(rows(), before);
  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON']) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: { 'content-type': type } });
    assert.equal(answer.status, 200, type);
  }
});

rule('reissue.field certificate', '`certificate` is a required object: what the new certificate shall be', async () => {
  const order = await newOrder(app);
  for (const json of [{}, { Certificate: body().certificate }, { ...body(), certificate: undefined }]) {
    await requireBad(order, json, 'certificate');
  }
  for (const value of [null, 7, true, 'text', [], [body().certificate]]) {
    await requireBad(order, { certificate: value }, 'certificate');
  }
  await requireIssued(order, body());
});

/** Every field: where it stands, and a value that a reissue of this order accepts. */
const FIELDS: Readonly<Record<string, unknown>> = {
  'certificate.csr': csrFor(),
  'certificate.csr_from': '',
  'certificate.common_name': 'www.example.com',
  'certificate.dns_names': ['www.example.com'],
  'certificate.sign_hash': 'sha256',
  'certificate.un_modify_key': true,
  'certificate.validity_days': 30,
  'certificate.custom_expiration_date': '2027-01-31',
  i_know_remove_domain_will_revoke_before_cert: true,
  i_know_will_revoke_last_cert: true,
  dcv_method: 'dns',
  persist_until: 1_900_000_000,
  persist_policy: 'fqdn',
  dcv_scope: 'fqdn',
  sign_key_pin: '123456',
  sign_key_pin_tip: 'birthday',
};
const VALUES = [null, 7, 7.5, 'text', true, [], [7], {}, { a: 1 }];

function bodyWith(field: string, value: unknown) {
  const [, inCertificate] = /^certificate\.(.+)$/.exec(field) ?? [];
  return inCertificate ? body({ [inCertificate]: value }) : body({}, { [field]: value });
}

function isOfType(value: unknown, like: unknown): boolean {
  if (Array.isArray(like)) return Array.isArray(value) && value.every((one) => typeof one === 'string');
  if (typeof like === 'number') return Number.isInteger(value);
  return typeof value === typeof like;
}

/** Its type is asked, whatever else the request says; a right value is accepted. */
async function requireTyped(field: string): Promise<PlacedOrder> {
  const order = await newOrder(app);
  const right = FIELDS[field];
  for (const value of VALUES.filter((one) => !isOfType(one, right))) {
    const at = Array.isArray(value) && Array.isArray(right) ? `${field}.0` : field;
    await requireBad(order, bodyWith(field, value), at);
  }
  await requireIssued(order, bodyWith(field, right));
  return order;
}

rule('reissue.field certificate.csr', 'is a string holding the certificate signing request', async () => {
  const order = await requireTyped('certificate.csr');
  const before = (await issued(order, body())).publicKey.export({ format: 'der', type: 'spki' });
  const changed = await issued(order, body({ csr: csrFor('p384') }));
  assert.notDeepEqual(changed.publicKey.export({ format: 'der', type: 'spki' }), before, 'its key is certified');
});

rule('reissue.field certificate.csr_from', 'left out or empty means that the caller holds it', async () => {
  const order = await requireTyped('certificate.csr_from');
  for (const json of [body(), body({ csr_from: '' })]) {
    const { csr } = await certificate(app, order, await requireIssued(order, json));
    assert.equal(csr, json.certificate.csr);
  }
});

rule(
  'reissue.field certificate.common_name',
  'is a string, required for SSL products and optional for others',
  async () => {
    const order = await requireTyped('certificate.common_name');
    await requireBad(order, { certificate: without('common_name') }, 'certificate.common_name');
    for (const product of ['code-signing', 'document-signing']) {
      const signing = await newOrder(app, { product, commonName: 'Example Ltd' });
      const { subject } = await issued(signing, { certificate: without('common_name') });
      assert.equal(subject, 'CN=Example Ltd');
      await requireIssued(signing, body({ common_name: 'Example Ltd' }));
    }
  },
);

rule('reissue.field certificate.dns_names', 'changing them takes a product that allows it', async () => {
  await requireTyped('certificate.dns_names');
  for (const wrong of [[null], ['www.example.com', 7], [['www.example.com']], [{}], [true]]) {
    const at = `certificate.dns_names.${wrong.length - 1}`;
    await requireBad(await newOrder(app), body({ dns_names: wrong }), at);
  }
  const names = ['www.example.com', 'new.example.com'];
  await requireBad(
    await newOrder(app, { product: 'ssl-dv-fixed' }),
    body({ dns_names: names }),
    'certificate.dns_names',
    'invalid_sans',
  );
  const free = await newOrder(app);
  const pending = await certificate(app, free, await requireIssued(free, body({ dns_names: names })));
  assert.deepEqual(pending.dns_names, names);
});

rule(
  'reissue.field certificate.sign_hash',
  'a required string naming the digest algorithm of the signature',
  async () => {
    const order = await requireTyped('certificate.sign_hash');
    await requireBad(order, { certificate: without('sign_hash') }, 'certificate.sign_hash');
  },
);

rule('reissue.field certificate.un_modify_key', 'leaves all others unaffected', async () => {
  const order = await requireTyped('certificate.un_modify_key');
  const facts = async (json: unknown) => {
    const { subject, subjectAltName, validTo, publicKey, issuer } = await issued(order, json);
    return { subject, subjectAltName, validTo, issuer, key: publicKey.export({ format: 'pem', type: 'spki' }) };
  };
  const plain = await facts(body());
  for (const value of [true, false]) assert.deepEqual(await facts(body({ un_modify_key: value })), plain);
});

rule('reissue.field certificate.validity_days', 'is an optional integer, the wanted validity in days', async () => {
  const order = await requireTyped('certificate.validity_days');
  const { validFromDate, validToDate } = await issued(order, body({ validity_days: 7 }));
  assert.equal(validToDate.getTime() + 1000 - validFromDate.getTime(), 7 * 86_400_000);
  await requireIssued(
    order,
    JSON.parse(JSON.stringify(body()).replace('"sign_hash"', '"validity_days":7.0,"sign_hash"')),
  );
});

rule(
  'reissue.field certificate.custom_expiration_date',
  'is an optional string, the wanted date of expiry',
  async () => {
    const order = await requireTyped('certificate.custom_expiration_date');
    const { validToDate } = await issued(order, body({ custom_expiration_date: '2027-01-31' }));
    assert.equal(validToDate.toISOString(), '2027-01-31T23:59:59.000Z');
  },
);

rule(
  'reissue.field i_know_remove_domain_will_revoke_before_cert',
  'is an optional boolean, and `false` or leaving it out gives no consent',
  async () => {
    await requireTyped('i_know_remove_domain_will_revoke_before_cert');
    const order = await newOrder(app, { dnsNames: ['example.com'] });
    const field = 'i_know_remove_domain_will_revoke_before_cert';
    for (const top of [{}, { [field]: false }]) {
      const answer = await reissue(app, order, body({ dns_names: [] }, top));
      requireRefused(answer, 409, 'remove_domain_not_confirmed', field);
    }
    await requireIssued(order, body({ dns_names: [] }, { [field]: true }));
  },
);

rule(
  'reissue.field i_know_will_revoke_last_cert',
  'is an optional boolean, and `false` or leaving it out gives no consent',
  async () => {
    await requireTyped('i_know_will_revoke_last_cert');
    const order = await newOrder(app, { product: 'ssl-dv-replace' });
    const field = 'i_know_will_revoke_last_cert';
    for (const top of [{}, { [field]: false }, { i_know_remove_domain_will_revoke_before_cert: true }]) {
      const answer = await reissue(app, order, body({}, top));
      requireRefused(answer, 409, 'revoke_last_cert_not_confirmed', field);
    }
    await requireIssued(order, body({}, { [field]: true }));
  },
);

rule('reissue.field dcv_method', 'the method by which control of the names is proven', async () => {
  const order = await requireTyped('dcv_method');
  assert.equal((await show(app, order)).dcv_method, 'dns');
  await requireIssued(order, body({}, { dcv_method: 'file' }));
  assert.equal((await show(app, order)).dcv_method, 'file');
});

rule('reissue.field persist_until', 'replaces the value of the order when rule 6 lets it take effect', async () => {
  const order = await requireTyped('persist_until');
  assert.equal((await show(app, order)).persist_until, null, 'nothing let it take effect');
  await requireIssued(order, body({}, { dcv_method: 'dns-persist', persist_until: 1_900_000_000 }));
  assert.equal((await show(app, order)).persist_until, 1_900_000_000);
  await requireIssued(order, body({}, { dcv_method: 'dns-persist', persist_until: 1_900_000_001 }));
  assert.equal((await show(app, order)).persist_until, 1_900_000_001);
});

rule(
  'reissue.field persist_policy',
  '`fqdn` or `wildcard`, the scope that the persistent record authorizes',
  async () => {
    const order = await requireTyped('persist_policy');
    for (const policy of ['wildcard', 'fqdn']) {
      await requireIssued(order, body({}, { dcv_method: 'dns-persist', persist_policy: policy }));
      assert.equal((await show(app, order)).persist_policy, policy);
    }
  },
);

rule('reissue.field dcv_scope', 'which ones are supported is for the product to say', async () => {
  const order = await requireTyped('dcv_scope');
  await requireIssued(order, body({}, { dcv_scope: 'base_domain' }));
  assert.equal((await show(app, order)).dcv_scope, 'base_domain');
  const signing = await newOrder(app, { product: 'code-signing', commonName: 'Example Ltd' });
  await requireBad(signing, { certificate: without('common_name'), dcv_scope: 'fqdn' }, 'dcv_scope');
});

rule('reissue.field sign_key_pin', 'needed only with `csr_from` `sign-cloud-csc`', async () => {
  const order = await requireTyped('sign_key_pin');
  for (const pin of [{}, { sign_key_pin: '' }, { sign_key_pin: '0000' }]) await requireIssued(order, body({}, pin));
});

rule('reissue.field sign_key_pin_tip', 'is an optional string, a hint that reminds of the access code', async () => {
  const order = await requireTyped('sign_key_pin_tip');
  for (const tip of [{}, { sign_key_pin_tip: '' }, { sign_key_pin_tip: '提示' }])
    await requireIssued(order, body({}, tip));
});

rule('reissue 9', '`"true"`, `1` and `null` are no booleans, and `"7"`, `7.5` and `null` are no integers', async () => {
  const order = await newOrder(app);
  const booleans = Object.entries(FIELDS).filter(([, value]) => typeof value === 'boolean');
  const integers = Object.entries(FIELDS).filter(([, value]) => typeof value === 'number');
  assert.deepEqual([booleans.length, integers.length], [3, 2]);
  for (const [field] of booleans) {
    for (const value of ['true', 'false', '', 1, 0, null, [true]])
      await requireBad(order, bodyWith(field, value), field);
  }
  for (const [field] of integers) {
    for (const value of ['7', '', 7.5, null, true, [7]]) await requireBad(order, bodyWith(field, value), field);
    const raw = JSON.stringify(bodyWith(field, 7)).replace(/("\w+":)7(?=[,}])/, '$11e999');
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
    requireRefused(answer, 400, 'invalid_parameters', field, 'infinity is no integer');
  }
});

rule(
  'reissue.answer data.certificate.id',
  'the identifier of the certificate that results from the reissue',
  async () => {
    const order = await newOrder(app);
    const { data } = (await reissue(app, order, body())).body;
    assert.equal(typeof data.certificate.id, 'string');
    assert.notEqual(data.certificate.id, order.certificateId);
    const { id, order_id } = await certificate(app, order, data.certificate.id);
    assert.deepEqual([id, order_id], [data.certificate.id, order.id]);
    const { data: pending } = (await reissue(app, order, body({ dns_names: ['www.example.com', 'b.example.com'] })))
      .body;
    assert.equal((await certificate(app, order, pending.certificate.id)).status, 'pending');
  },
);

rule('reissue.answer code', '`code` of a successful reissue is `success`, with HTTP status 200', async () => {
  const order = await newOrder(app);
  for (const names of [['www.example.com'], ['www.example.com', 'b.example.com']]) {
    const answer = await reissue(app, order, body({ dns_names: names }));
    assert.deepEqual([answer.status, answer.body.code], [200, 'success']);
  }
});

rule('reissue.answer shape', 'answers with `code` and `data.certificate.id` and no other field', async () => {
  const order = await newOrder(app);
  for (const names of [['www.example.com'], ['www.example.com', 'b.example.com']]) {
    const answer = await reissue(app, order, body({ dns_names: names }));
    const { id } = answer.body.data.certificate;
    assert.equal(answer.text, JSON.stringify({ code: 'success', data: { certificate: { id } } }));
  }
});

rule('permission 1', 'Credentials of all four kinds may read the account, orders and certificates', async () => {
  const order = await newOrder(app);
  assert.equal(CREDENTIAL_KINDS.length, 4);
  for (const kind of CREDENTIAL_KINDS) {
    const key = await app.anotherKey(order.key.accountId, kind);
    for (const one of ['account', 'orders', `orders/${order.id}`, `certs/${order.certificateId}`]) {
      assert.equal((await app.call('GET', `/openapi/v3/${one}`, { key })).status, 200, `${kind} ${one}`);
    }
  }
});

rule('permission 2', 'Credentials of all four kinds may reissue', async () => {
  for (const accountKind of ['standard', 'managed_pki'] as const) {
    const owner = await app.newKey({ kind: accountKind });
    const order = await newOrder(app, {}, owner);
    for (const kind of CREDENTIAL_KINDS) {
      const key = await app.anotherKey(owner.accountId, kind);
      const answer = await app.call('POST', path(order), { key, json: body() });
      assert.equal(answer.status, 200, `${accountKind} ${kind}`);
      assert.equal((await show(app, order)).certificate_id, answer.body.data.certificate.id);
    }
  }
});

rule('permission 8', 'answered exactly as if it did not exist, never with `permission_denied`', async () => {
  const [mine, theirs, waiting] = [await newOrder(app), await newOrder(app), await newOrder(app, { vouches: false })];
  const nothing = theirs.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  const told = ({ status, headers, body: { request_id, ...rest } }: Answer) => [
    status,
    rest,
    [...headers.keys()].filter((name) => name !== 'date').sort(),
  ];
  const before = rows();
  for (const kind of CREDENTIAL_KINDS) {
    const key = await app.anotherKey(mine.key.accountId, kind);
    for (const foreign of [theirs, waiting]) {
      const of = (id: string, query = '') => app.call('POST', path({ id }) + query, { key, json: body() });
      assert.deepEqual(told(await of(foreign.id)), told(await of(nothing)));
      assert.deepEqual(told(await of(foreign.id, '?dry_run=true')), told(await of(nothing, '?dry_run=true')));
      const order = (id: string) => app.call('GET', `/openapi/v3/orders/${id}`, { key });
      assert.deepEqual(told(await order(foreign.id)), told(await order(nothing)));
      const cert = (id: string) => app.call('GET', `/openapi/v3/certs/${id}`, { key });
      assert.deepEqual(told(await cert(foreign.certificateId)), told(await cert(nothing)));
      assert.equal((await cert(foreign.certificateId)).status, 404);
    }
    const list = (await app.call('GET', '/openapi/v3/orders', { key })).body.data.orders;
    assert.deepEqual(
      list.map(({ id }: { id: string }) => id),
      [mine.id],
    );
  }
  const keysOfTheirs = { 'Idempotency-Key': 'shared' };
  assert.equal((await reissue(app, theirs, body(), '', keysOfTheirs)).status, 200);
  const asked = await app.call('POST', path(theirs), { key: mine.key, json: body(), headers: keysOfTheirs });
  requireRefused(asked, 404, 'order_not_found', undefined, 'an idempotency key tells nothing either');
  assert.equal(rows()[1]?.length, (before[1]?.length ?? 0) + 1);
});

rule('errors order_not_found', 'is 404: the account has no order with that identifier', async () => {
  const order = await newOrder(app);
  for (const id of ['nothing', order.certificateId, order.id.toUpperCase(), `${order.id}x`, order.id.slice(1)]) {
    for (const language of ['en', 'zh-CN']) {
      const headers = { 'accept-language': language };
      const posted = await app.call('POST', path({ id }), { key: order.key, json: body(), headers });
      requireRefused(posted, 404, 'order_not_found', undefined, id);
      assert.equal(HAN.test(posted.body.message), language === 'zh-CN');
    }
    const read = await app.call('GET', `/openapi/v3/orders/${id}`, { key: order.key });
    requireRefused(read, 404, 'order_not_found', undefined, id);
  }
});

test('a body of a megabyte, or nested without end, is refused, and nothing changes', async () => {
  const order = await newOrder(app);
  const before = rows();
  const huge = await reissue(app, order, body({}, { unknown: 'x'.repeat(1024 * 1024) }));
  requireRefused(huge, 413, 'invalid_parameters', undefined, huge.text);
  const deep = `${'{"certificate":'.repeat(10_000)}1${'}'.repeat(10_000)}`;
  const lists = JSON.stringify(body()).replace('"csr"', `"dns_names":${'['.repeat(50_000)}${']'.repeat(50_000)},"csr"`);
  for (const [raw, field] of [
    [deep, 'certificate.sign_hash'],
    [lists, 'certificate.dns_names.0'],
  ] as const) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
    requireRefused(answer, 400, 'invalid_parameters', field);
  }
  assert.deepEqual(rows(), before);
});

test('fields nobody knows, at any depth, change nothing about the answer', async () => {
  const order = await newOrder(app);
  const raw = JSON.stringify(body({ keyAlgorithm: 'rsa', dns_name: ['evil.example.org'] }, { dry_run: true })).replace(
    '"csr"',
    '"__proto__":{"dns_names":["evil.example.org"]},"csr"',
  );
  const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
  assert.equal(answer.status, 200);
  assert.deepEqual((await show(app, order)).dns_names, ['www.example.com']);
});
