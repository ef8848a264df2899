// The reissue endpoint: path and body, permissions, the response, and malformed requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import type { Answer } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { HAN, requireError, short, startWatchedApp } from '../../support/watched-app.ts';

const { app, rows } = await startWatchedApp();

const JSON_TYPE = { 'content-type': 'application/json' };
const path = ({ id }: Pick<PlacedOrder, 'id'>) => `/openapi/v3/orders/${id}/reissue`;

rule('version 1', 'The path of every operation of the interface begins with `/openapi/v3`', async () => {
  const { paths } = (await app.call('GET', '/openapi.json')).body;
  assert.ok('/openapi/v3/orders/{id}/reissue' in paths);
  // The signing API is another interface, with versions of its own.
  for (const one of Object.keys(paths)) assert.match(one, /^\/(openapi\/v3|csc)\//);
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
    requireError(answer, [405, 'method_not_allowed'], method);
    assert.equal(answer.headers.get('allow'), 'POST');
  }
  assert.equal((await show(app, order)).certificate_id, order.certificateId);
  const { status, body: answer } = await app.call('POST', path(order), { key: order.key, json: body() });
  assert.equal(status, 200);
  assert.equal((await show(app, order)).certificate_id, answer.data.certificate.id);
  assert.equal((await show(app, other)).certificate_id, other.certificateId, 'the order in the path, and no other');
});

rule('reissue.request 2', 'The body of a reissue is a JSON object, sent as `application/json`', async () => {
  const order = await newOrder(app);
  const before = rows();
  for (const json of [null, [], [body()], 'text', 7, true, JSON.stringify(body())]) {
    requireError(await reissue(app, order, json), [400, 'invalid_parameters'], short(json));
  }
  for (const raw of ['', '   ']) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_parameters'], answer.text);
  }
  const raw = JSON.stringify(body());
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'multipart/form-data']) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: { 'content-type': type } });
    requireError(answer, [415, 'invalid_parameters'], type);
  }
  assert.deepEqual(rows(), before);
  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON']) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: { 'content-type': type } });
    assert.equal(answer.status, 200, type);
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

const REVOKERS: readonly string[] = ['standard', 'cloud_manager_token'];

rule('permission 13', 'only those that may revoke (permission 11) may make a reissue that revokes', async () => {
  const consents = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };
  for (const accountKind of ['standard', 'managed_pki'] as const) {
    const owner = await app.newKey({ kind: accountKind });
    for (const kind of CREDENTIAL_KINDS) {
      const key = await app.anotherKey(owner.accountId, kind);
      const order = await newOrder(app, {}, owner);
      const answer = await app.call('POST', path(order), { key, json: body() });
      assert.equal(answer.status, 200, `${accountKind} ${kind}`);
      assert.equal((await show(app, order)).certificate_id, answer.body.data.certificate.id);
      const replaced = await newOrder(app, { product: 'ssl-dv-replace' }, owner);
      const narrowed = await newOrder(app, { dnsNames: ['example.com'] }, owner);
      for (const [revoking, json] of [
        [replaced, body()],
        [narrowed, body({ dns_names: [] })],
      ] as const) {
        const unasked = await app.call('POST', path(revoking), { key, json });
        assert.equal(unasked.status, 409, `${kind}: the consent comes first`);
        const before = rows();
        const agreed = await app.call('POST', path(revoking), { key, json: { ...json, ...consents } });
        if (REVOKERS.includes(kind)) assert.equal(agreed.status, 200, kind);
        else {
          assert.deepEqual([agreed.status, agreed.body.code], [403, 'permission_denied'], kind);
          assert.deepEqual(rows(), before);
        }
      }
    }
  }
});

rule('permission 14', 'In a dry run a missing permission is a finding, `missing_permissions`', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace' });
  for (const kind of CREDENTIAL_KINDS) {
    const key = await app.anotherKey(order.key.accountId, kind);
    const { plan } = (await app.call('POST', `${path(order)}?dry_run=true`, { key, json: body() })).body.data;
    assert.deepEqual(plan.missing_consents, ['revoke_last_cert_not_confirmed']);
    assert.deepEqual(plan.missing_permissions, REVOKERS.includes(kind) ? [] : ['revoke'], kind);
  }
});

rule(
  'permission 15',
  'Only `standard` credentials may reissue a code-signing or document-signing product',
  async () => {
    for (const product of ['code-signing', 'document-signing']) {
      const order = await newOrder(app, { product, commonName: 'Example Ltd' });
      const json = body({ common_name: 'Example Ltd' });
      for (const kind of CREDENTIAL_KINDS) {
        const key = await app.anotherKey(order.key.accountId, kind);
        for (const query of ['?dry_run=true', '']) {
          const answer = await app.call('POST', path(order) + query, { key, json });
          assert.equal(answer.status, kind === 'standard' ? 200 : 403, `${product} ${kind} ${answer.text}`);
        }
      }
    }
  },
);

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
  requireError(asked, [404, 'order_not_found'], 'an idempotency key reveals nothing either');
  assert.equal(rows()[1]?.length, (before[1]?.length ?? 0) + 1);
});

rule('errors order_not_found', 'is 404: the account has no order with that identifier', async () => {
  const order = await newOrder(app);
  for (const id of ['nothing', order.certificateId, order.id.toUpperCase(), `${order.id}x`, order.id.slice(1)]) {
    for (const language of ['en', 'zh-CN']) {
      const headers = { 'accept-language': language };
      const posted = await app.call('POST', path({ id }), { key: order.key, json: body(), headers });
      requireError(posted, [404, 'order_not_found'], id);
      assert.equal(HAN.test(posted.body.message), language === 'zh-CN');
    }
    const read = await app.call('GET', `/openapi/v3/orders/${id}`, { key: order.key });
    requireError(read, [404, 'order_not_found'], id);
  }
});

test('an oversized or deeply nested body is refused, and nothing changes', async () => {
  const order = await newOrder(app);
  const before = rows();
  const huge = await reissue(app, order, body({}, { unknown: 'x'.repeat(1024 * 1024) }));
  requireError(huge, [413, 'invalid_parameters'], huge.text);
  const objects = (levels: number) => `${'{"certificate":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const lists = (levels: number) =>
    JSON.stringify(body()).replace('"csr"', `"dns_names":${'['.repeat(levels)}${']'.repeat(levels)},"csr"`);
  for (const [raw, expected] of [
    [objects(10_000), [400, 'invalid_parameters']],
    [lists(50_000), [400, 'invalid_parameters']],
    [objects(60), [400, 'invalid_parameters', 'certificate.sign_hash']],
    [lists(60), [400, 'invalid_parameters', 'certificate.dns_names.0']],
  ] as const) {
    const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
    requireError(answer, expected, answer.text);
  }
  assert.deepEqual(rows(), before);
});

test('unknown fields, at any depth, do not change the response', async () => {
  const order = await newOrder(app);
  const raw = JSON.stringify(body({ keyAlgorithm: 'rsa', dns_name: ['evil.example.org'] }, { dry_run: true })).replace(
    '"csr"',
    '"__proto__":{"dns_names":["evil.example.org"]},"csr"',
  );
  const answer = await app.call('POST', path(order), { key: order.key, raw, headers: JSON_TYPE });
  assert.equal(answer.status, 200);
  assert.deepEqual((await show(app, order)).dns_names, ['www.example.com']);
});
