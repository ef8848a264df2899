// Placing, finding and canceling orders over HTTP.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import { type Key, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, reissue, show, spkiIn } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const request = (certificate: Record<string, unknown> = {}, top: Record<string, unknown> = {}) => ({
  certificate: { csr: csrFor(), common_name: 'www.example.com', sign_hash: 'sha256', ...certificate },
  ...top,
});
const place = (key: Key, json: unknown = request(), product = 'ssl-dv') =>
  app.call('POST', `/openapi/v3/orders/${product}`, { key, json });
const cancel = (key: Key, id: string) => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });

rule('order 11', '`POST /openapi/v3/orders/{product_id}` places an order and answers with its identifier', async () => {
  const key = await app.newKey();
  const { status, body: answer } = await place(key);
  assert.equal(status, 200);
  const order = { key, id: answer.data.id, certificateId: answer.data.certificate.id };
  const shown = await show(app, order);
  assert.deepEqual(
    [shown.status, shown.product, shown.pending_certificate_id, shown.certificate_id],
    ['domain_verifing', 'ssl-dv', order.certificateId, null],
  );
  assert.equal((await certificate(app, order, order.certificateId)).status, 'pending');
  const [placed] = (await app.app.store.audit.listOf(key.accountId, { limit: 50 })).filter(
    ({ action }) => action === 'order:placed',
  );
  assert.deepEqual([placed?.actor, placed?.subject], [key.keyId, order.id]);
  assert.ok(placed?.requestId);
});

test('an order whose names the account has validated is issued before the response', async () => {
  const before = await newOrder(app);
  const { body: answer } = await place(before.key, request({ csr: csrFor('p384'), sign_hash: 'sha384' }));
  const order = { key: before.key, id: answer.data.id, certificateId: answer.data.certificate.id };
  assert.equal((await show(app, order)).status, 'issued');
  const { pem } = await certificate(app, order, order.certificateId);
  assert.deepEqual(new X509Certificate(pem).subjectAltName, 'DNS:www.example.com');
  assert.equal(spkiIn({ pem }).length, 120);
  // A validation by one account does not count for another.
  const { body: stranger } = await place(await app.newKey());
  assert.notEqual(stranger.data.id, order.id);
});

test('a new order is checked like a reissue, and a refusal stores nothing', async () => {
  const key = await app.newKey();
  const cases: [unknown, string, string | undefined][] = [
    [{}, 'invalid_parameters', 'certificate'],
    [request({ sign_hash: 'sha1' }), 'invalid_parameters', 'certificate.sign_hash'],
    [request({ common_name: '' }), 'invalid_parameters', 'certificate.common_name'],
    [request({ csr: '' }), 'invalid_parameters', 'certificate.csr'],
    [request({ csr: 'nonsense' }), 'invalid_csr', 'certificate.csr'],
    [request({ common_name: 'a_b.example.com' }), 'invalid_domain', 'certificate.common_name'],
    [request({ csr_from: 'hsm' }), 'invalid_parameters', 'certificate.csr_from'],
    [request({}, { dcv_method: 'email' }), 'invalid_dcv_method', 'dcv_method'],
    [request({}, { alternative_order_id: 'a b' }), 'invalid_parameters', 'alternative_order_id'],
    [request({}, { alternative_order_id: 'x'.repeat(65) }), 'invalid_parameters', 'alternative_order_id'],
    [request({}, { alternative_order_id: '..' }), 'invalid_parameters', 'alternative_order_id'],
    [request({}, { alternative_order_id: 7 }), 'invalid_parameters', 'alternative_order_id'],
  ];
  for (const [json, code, field] of cases) {
    const { body: answer } = await place(key, json);
    assert.deepEqual([answer.code, answer.field], [code, field], JSON.stringify(json).slice(0, 80));
  }
  assert.deepEqual((await app.call('GET', '/openapi/v3/orders', { key })).body.data.orders, []);
});

rule('order 15', 'the name of a holder, which only the operator can vouch for, is `permission_denied`', async () => {
  const key = await app.newKey();
  for (const product of ['code-signing', 'document-signing']) {
    const { status, body: answer } = await place(key, request({ common_name: 'Microsoft Corporation' }), product);
    assert.deepEqual([status, answer.code], [403, 'permission_denied']);
  }
  assert.deepEqual((await app.call('GET', '/openapi/v3/orders', { key })).body.data.orders, []);
  // The owner reissues an order that the operator placed.
  const order = await newOrder(app, { product: 'code-signing', commonName: 'Acme Ltd' });
  assert.equal((await reissue(app, order, { certificate: { csr: csrFor(), sign_hash: 'sha256' } })).status, 200);
  const names = { certificate: { csr: csrFor(), sign_hash: 'sha256', dns_names: ['www.example.com'] } };
  const { body: refused } = await reissue(app, order, names);
  assert.deepEqual([refused.code, refused.field], ['invalid_sans', 'certificate.dns_names']);
});

test('an order of a removed product is refused with a message, and works again when the product is back', async () => {
  const environment = { RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, csr: 'required' }) };
  await using own = await startApp(environment);
  const order = await newOrder(own, { product: OWN_PRODUCT.id });
  await own.stop();
  await own.start({});
  const { status, body: answer } = await reissue(own, order, body());
  assert.deepEqual([status, answer.code], [404, 'product_not_found']);
  assert.match(answer.message, /own, is not offered any more/);
  await own.stop();
  await own.start(environment);
  assert.equal((await reissue(own, order, body())).status, 200);
});

test('a misspelled dry run is refused, so that a typo revokes nothing', async () => {
  const order = await newOrder(app);
  for (const query of ['?dry_run[]=true', '?dryrun=true', '?DRY_RUN=true', '?dry_run=true&dry-run=true']) {
    const { body: answer } = await reissue(app, order, body(), query);
    assert.deepEqual([answer.code, answer.field], ['invalid_parameters', 'dry_run'], query);
  }
});

rule('errors product_not_found', 'is 404: there is no product with that identifier', async () => {
  for (const product of ['nothing', '__proto__', 'SSL-DV', '%00']) {
    const { status, body: answer } = await place(await app.newKey(), request(), product);
    assert.deepEqual([status, answer.code], [404, 'product_not_found'], product);
  }
});

rule('order 12', 'finds an order by the identifier its customer gave it', async () => {
  const [key, stranger] = [await app.newKey(), await app.newKey()];
  const { body: answer } = await place(key, request({}, { alternative_order_id: 'shop/4711?x' }));
  const find = (by: Key, name: string) =>
    app.call('GET', `/openapi/v3/orders/alternate/${encodeURIComponent(name)}`, { key: by });
  const { status, body: found } = await find(key, 'shop/4711?x');
  assert.deepEqual([status, found.data.id, found.data.alternative_order_id], [200, answer.data.id, 'shop/4711?x']);
  assert.deepEqual(found.data, (await app.call('GET', `/openapi/v3/orders/${answer.data.id}`, { key })).body.data);
  for (const [by, name] of [
    [stranger, 'shop/4711?x'],
    [key, 'shop'],
    [key, answer.data.id],
  ] as const) {
    const { status: other, body: none } = await find(by, name);
    assert.deepEqual([other, none.code], [404, 'order_not_found']);
  }
});

rule(
  'errors duplicate_alternative_order_id',
  'the account already has an order with that alternative identifier',
  async () => {
    const key = await app.newKey();
    const json = request({}, { alternative_order_id: 'once' });
    const answers = await Promise.all(Array.from({ length: 8 }, () => place(key, json)));
    const placed = answers.filter(({ status }) => status === 200);
    assert.equal(placed.length, 1);
    for (const { body: answer } of answers.filter(({ status }) => status !== 200)) {
      assert.equal(answer.code, 'duplicate_alternative_order_id');
    }
    // For callers that lost the response: the error names the existing order.
    const { status, body: again } = await place(key, json);
    assert.deepEqual([status, again.details], [409, { order_id: placed[0]?.body.data.id }]);
    assert.equal((await app.call('GET', '/openapi/v3/orders', { key })).body.data.orders.length, 1);
    assert.equal((await place(await app.newKey(), json)).status, 200, 'alternative ids are per account');
  },
);

rule('order 16', 'An order that ended without a certificate keeps showing the `certificate` it wanted', async () => {
  const key = await app.newKey();
  const json = request({ dns_names: ['b.example.com'] });
  const { body: answer } = await place(key, json);
  const before = (await show(app, { key, id: answer.data.id, certificateId: '' })).certificate;
  const { certificate: after } = (await cancel(key, answer.data.id)).body.data;
  assert.deepEqual(after, { ...before, status: 'canceled' });
  assert.ok(after.csr.includes('BEGIN CERTIFICATE REQUEST'));
});

rule('order 13', 'cancels an order that waits for its first certificate', async () => {
  const key = await app.newKey();
  const { body: answer } = await place(key);
  const order = { key, id: answer.data.id, certificateId: answer.data.certificate.id };
  assert.equal((await cancel(await app.newKey(), order.id)).body.code, 'order_not_found');
  const { status, body: canceled } = await cancel(key, order.id);
  assert.deepEqual([status, canceled.data.status, canceled.data.pending_certificate_id], [200, 'canceled', null]);
  assert.equal((await certificate(app, order, order.certificateId)).status, 'canceled');
  const wanted = canceled.data.certificate;
  assert.deepEqual([wanted.id, wanted.status, wanted.pem], [order.certificateId, 'canceled', null]);
  assert.equal(canceled.data.canceled.reason, 'requested');
  const again = await cancel(key, order.id);
  assert.deepEqual([again.status, again.body.code], [409, 'cancel_not_allowed']);
  assert.equal((await reissue(app, order, body())).body.code, 'order_state_conflict');
});

rule(
  'order 13',
  'gives up the pending reissue, and the order is `issued` again with its earlier certificate',
  async () => {
    const order = await newOrder(app);
    const before = await show(app, order);
    const pending = await reissue(app, order, body({ dns_names: ['new.example.com'] }));
    const pendingId = pending.body.data.certificate.id;
    assert.equal((await show(app, order)).status, 'reissuing');
    assert.equal((await cancel(order.key, order.id)).body.data.status, 'issued');
    const after = await show(app, order);
    assert.deepEqual(after.certificate, before.certificate);
    assert.deepEqual([after.canceled.certificate_id, after.canceled.reason], [pendingId, 'requested']);
    assert.deepEqual([after.dns_names, after.pending_certificate_id], [before.dns_names, null]);
    assert.equal((await certificate(app, order, pendingId)).status, 'canceled');
    const audit = await app.app.store.audit.listOf(order.key.accountId, { limit: 50 });
    assert.deepEqual(audit.at(-1)?.details, { certificate_id: pendingId, was: 'reissuing' });
    // Not blocked: the next request is served.
    assert.equal((await reissue(app, order, body())).status, 200);
    assert.equal((await show(app, order)).canceled, null, 'the next certificate ends it');
    const issued = await cancel(order.key, order.id);
    assert.deepEqual([issued.status, issued.body.code], [409, 'cancel_not_allowed'], 'an issued order is not canceled');
  },
);
