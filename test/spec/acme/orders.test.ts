// newOrder, the order over ACME and in the order interface, and the orders of an account.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { type AcmeClient, newAcmeClient, problemOf } from '../../support/acme.ts';
import { dnsIdentifiers, finalized, issued, placed, proven, sameAccount } from '../../support/acme-orders.ts';
import type { Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { DAY, startDomainApp } from '../../support/domain-app.ts';
import { csrFor } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, newDomain } = world;

const idOf = (url: string): string => url.split('/').at(-1) ?? '';
const see = async (key: Key, url: string) =>
  (await app.call('GET', `/openapi/v3/orders/${idOf(url)}`, { key })).body.data;

/** A client, and a key of its tenant for the order interface. */
async function tenant(): Promise<{ key: Key; client: AcmeClient }> {
  const key = await app.newKey();
  return { key, client: await newAcmeClient(app, { accountId: key.accountId }) };
}

async function refused(client: AcmeClient, payload: object, path = '/acme/new-order') {
  const answer = await client.post(app.url + path, payload);
  assert.ok(answer.status >= 400, answer.text);
  return { type: problemOf(answer), answer };
}

rule('acme 61', '`newOrder` answers 201 with the URL of the order in `Location`', async () => {
  const { client } = await tenant();
  const [one, two] = [newDomain(), newDomain()];
  const { url, body } = await placed(client, [one.toUpperCase(), two]);
  assert.deepEqual(body.identifiers, dnsIdentifiers([one, two]));
  assert.deepEqual([body.status, body.authorizations.length, body.finalize], ['pending', 2, `${url}/finalize`]);
  assert.ok(Date.parse(body.expires) > app.now());
  assert.deepEqual((await client.post(url)).body, body);
});

rule('acme 62', 'in the lists and views of the order interface, under the id in its URL', async () => {
  const { client, key } = await tenant();
  const name = newDomain();
  const { url } = await placed(client, [name]);
  const { body: list } = await app.call('GET', `/openapi/v3/orders?name=${name}`, { key });
  assert.deepEqual(
    list.data.orders.map(({ id, status, dns_names }: never) => ({ id, status, dns_names })),
    [{ id: idOf(url), status: 'domain_verifing', dns_names: [name] }],
  );
  assert.equal((await see(key, url)).acme_account, client.kid);
  const { body: log } = await app.call('GET', '/openapi/v3/account/audit', { key });
  const row = log.data.audit.find(({ subject }: { subject: string }) => subject === idOf(url));
  assert.deepEqual([row.action, row.actor], ['order:placed', `acme:${idOf(client.kid ?? '')}`]);
});

rule('acme 63', 'has the status `domain_verifing` and neither a certificate nor a pending one', async () => {
  const { client, key } = await tenant();
  const [one, two] = [newDomain(), newDomain()];
  await proven(world, client, await placed(client, [one]));
  const { url, body } = await placed(client, [one, two]);
  const order = await see(key, url);
  assert.deepEqual(
    [order.status, order.certificate_id, order.pending_certificate_id, order.certificate, order.dcv_next_check_at],
    ['domain_verifing', null, null, null, null],
  );
  assert.equal(order.dcv_expires_at, body.expires);
  assert.deepEqual(
    order.dcv_val.map(({ domain, verified, auth_val }: never) => [domain, verified, auth_val]),
    [
      [one, true, ''],
      [two, false, ''],
    ],
  );
  for (const [method, path, json] of [
    ['PUT', 'dcv-method', { dcv_method: 'dns' }],
    ['PUT', 'dcv-completed', undefined],
    ['GET', 'dcv-check', undefined],
  ] as const) {
    const { body: answer } = await app.call(method, `/openapi/v3/orders/${idOf(url)}/${path}`, { key, json });
    assert.equal(answer.code, 'order_state_conflict', path);
    assert.match(answer.message, /ACME/);
  }
});

rule('acme 64', 'ends an order that has no CSR yet: it is `invalid` over ACME', async () => {
  const { client, key } = await tenant();
  const { url } = await placed(client, [newDomain()]);
  const { status } = await app.call('PUT', `/openapi/v3/orders/${idOf(url)}/cancel`, { key });
  assert.equal(status, 200);
  const { body } = await client.post(url);
  assert.deepEqual([body.status, body.error.status], ['invalid', 403]);
});

rule('acme 65', 'becomes `canceled`; no event is emitted, and its pending authorizations expire', async () => {
  const { client: before, key } = await tenant();
  const { url, body } = await placed(before, [newDomain(), newDomain()]);
  app.advance(31 * DAY);
  // Without the nonce of the last answer, which is too old by now.
  const client = sameAccount(before);
  await app.issuance.acmeChores.find(({ name }) => name === 'end_acme_orders')?.run();
  assert.equal((await see(key, url)).status, 'canceled');
  const { body: after } = await client.post(url);
  assert.deepEqual([after.status, after.error.type], ['invalid', 'urn:ietf:params:acme:error:malformed']);
  for (const one of body.authorizations) assert.equal((await client.post(one)).body.status, 'expired');
  const { body: deliveries } = await app.call('GET', '/openapi/v3/account/callback/deliveries', { key });
  assert.deepEqual(deliveries.data.deliveries, []);
});

rule('acme 66', 'counts in the quota `open_orders` until its CSR arrives, in both interfaces', async () => {
  const { client, key } = await tenant();
  await app.app.access.changeQuotas(key.accountId, { openOrders: 1 });
  const first = await placed(client, [newDomain()]);
  assert.equal((await refused(client, { identifiers: dnsIdentifiers([newDomain()]) })).type, 'rateLimited');
  const json = { certificate: { csr: csrFor(), common_name: newDomain() } };
  assert.equal((await app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json })).body.code, 'quota_exceeded');
  await finalized(client, await proven(world, client, first));
  await placed(client, [newDomain()]);
});

rule('acme 67', 'another one is `unsupportedIdentifier`', async () => {
  const { client } = await tenant();
  const cases: [unknown, string][] = [
    [[{ type: 'email', value: 'a@example.com' }], 'unsupportedIdentifier'],
    [[], 'malformed'],
    [undefined, 'malformed'],
    [[{ type: 'dns', value: 1 }], 'malformed'],
    [['example.com'], 'malformed'],
    [dnsIdentifiers(Array.from({ length: 101 }, (_, index) => `n${index}.example.com`)), 'malformed'],
  ];
  for (const [identifiers, type] of cases) assert.equal((await refused(client, { identifiers })).type, type);
});

rule('acme 68', 'are `rejectedIdentifier`, with a subproblem for each that has its `identifier`', async () => {
  const { client } = await tenant();
  const good = newDomain();
  const bad = ['co.uk', 'host.internal', 'a..com', '-a.com', '*.*.example.com', 'bücher.example'];
  const { type, answer } = await refused(client, { identifiers: dnsIdentifiers([good, ...bad]) });
  assert.equal(type, 'rejectedIdentifier');
  assert.deepEqual(
    answer.body.subproblems.map(({ identifier }: never) => identifier),
    dnsIdentifiers(bad),
  );
  const bound = await newAcmeClient(app, { rights: { nameSuffixes: ['example.com'] } });
  const names = ['www.example.com', '*.example.com', 'example.org', 'badexample.com'];
  const { answer: outside } = await refused(bound, { identifiers: dnsIdentifiers(names) });
  assert.deepEqual(
    outside.body.subproblems.map(({ identifier }: { identifier: { value: string } }) => identifier.value),
    names.slice(2),
  );
});

rule('acme 69', 'its authorization has the challenges `http-01` and `tls-alpn-01`', async () => {
  const { client } = await tenant();
  const path = '/acme/new-order/tls-private';
  const ip = { type: 'ip', value: '192.0.2.7' };
  const answer = await client.post(app.url + path, { identifiers: [ip] });
  assert.equal(answer.status, 201, answer.text);
  const { body } = await client.post(answer.body.authorizations[0]);
  assert.deepEqual(body.identifier, ip);
  assert.deepEqual(
    body.challenges.map(({ type }: { type: string }) => type),
    ['http-01', 'tls-alpn-01'],
  );
  for (const identifier of [
    { ...ip, type: 'dns' },
    { type: 'ip', value: 'example.com' },
    { type: 'ip', value: '*' },
  ])
    assert.equal((await refused(client, { identifiers: [identifier] }, path)).type, 'rejectedIdentifier');
  assert.equal((await refused(client, { identifiers: [ip] })).type, 'rejectedIdentifier');
});

rule('acme 70', 'the name without `*.`, `wildcard` true, and neither `http-01` nor `tls-alpn-01`', async () => {
  const { client } = await tenant();
  const name = newDomain();
  const { body } = await placed(client, [`*.${name}`, name]);
  const [{ body: wild }, { body: plain }] = [
    await client.post(body.authorizations[0]),
    await client.post(body.authorizations[1]),
  ];
  assert.deepEqual([wild.identifier, wild.wildcard], [{ type: 'dns', value: name }, true]);
  const types = ({ challenges }: { challenges: { type: string }[] }) => challenges.map(({ type }) => type);
  assert.deepEqual(types(wild), ['dns-01', 'dns-persist-01']);
  assert.equal(plain.wildcard, undefined);
  assert.ok(types(plain).includes('http-01'));
});

rule('acme 71', '`notAfter` is honoured if it lies ahead and within the limits of the product', async () => {
  const { client, key } = await tenant();
  const identifiers = dnsIdentifiers([newDomain()]);
  const notAfter = new Date(app.now() + 5 * DAY).toISOString().replace('.000', '');
  const order = await placed(client, [newDomain()], { notAfter });
  assert.equal(order.body.notAfter, notAfter);
  const done = await finalized(client, await proven(world, client, order));
  const { body } = await app.call('GET', `/openapi/v3/certs/${idOf(done.body.certificate)}`, { key });
  assert.equal(Date.parse(body.data.Certificate.not_after), Date.parse(notAfter));
  const [past, far] = [-DAY, 500 * DAY].map((ms) => new Date(app.now() + ms).toISOString());
  for (const more of [{ notAfter: past }, { notAfter: far }, { notAfter: 'soon' }, { notBefore: notAfter }])
    assert.equal((await refused(client, { identifiers, ...more })).type, 'malformed', JSON.stringify(more));
});

rule('acme 72', 'the `profile` of an order is its product', async () => {
  const { client } = await tenant();
  const identifiers = dnsIdentifiers([newDomain()]);
  assert.equal((await placed(client, [newDomain()], { profile: 'tls-private' })).body.profile, 'tls-private');
  for (const profile of ['none', 'code-signing'])
    assert.equal((await refused(client, { identifiers, profile })).type, 'invalidProfile');
  const other = { identifiers, profile: 'ssl-dv' };
  assert.equal((await refused(client, other, '/acme/new-order/tls-private')).type, 'invalidProfile');
  const bound = await newAcmeClient(app, { rights: { products: ['tls-private'] } });
  assert.equal((await placed(bound, [newDomain()])).body.profile, 'tls-private');
  assert.equal((await refused(bound, other)).type, 'unauthorized');
});

rule('acme 73', 'An ACME account has at most 300 pending authorizations', async () => {
  const { client } = await tenant();
  for (let order = 0; order < 3; order += 1)
    await placed(
      client,
      Array.from({ length: 100 }, (_, index) => `n${index}.o${order}.example.com`),
    );
  const { type, answer } = await refused(client, { identifiers: dnsIdentifiers([newDomain()]) });
  assert.equal(type, 'rateLimited');
  assert.ok(Number(answer.headers.get('retry-after')) > 0);
});

rule('acme 74', 'An order is `pending` until all of its authorizations are valid, then `ready`', async () => {
  const { client } = await tenant();
  const order = await placed(client, [newDomain(), newDomain()]);
  assert.equal(order.body.status, 'pending');
  await proven(world, client, { ...order, body: { authorizations: order.body.authorizations.slice(0, 1) } });
  assert.equal((await client.post(order.url)).body.status, 'pending');
  const ready = await proven(world, client, order);
  assert.deepEqual([ready.body.status, ready.body.certificate], ['ready', undefined]);
  const { body } = await finalized(client, ready);
  assert.deepEqual([body.status, typeof body.certificate], ['valid', 'string']);
});

/** Copies of an order, by way of the store: a hundred requests take long. */
async function likeOrders(accountId: string, url: string, count: number): Promise<string[]> {
  const { store, newId } = app.app;
  const order = (await store.orders.find(accountId, idOf(url))) ?? assert.fail(url);
  const acme = (await store.acmeOrders.find(accountId, order.id)) ?? assert.fail(url);
  const [authorization] = await store.authorizations.ofOrder(order.id);
  const ids = Array.from({ length: count }, newId);
  await store.transaction(async (tx) => {
    for (const id of ids) {
      await tx.orders.insert({ ...order, id });
      const own = { ...(authorization ?? assert.fail()), id: newId(), orderId: id };
      await tx.acmeOrders.insert({ ...acme, orderId: id, certificateId: newId() }, [own]);
    }
  });
  return ids.map((id) => url.replace(order.id, id));
}

rule('acme 75', 'lists its orders but the invalid ones, the oldest first, a hundred at a time', async () => {
  const { client, key } = await tenant();
  const [ended, first] = [await placed(client, [newDomain()]), await placed(client, [newDomain()])];
  await app.call('PUT', `/openapi/v3/orders/${idOf(ended.url)}/cancel`, { key });
  const urls = [first.url, ...(await likeOrders(key.accountId, first.url, 100))];
  const page = await client.post(`${client.kid}/orders`);
  assert.deepEqual(page.body, { orders: urls.slice(0, 100) });
  const [, next = ''] = /<([^>]+)>;rel="next"/.exec(page.headers.get('link') ?? '') ?? [];
  const second = await client.post(next);
  assert.deepEqual(second.body, { orders: urls.slice(100) });
  assert.doesNotMatch(second.headers.get('link') ?? '', /next/);
});

rule('acme 76', 'its orders without a CSR become `canceled`; what is issued stays', async () => {
  const { client, key } = await tenant();
  const done = await issued(world, client, [newDomain()]);
  const open = await placed(client, [newDomain()]);
  assert.equal((await client.post(client.kid ?? '', { status: 'deactivated' })).body.status, 'deactivated');
  await app.issuance.acmeChores.find(({ name }) => name === 'end_acme_orders')?.run();
  assert.equal((await see(key, open.url)).status, 'canceled');
  assert.equal((await see(key, done.url)).status, 'issued');
  assert.equal((await client.post(done.url)).status, 401);
});
