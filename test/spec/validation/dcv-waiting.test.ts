// Waiting orders: changing the method, checks on request, and scheduled checks.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { rule } from '../../support/contract.ts';
import { pendingRowOf, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { certificate, newOrder, type PlacedOrder, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const world = await startDomainApp({ RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, csr: 'optional' }) });
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, changeMethod, check, entries, outcome, newDomain, workerChecks } = world;

const cancel = ({ id, key }: PlacedOrder) => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });
/** The audited actions on an order. */
const eventsOf = async (order: PlacedOrder) =>
  (await app.app.store.audit.listOf(order.key.accountId, { limit: 100 }))
    .filter(({ subject }) => subject === order.id)
    .map(({ action }) => action);

rule('dcv 12', 'changes the method of a waiting order', async () => {
  const domain = newDomain();
  const order = await place([domain, `www.${domain}`]);
  const [byDns] = await entries(order);
  // One name is proven, and stays so when the method changes for the other.
  dns.set(`_dnsauth.www.${domain}`, 'TXT', [(await entries(order))[1]?.auth_val ?? '']);
  await complete(order);

  const { status, body: answer } = await changeMethod(order, { dcv_method: 'file' });
  assert.deepEqual([status, answer.data.id, answer.data.status], [200, order.id, 'domain_verifing']);
  assert.equal(answer.data.pending_certificate_id, order.certificateId, 'the same certificate is pending');
  assert.deepEqual(answer.data.dcv_val, await entries(order));
  const [byFile, proven] = await entries(order);
  assert.deepEqual([byFile?.dcv_method, byFile?.verified, byFile?.problem], ['file', false, null]);
  assert.equal(proven?.verified, true);
  // A record of the old method proves nothing now.
  dns.set(byDns!.auth_path, 'TXT', [byDns!.auth_val]);
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing http_failure');

  const binding = { dcv_method: 'dns-persist', persist_until: 1_900_000_000, persist_policy: 'wildcard' };
  const { body: bound } = await changeMethod(order, binding);
  const { dcv_method, persist_until, persist_policy } = bound.data;
  assert.deepEqual({ dcv_method, persist_until, persist_policy }, binding);
  assert.match(bound.data.dcv_val[0].auth_val, /; policy=wildcard; persistUntil=1900000000$/);
  const { body: based } = await changeMethod(order, { dcv_method: 'dns', dcv_scope: 'base_domain' });
  assert.deepEqual([based.data.dcv_scope, based.data.persist_until], ['base_domain', 1_900_000_000]);
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  assert.deepEqual((await eventsOf(order)).filter((action) => action === 'order:dcv_method_changed').length, 3);
});

rule('dcv 12', 'PUT /openapi/v3/orders/{id}/dcv-method', async () => {
  const order = await place([newDomain()]);
  const narrow = await place([newDomain()], {}, { product: 'own' });
  const before = [await show(app, order), await pendingRowOf(app, order)];
  const refused: readonly (readonly [PlacedOrder, unknown, string, string])[] = [
    [order, { dcv_method: 'email' }, 'invalid_dcv_method', 'dcv_method'],
    [order, { dcv_method: 'http' }, 'invalid_dcv_method', 'dcv_method'],
    [order, { dcv_method: 'DNS' }, 'invalid_dcv_method', 'dcv_method'],
    [order, { dcv_method: '' }, 'invalid_dcv_method', 'dcv_method'],
    [narrow, { dcv_method: 'file' }, 'invalid_dcv_method', 'dcv_method'],
    [narrow, { dcv_method: 'dns', dcv_scope: 'base_domain' }, 'invalid_parameters', 'dcv_scope'],
    [order, {}, 'invalid_parameters', 'dcv_method'],
    [order, { dcv_method: null }, 'invalid_parameters', 'dcv_method'],
    [order, { dcv_method: ['dns'] }, 'invalid_parameters', 'dcv_method'],
    [order, { dcv_method: 'dns', dcv_scope: 'zone' }, 'invalid_parameters', 'dcv_scope'],
    [order, { dcv_method: 'file', dcv_scope: 'base_domain' }, 'invalid_parameters', 'dcv_scope'],
    [order, { dcv_method: 'dns-persist', persist_until: 1 }, 'invalid_parameters', 'persist_until'],
    [order, { dcv_method: 'dns-persist', persist_policy: 'zone' }, 'invalid_parameters', 'persist_policy'],
  ];
  for (const [whose, json, code, field] of refused) {
    const { status, body: answer } = await changeMethod(whose, json);
    assert.deepEqual([status, answer.code, answer.field], [400, code, field], JSON.stringify(json));
  }
  assert.deepEqual([await show(app, order), await pendingRowOf(app, order)], before, 'a refusal changes nothing');
  // Other accounts cannot see it, and an order that does not wait has nothing to change.
  const stranger = { ...order, key: await app.newKey() };
  const issued = await newOrder(app);
  const canceled = await place([newDomain()]);
  await cancel(canceled);
  for (const [whose, status, code] of [
    [stranger, 404, 'order_not_found'],
    [{ ...order, id: 'nothing' }, 404, 'order_not_found'],
    [issued, 409, 'order_state_conflict'],
    [canceled, 409, 'order_state_conflict'],
  ] as const) {
    const { body: answer, status: actual } = await changeMethod(whose, { dcv_method: 'dns' });
    assert.deepEqual([actual, answer.code], [status, code]);
    const completed = await complete(whose);
    assert.deepEqual([completed.status, completed.body.code], [status, code]);
  }
});

rule('dcv 13', 'starts the checks of a waiting order at once', async () => {
  const domain = newDomain();
  const order = await place([domain]);
  assert.ok(!dns.queries.some(({ name }) => name.endsWith(domain)), 'nothing is looked up before it can be published');
  await publish(order);
  const { status, body: answer } = await complete(order);
  assert.deepEqual([status, answer.data.status, answer.data.certificate.id], [200, 'issued', order.certificateId]);
  assert.deepEqual([answer.data.dcv_next_check_at, answer.data.dcv_expires_at], [null, null]);
  // dcv-check, which changes nothing, uses the same quota as dcv-completed.
  const busy = await place([newDomain()]);
  for (let count = 0; count < 3; count += 1) assert.equal((await complete(busy)).status, 200);
  for (let count = 0; count < 2; count += 1) await check(busy);
  for (const path of ['dcv-completed', 'dcv-check']) {
    const method = path === 'dcv-check' ? 'GET' : 'PUT';
    const refused = await app.call(method, `/openapi/v3/orders/${busy.id}/${path}`, { key: busy.key });
    assert.deepEqual([refused.status, refused.body.code], [429, 'request_too_fast']);
    assert.equal(refused.headers.get('retry-after'), '6');
  }
  assert.equal((await complete(await place([newDomain()], {}, { key: busy.key }))).status, 200, 'each order by itself');
  app.advance(6 * SECOND);
  assert.equal((await complete(busy)).status, 200);
  assert.equal((await complete(busy)).status, 429);
});

test('concurrent requests issue one certificate', async () => {
  const order = await place([newDomain()]);
  await publish(order);
  const asked = [...Array.from({ length: 5 }, () => complete(order)), app.issuance.proveDomains.proveDue()];
  await Promise.all(asked);
  assert.equal(await outcome(order), 'issued');
  assert.deepEqual(
    (await eventsOf(order)).filter((action) => action === 'certificate:issued'),
    ['certificate:issued'],
  );
  const { history } = (await app.call('GET', `/openapi/v3/certs/${order.certificateId}`, { key: order.key })).body.data
    .Certificate;
  assert.equal(history.length, 1);
});

rule('dcv 13', 'otherwise they run by themselves at growing intervals', async () => {
  const order = await place([newDomain()]);
  const nextIn = async () => Date.parse((await show(app, order)).dcv_next_check_at) - app.now();
  assert.equal(await nextIn(), 15 * SECOND);
  // Not before it is due.
  app.advance(15 * SECOND - 1);
  await app.issuance.proveDomains.proveDue();
  assert.equal((await pendingRowOf(app, order))?.tries, 0);
  app.advance(1);
  for (let tries = 0; tries < 14; tries += 1) {
    await workerChecks(order);
    const wait = Math.min(15 * SECOND * 2 ** tries, 4 * 3_600 * SECOND);
    const next = await nextIn();
    // Jitter spreads out certificates that were ordered together.
    assert.ok(next >= 0.8 * wait && next <= 1.2 * wait, `${next} ms after check ${tries + 1}`);
    const { problem } = (await entries(order))[0]!;
    assert.deepEqual([problem?.result, problem?.checked_at], ['no_record', new Date(app.now()).toISOString()]);
  }
  // A check on request resets the backoff.
  await complete(order);
  assert.ok((await nextIn()) <= 18 * SECOND);
  await workerChecks(order);
  assert.ok((await nextIn()) <= 36 * SECOND);
  // So does a change of the method.
  for (let count = 0; count < 6; count += 1) await workerChecks(order);
  await changeMethod(order, { dcv_method: 'dns-persist' });
  assert.equal(await nextIn(), 15 * SECOND);
  await publish(order);
  await workerChecks(order);
  assert.equal(await outcome(order), 'issued');
});

rule('dcv 13', 'they run by themselves at growing intervals', async () => {
  // The service itself runs the worker here, not the test.
  const order = await place([newDomain()]);
  await publish(order);
  app.advance(15 * SECOND);
  const end = performance.now() + 30 * SECOND;
  while ((await outcome(order)) !== 'issued' && performance.now() < end) await sleep(100);
  assert.equal((await certificate(app, order, order.certificateId)).status, 'issued');
});

test('one check may prove some names, and each other name keeps its own reason', async () => {
  const [first, second, third] = [newDomain(), newDomain(), newDomain()];
  const order = await place([first, second, third]);
  const values = (await entries(order)).map(({ auth_val }) => auth_val);
  dns.set(`_dnsauth.${second}`, 'TXT', [values[1]!]);
  dns.set(`_dnsauth.${third}`, 'TXT', ['something else']);
  await complete(order);
  const seen = async () => (await entries(order)).map(({ verified, problem }) => problem?.result ?? verified);
  assert.deepEqual(await seen(), ['no_record', true, 'wrong_value']);
  // The proof is stored: the record may be deleted.
  dns.clear(`_dnsauth.${second}`);
  dns.set(`_dnsauth.${third}`, 'TXT', 'servfail');
  await complete(order);
  assert.deepEqual(await seen(), ['no_record', true, 'dns_failure']);
  dns.set(`_dnsauth.${first}`, 'TXT', [values[0]!]);
  dns.set(`_dnsauth.${third}`, 'TXT', [values[2]!]);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
});

test('an order that cannot be processed blocks no other', async () => {
  // The operator withdrew the product. The order waits for its return, and other orders are processed.
  await using own = await startDomainApp({ RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, csr: 'optional' }) });
  const orphan = await own.place([newDomain()], {}, { product: 'own' });
  const other = await own.place([newDomain()]);
  for (const order of [orphan, other]) await own.publish(order);
  await own.app.stop();
  const servers = { RESEAL_DNS_SERVERS: `127.0.0.1:${own.dns.port}` };
  await own.app.start(servers);
  await own.workerChecks(other);
  assert.equal(await own.outcome(other), 'issued');
  assert.equal((await show(own.app, orphan)).status, 'domain_verifing');
});
