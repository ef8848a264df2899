// What a client of this API family puts on the wire, replayed with plain fetch: it sends an empty array where it has no
// body, a product as two numbers, months instead of days, no digest, and reads the fields that it knows.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { request } from 'node:http';
import { after, test } from 'node:test';
import type { Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { startDomainApp } from '../../support/domain-app.ts';
import { csrFor } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, newDomain } = world;

/** The client's product setting: both halves are numbers, the first of them goes into the path. */
const PRODUCT = '101-101';

// biome-ignore lint/suspicious/noExplicitAny: the client reads answers of every shape.
type Json = any;

async function call(
  key: Key,
  method: string,
  path: string,
  params: object = [],
): Promise<{ code: string; data: Json }> {
  const response = await fetch(`${app.url}/openapi/v3${path}`, {
    method,
    headers: {
      ...{ 'Content-Type': 'application/json', Accept: 'application/json' },
      ...{ 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey },
    },
    // Fetch sends no body with a GET; the client does, see below.
    ...(method !== 'GET' && { body: JSON.stringify(params) }),
  });
  const { code, data } = (await response.json()) as { code: string; data: Json };
  assert.equal(response.status === 200, code === 'success');
  return { code, data };
}

const orderOf = (name: string, alternativeId: string) => ({
  certificate: { csr: csrFor(), common_name: name, dns_names: [name, `api.${name}`] },
  ...{ validity_months: 3, alternative_order_id: alternativeId, dcv_method: 'dns' },
});

/** Returns the id of the order, also if it was placed before and the answer was lost. */
async function place(key: Key, params: ReturnType<typeof orderOf>): Promise<string> {
  const [product, price] = PRODUCT.split('-');
  const { code, data } = await call(key, 'POST', `/orders/${product}`, { ...params, pay_product_id: Number(price) });
  if (code !== 'duplicate_alternative_order_id') return data.id;
  return (await call(key, 'GET', `/orders/alternate/${params.alternative_order_id}`)).data.order_id;
}

/** What the client tells its user to publish: it takes the first entry, and writes names and values in lower case. */
function instructionIn([first]: Json[]): { method: string; host: string; value: string } {
  const { dcv_method, auth_path, auth_val } = first;
  if (dcv_method === 'file') return { method: 'file', host: auth_path, value: auth_val };
  return { method: 'txt', host: auth_path.toLowerCase(), value: auth_val.toLowerCase() };
}

function publish(entries: Json[]): void {
  for (const { auth_path, auth_val } of entries) dns.set(auth_path.toLowerCase(), 'TXT', [auth_val.toLowerCase()]);
}

test('a client of the family places, recovers, changes the method, proves and fetches its certificate', async () => {
  const key = await app.newKey();
  const name = newDomain();
  const params = orderOf(name, 'shop-1');
  const lost = await place(key, params);
  const id = await place(key, params);
  assert.equal(id, lost, 'found by its own name');
  assert.equal((await call(key, 'GET', '/orders')).data.orders.length, 1);

  const waiting = (await call(key, 'GET', `/orders/${id}`)).data;
  assert.deepEqual([waiting.status, waiting.product], ['domain_verifing', 'ssl-dv']);
  assert.equal(instructionIn(waiting.dcv_val).host, `_dnsauth.${name}`);
  const file = (await call(key, 'PUT', `/orders/${id}/dcv-method`, { dcv_method: 'file' })).data;
  assert.deepEqual(instructionIn(file.dcv_vals).method, 'file');
  assert.ok(instructionIn(file.dcv_vals).host.startsWith('/.well-known/pki-validation/'));
  const changed = (await call(key, 'PUT', `/orders/${id}/dcv-method`, { dcv_method: 'dns' })).data;
  assert.deepEqual(instructionIn(changed.dcv_vals), instructionIn(waiting.dcv_val));

  publish(changed.dcv_vals);
  assert.equal((await call(key, 'PUT', `/orders/${id}/dcv-completed`)).code, 'success');
  const issued = (await call(key, 'GET', `/orders/${id}`)).data;
  assert.equal(issued.status, 'issued');
  assert.deepEqual(
    issued.dcv_val.map((one: Json) => [one.domain, one.auth_path, one.verified]),
    [name, `api.${name}`].map((one) => [one, `_dnsauth.${one}`, true]),
    'what to publish stays visible',
  );
  const leaf = new X509Certificate(issued.certificate.pem);
  assert.deepEqual([issued.certificate.common_name, issued.certificate.dns_names], [name, [name, `api.${name}`]]);
  const { Certificate } = (await call(key, 'GET', `/certs/${issued.certificate.id}`)).data;
  const [above, ...others] = Certificate.ica_pem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g);
  assert.deepEqual(others, [], 'without the root');
  assert.ok(leaf.checkIssued(new X509Certificate(above)));
  const end = new Date(app.now());
  end.setUTCMonth(end.getUTCMonth() + 3);
  assert.equal(issued.term_ends_at, end.toISOString());
  assert.equal(leaf.validToDate.getTime(), end.getTime() - 1_000, 'no second more than three months');

  assert.equal((await call(key, 'PUT', `/orders/${id}/cancel`)).code, 'cancel_not_allowed');
  assert.equal((await call(key, 'GET', `/orders/${id}`)).data.status, 'issued');
});

test('a client of the family cancels what waits, and still sees what it had asked for', async () => {
  const key = await app.newKey();
  const params = orderOf(newDomain(), 'shop-2');
  const id = await place(key, params);
  assert.equal((await call(key, 'PUT', `/orders/${id}/cancel`)).code, 'success');
  const { status, certificate } = (await call(key, 'GET', `/orders/${id}`)).data;
  assert.equal(status, 'canceled');
  const { csr, common_name, dns_names } = certificate;
  assert.deepEqual({ csr, common_name, dns_names }, params.certificate);
});

test('a GET with an empty array as its body is answered', async () => {
  const key = await app.newKey();
  const id = await place(key, orderOf(newDomain(), 'shop-3'));
  const answered = Promise.withResolvers<number | undefined>();
  const headers = {
    ...{ 'Content-Type': 'application/json', 'Content-Length': 2 },
    ...{ 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey },
  };
  request(`${app.url}/openapi/v3/orders/${id}`, { headers }, (response) => {
    response.resume();
    answered.resolve(response.statusCode);
  })
    .on('error', answered.reject)
    .end('[]');
  assert.equal(await answered.promise, 200);
});

const post = (key: Key, path: string, json: unknown, headers = {}) =>
  app.call('POST', `/openapi/v3/orders/${path}`, { key, json, headers });

rule('placing 3', 'is signed with the first digest that its product lists; a reissue needs the field', async () => {
  const key = await app.newKey();
  for (const sign_hash of [undefined, '']) {
    const params = orderOf(newDomain(), `digest ${sign_hash}`.trim().replace(' ', '-'));
    const id = await place(key, { ...params, certificate: { ...params.certificate, sign_hash } as never });
    publish((await call(key, 'GET', `/orders/${id}`)).data.dcv_val);
    const { certificate } = (await call(key, 'PUT', `/orders/${id}/dcv-completed`)).data;
    assert.equal(new X509Certificate(certificate.pem).signatureAlgorithm, 'ecdsa-with-SHA256');
    const { body } = await post(key, `${id}/reissue`, { certificate: params.certificate });
    assert.deepEqual([body.code, body.field], ['invalid_parameters', 'certificate.sign_hash']);
  }
});

rule(
  'placing 4',
  'More months than the term of the product has are `invalid_parameters` naming the field',
  async () => {
    const key = await app.newKey();
    const order = orderOf(newDomain(), 'shop-4');
    for (const validity_months of [13, 120, 2 ** 53, 0, -1, 1.5, '12', null]) {
      const { status, body } = await post(key, 'ssl-dv', { ...order, validity_months });
      assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', 'validity_months']);
    }
    const { body } = await post(key, 'ssl-dv', { ...order, validity_months: 12 });
    assert.equal((await call(key, 'GET', `/orders/${body.data.id}`)).data.term_ends_at, '2027-11-15T12:00:00.000Z');
  },
);

rule('placing 5', 'two that name different products are `invalid_parameters`', async () => {
  const key = await app.newKey();
  const placed: readonly (readonly [path: string, number: number | undefined, product: string])[] = [
    ['ssl-dv-add', undefined, 'ssl-dv-add'],
    ['102', undefined, 'ssl-dv-add'],
    ['102', 0, 'ssl-dv-add'],
    ['ssl-dv-add', 102, 'ssl-dv-add'],
    ['102', 7, 'ssl-dv-add'],
    ['anything', 102, 'ssl-dv-add'],
  ];
  for (const [index, [path, pay_product_id, product]] of placed.entries()) {
    const { status, body, text } = await post(key, path, { ...orderOf(newDomain(), `pay-${index}`), pay_product_id });
    assert.equal(status, 200, text);
    assert.equal((await call(key, 'GET', `/orders/${body.data.order_id}`)).data.product, product, path);
  }
  const refused: readonly (readonly [path: string, number: unknown, code: string])[] = [
    ['102', 101, 'invalid_parameters'],
    ['ssl-dv', 102, 'invalid_parameters'],
    ['ssl-dv', '101', 'invalid_parameters'],
    ['0102', undefined, 'product_not_found'],
    ['7', 7, 'product_not_found'],
    // What a client makes of `ssl-dv` that splits it.
    ['ssl', 0, 'product_not_found'],
  ];
  for (const [path, pay_product_id, code] of refused) {
    const { body } = await post(key, path, { ...orderOf(newDomain(), 'never'), pay_product_id });
    const field = code === 'invalid_parameters' ? 'pay_product_id' : undefined;
    assert.deepEqual([body.code, body.field], [code, field], `${path} ${pay_product_id}`);
  }
});

rule('order 17', 'in `order_id` as well as in `id`, and the entries of `dcv_val` in `dcv_vals` too', async () => {
  const key = await app.newKey();
  const { data: placed } = await call(key, 'POST', '/orders/101', orderOf(newDomain(), 'shop-5'));
  assert.equal(placed.order_id, placed.id);
  const calls: readonly (readonly [method: string, path: string, params?: object])[] = [
    ['GET', `/orders/${placed.id}`],
    ['GET', '/orders/alternate/shop-5'],
    ['PUT', `/orders/${placed.id}/dcv-method`, { dcv_method: 'file' }],
    ['PUT', `/orders/${placed.id}/dcv-completed`],
    ['PUT', `/orders/${placed.id}/cancel`],
  ];
  for (const one of calls) {
    const { data } = await call(key, ...one);
    assert.equal(data.order_id, placed.id);
    assert.ok(data.dcv_val.length === 2);
    assert.deepEqual(data.dcv_vals, data.dcv_val);
  }
  const { orders } = (await call(key, 'GET', '/orders')).data;
  assert.deepEqual(
    orders.map((one: Json) => [one.id, one.order_id]),
    [[placed.id, placed.id]],
  );
});

rule('order 18', 'The first entry of `dcv_val` is that of the common name', async () => {
  const key = await app.newKey();
  const name = newDomain();
  const certificate = { csr: csrFor(), common_name: `www.${name}`, dns_names: [`a.${name}`, name, `www.${name}`] };
  const { data } = await call(key, 'POST', '/orders/101', { certificate });
  const { dcv_val } = (await call(key, 'GET', `/orders/${data.order_id}`)).data;
  assert.equal(dcv_val[0].domain, `www.${name}`);
  assert.equal(dcv_val.length, 3);
});

rule('order 19', 'such as one that is issued, is `cancel_not_allowed`', async () => {
  const key = await app.newKey();
  const id = await place(key, orderOf(newDomain(), 'shop-6'));
  const cancel = () => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });
  assert.equal((await cancel()).status, 200);
  const { status, body } = await cancel();
  assert.deepEqual([status, body.code, body.details], [409, 'cancel_not_allowed', { status: 'canceled' }]);
});

rule('errors cancel_not_allowed', 'is 409: the order has nothing pending that could be canceled', async () => {
  const key = await app.newKey();
  const name = newDomain();
  const id = await place(key, orderOf(name, 'shop-7'));
  publish((await call(key, 'GET', `/orders/${id}`)).data.dcv_val);
  assert.equal((await call(key, 'PUT', `/orders/${id}/dcv-completed`)).data.status, 'issued');
  const { status, body } = await app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });
  assert.deepEqual([status, body.code, body.details], [409, 'cancel_not_allowed', { status: 'issued' }]);
  assert.match(body.message, /revoke/, 'the remedy');
});
