// Orders as their account sees them: identifiers, fields, and the list.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { NOON, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, show } from '../../support/orders.ts';
import { HAN, startWatchedApp } from '../../support/watched-app.ts';

const { app, db, requireAnswered } = await startWatchedApp();

const ID = /^[0-9a-hjkmnp-tv-z]{26}$/;

const events = ({ id }: PlacedOrder) =>
  db.prepare('select order_id, certificate_id, action from outbox where order_id = ? order by id').all(id);
const list = (order: Pick<PlacedOrder, 'key'>, query = '') =>
  app.call('GET', `/openapi/v3/orders${query}`, { key: order.key });

rule('order 1', 'The identifier of an order is a string; it is the path parameter `id`', async () => {
  const order = await newOrder(app);
  const shown = await show(app, order);
  assert.equal(typeof shown.id, 'string');
  assert.equal(shown.id, order.id);
  await requireAnswered(order, body());
  const found = events(order);
  assert.equal(found.length, 2, 'one callback event per issuance');
  for (const { order_id, action } of found) assert.deepEqual([order_id, action], [order.id, 'order:issued']);
});

rule(
  'order 2',
  'The identifier of a certificate is a string; it is `id` in answers and `cert_id` in callbacks',
  async () => {
    const order = await newOrder(app);
    const id = await requireAnswered(order, body());
    assert.equal(typeof id, 'string');
    assert.equal((await show(app, order)).certificate.id, id);
    assert.equal((await certificate(app, order, id)).id, id);
    const called = events(order).map(({ certificate_id }) => certificate_id);
    assert.deepEqual(called, [order.certificateId, id]);
  },
);

rule('order 3', 'Identifiers are unguessable, and those made later sort after those made earlier', async () => {
  await using later = await startApp();
  const { key } = await newOrder(later);
  const ids: string[] = [];
  for (let made = 0; made < 20; made += 1) {
    const order = await newOrder(later, {}, key);
    ids.push(order.id, order.certificateId);
    // Some within the same millisecond, some not.
    later.advance(made % 3);
  }
  for (const id of ids) assert.match(id, ID);
  assert.deepEqual([...ids].sort(), ids);
  assert.equal(new Set(ids).size, ids.length);
  // The part after the time is fresh randomness for each new millisecond.
  const tails = new Map(ids.map((id) => [id.slice(0, 10), id.slice(10)]));
  assert.ok(tails.size > 10);
  assert.equal(new Set([...tails.values()].map((tail) => tail.slice(0, 6))).size, tails.size);
});

rule('order 4', 'A path identifier of any length or content is looked up', async () => {
  const { key } = await newOrder(app);
  const contents = [
    'x',
    '0',
    '%00',
    '%2F',
    'a%2Fb',
    '%20',
    '%0d%0a',
    "'%20or%20'1'='1",
    '%25',
    '*',
    ':id',
    '__proto__',
    'null',
  ];
  const ids = [
    ...contents,
    '%F0%9F%94%8F',
    '%E8%AF%81',
    'test-order',
    'x'.repeat(1000),
    'x'.repeat(15_000),
    '%2e%2e%2faccount',
  ];
  for (const id of ids) {
    const calls = [
      [await app.call('GET', `/openapi/v3/orders/${id}`, { key }), 'order_not_found'],
      [await app.call('POST', `/openapi/v3/orders/${id}/reissue`, { key, json: body() }), 'order_not_found'],
      [await app.call('GET', `/openapi/v3/certs/${id}`, { key }), 'cert_not_found'],
    ] as const;
    for (const [answer, code] of calls) {
      assert.deepEqual([answer.status, answer.body.code], [404, code], id.slice(0, 40));
      assert.ok(answer.text.length < 300, 'it is not repeated');
    }
  }
});

rule('errors cert_not_found', 'is 404: the account has no certificate with that identifier', async () => {
  const [order, other] = [await newOrder(app), await newOrder(app)];
  for (const id of ['nothing', order.id, other.certificateId, order.certificateId.toUpperCase()]) {
    for (const language of ['en', 'zh-CN']) {
      const headers = { 'accept-language': language };
      const answer = await app.call('GET', `/openapi/v3/certs/${id}`, { key: order.key, headers });
      assert.deepEqual([answer.status, answer.body.code], [404, 'cert_not_found'], id);
      assert.equal(HAN.test(answer.body.message), language === 'zh-CN');
    }
  }
});

rule(
  'order 8',
  'shows the `status` of the order and its current `certificate` with `id`, `common_name`, `dns_names`, `csr` and `pem`',
  async () => {
    const order = await newOrder(app, { dnsNames: ['example.com'] });
    const csr = csrFor('p384');
    const id = await requireAnswered(order, body({ csr, common_name: 'example.com' }));
    const names = ['example.com', 'www.example.com'];
    const shown = await show(app, order);
    const { pem, ...rest } = shown.certificate;
    assert.deepEqual(rest, {
      ...{ id, status: 'issued', common_name: 'example.com', common_name_unicode: 'example.com' },
      ...{ dns_names: names, dns_names_unicode: names, csr },
    });
    assert.deepEqual([shown.status, shown.common_name, shown.dns_names], ['issued', 'example.com', names]);
    const parsed = new X509Certificate(pem);
    assert.equal(parsed.subjectAltName, 'DNS:example.com, DNS:www.example.com');
    assert.equal(parsed.publicKey.asymmetricKeyDetails?.namedCurve, 'secp384r1');
    // Before the first one is issued, the pending one is shown.
    const waiting = await newOrder(app, { vouches: false });
    const { certificate: pending, certificate_id } = await show(app, waiting);
    assert.deepEqual([pending.id, pending.pem, certificate_id], [waiting.certificateId, null, null]);
    // Without a CSR, none is shown.
    const own = await newOrder(app, { product: 'tls-private' });
    await requireAnswered(own, body({ csr: '' }));
    assert.equal((await show(app, own)).certificate.csr, null);
  },
);

rule('order 9', 'shows the `dcv_method`, the `dcv_scope` and the persist binding that the order keeps', async () => {
  const order = await newOrder(app);
  const facts = async () => {
    const { dcv_method, dcv_scope, persist_until, persist_policy } = await show(app, order);
    return { dcv_method, dcv_scope, persist_until, persist_policy };
  };
  const first = { dcv_method: 'dns', dcv_scope: 'fqdn', persist_until: null, persist_policy: 'fqdn' };
  assert.deepEqual(await facts(), first);
  const request = {
    dcv_method: 'dns-persist',
    dcv_scope: 'base_domain',
    persist_until: 1_900_000_000,
    persist_policy: 'wildcard',
  };
  await requireAnswered(order, body({}, request));
  assert.deepEqual(await facts(), request);
  await requireAnswered(order, body());
  assert.deepEqual(await facts(), request, 'and keeps them');
  const signing = await newOrder(app, { product: 'code-signing' });
  assert.equal((await show(app, signing)).dcv_method, null);
});

rule('order 10', '`GET /openapi/v3/orders` lists the orders of the account', async () => {
  const { key } = await newOrder(app);
  const theirs = await newOrder(app);
  const more = [];
  for (let made = 0; made < 6; made += 1) more.push((await newOrder(app, {}, key)).id);
  const first = (await list({ key })).body.data;
  assert.equal(first.orders.length, 7);
  assert.equal(first.next_after, null);
  const ids = first.orders.map(({ id }: { id: string }) => id);
  assert.deepEqual(ids.slice(1), more);
  assert.ok(!ids.includes(theirs.id));
  for (const row of first.orders) {
    const shown = await show(app, { key, id: row.id, certificateId: '' });
    assert.deepEqual(row, { ...row, ...Object.fromEntries(Object.keys(row).map((name) => [name, shown[name]])) });
  }
  const paged: string[] = [];
  for (let after = ''; ; ) {
    const { orders, next_after } = (await list({ key }, `?limit=3&after=${after}`)).body.data;
    paged.push(...orders.map(({ id }: { id: string }) => id));
    if (next_after === null) break;
    after = next_after;
  }
  assert.deepEqual(paged, ids);
  for (const limit of ['0', '201', '-1', 'x', '', '1.5', '1e2']) {
    const { status, body: answer } = await list({ key }, `?limit=${limit}`);
    assert.deepEqual([status, answer.code, answer.field], [400, 'invalid_parameters', 'limit'], limit);
  }
  assert.deepEqual((await list({ key: await app.newKey() })).body.data.orders, []);
});

test('orders and certificates begin at the current time', async () => {
  const order = await newOrder(app);
  const { created_at, term_ends_at } = await show(app, order);
  assert.deepEqual(
    [created_at, term_ends_at],
    [NOON, NOON + 365 * 86_400_000].map((at) => new Date(at).toISOString()),
  );
});
