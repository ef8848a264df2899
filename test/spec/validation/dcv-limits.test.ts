// Limits of domain validation: what a file can prove, the rate of checks, and how long a certificate waits.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { rule } from '../../support/contract.ts';
import { DAY, type DomainApp, startDomainApp } from '../../support/domain-app.ts';
import { csrFor, show } from '../../support/orders.ts';

let world: DomainApp;
before(async () => {
  world = await startDomainApp();
});
after(() => world[Symbol.asyncDispose]());

rule('dcv 16', 'together with the scope `base_domain` it is `invalid_parameters`', async () => {
  const { app, place, changeMethod, newDomain } = world;
  const name = `www.${newDomain()}`;
  const key = await app.newKey();
  const certificate = { common_name: name, sign_hash: 'sha256', csr: csrFor() };
  const order = await place([name], { dcv_method: 'dns', dcv_scope: 'base_domain' });
  const answers = [
    await changeMethod(order, { dcv_method: 'file' }),
    await changeMethod(order, { dcv_method: 'file', dcv_scope: 'base_domain' }),
  ];
  for (const { status, body } of answers) {
    assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', 'dcv_scope']);
  }
  assert.equal((await show(app, order)).dcv_method, 'dns', 'nothing changed');
  assert.equal((await changeMethod(order, { dcv_method: 'file', dcv_scope: 'fqdn' })).status, 200);
  const both = { certificate, dcv_method: 'file', dcv_scope: 'base_domain' };
  const placed = await app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json: both });
  assert.deepEqual([placed.status, placed.body.code, placed.body.field], [400, 'invalid_parameters', 'dcv_scope']);
});

rule('dcv 17', 'first certificate waits too long for proof becomes `rejected`', async () => {
  const { app, place, publish, complete, workerChecks, newDomain } = world;
  const order = await place([newDomain()]);
  app.advance(30 * DAY - 1);
  await workerChecks(order);
  assert.equal((await show(app, order)).status, 'domain_verifing', 'not a millisecond early');
  app.advance(1);
  await workerChecks(order);
  const { status, pending_certificate_id, dcv_val } = await show(app, order);
  assert.deepEqual([status, pending_certificate_id], ['rejected', null]);
  assert.deepEqual(
    dcv_val.map(({ auth_val }: { auth_val: string }) => auth_val),
    [''],
    'nothing is left to publish',
  );
  const certificate = await app.call('GET', `/openapi/v3/certs/${order.certificateId}`, { key: order.key });
  assert.equal(certificate.body.data.Certificate.status, 'canceled');
  await publish(order);
  const late = await complete(order);
  assert.deepEqual([late.status, late.body.code], [409, 'order_state_conflict']);
});

rule('dcv 18', 'limited to five at once and one more every six seconds', async () => {
  const { app, place, check, complete, newDomain } = world;
  const order = await place([newDomain()]);
  const other = await place([newDomain()], {}, { key: order.key });
  for (let i = 0; i < 3; i += 1) await check(order);
  for (let i = 0; i < 2; i += 1) assert.equal((await complete(order)).status, 200);
  const path = `/openapi/v3/orders/${order.id}/dcv-check`;
  const refused = [await complete(order), await app.call('GET', path, { key: order.key })];
  for (const { status, body, headers } of refused) {
    assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'request_too_fast', '6']);
  }
  await check(other);
  app.advance(6_000);
  await check(order);
  assert.equal((await complete(order)).status, 429);
});
