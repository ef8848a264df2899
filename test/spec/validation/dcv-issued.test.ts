// How waiting ends: with the certificate and everything its request agreed to, or without one and with the order as it
// was before.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { DAY, pendingRowOf, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { newSm2Csr, openEnvelope, readSm2Certificate } from '../../support/dual.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { issuedIn } from '../../support/records.ts';

const world = await startDomainApp({
  RESEAL_PENDING_DAYS: '2',
  RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, csr: 'optional', term_days: 3 }),
});
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, entries, outcome, newDomain, workerChecks } = world;

/** The queued callback events of an order. */
function eventsOf({ folder }: TestApp, { id }: PlacedOrder): string[] {
  const db = new DatabaseSync(join(folder, 'reseal.db'), { readOnly: true });
  const rows = db.prepare('select certificate_id, action from outbox where order_id = ? order by id').all(id);
  db.close();
  return rows.map(({ certificate_id, action }) => `${action} ${certificate_id}`);
}
const auditOf = async ({ key, id }: PlacedOrder) =>
  (await app.app.store.audit.listOf(key.accountId, { limit: 100 })).filter(({ subject }) => subject === id);
const revocationOf = async ({ key }: PlacedOrder, id: string) =>
  (await issuedIn(app.app.store, key.accountId, id)).revocation;

async function pendingOf(order: PlacedOrder, json: unknown, headers = {}): Promise<string> {
  const { status, body: answer, text } = await reissue(app, order, json, '', headers);
  assert.equal(status, 200, text);
  assert.equal((await show(app, order)).status, 'reissuing');
  return answer.data.certificate.id;
}

rule('dcv 14', 'When the last name is proven, the certificate is issued and the order becomes `issued`', async () => {
  const domain = newDomain();
  const [kept, gone, added] = [`kept.${domain}`, `gone.${domain}`, `added.${domain}`];
  const order = await newOrder(app, { product: 'ssl-dv-replace', commonName: kept, dnsNames: [gone] });
  const request = body(
    { common_name: kept, dns_names: [added], validity_days: 30 },
    { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true },
  );
  const headers = { 'idempotency-key': 'once' };
  const id = await pendingOf(order, request, headers);
  assert.deepEqual(eventsOf(app, order), [`order:issued ${order.certificateId}`]);
  // Checks that fail revoke nothing.
  await complete(order);
  await workerChecks(order);
  assert.equal(await revocationOf(order, order.certificateId), null);
  assert.deepEqual((await show(app, order)).dns_names, [kept, gone]);

  // A whole second, the resolution of certificate dates.
  app.advance(3_600 * SECOND);
  await workerChecks(order);
  app.advance(SECOND - (app.now() % SECOND));
  await publish(order);
  const { body: answer } = await complete(order);
  const { status, certificate_id, pending_certificate_id, dns_names, dcv_expires_at } = answer.data;
  assert.deepEqual([status, certificate_id, pending_certificate_id], ['issued', id, null], 'the id in the response');
  assert.deepEqual([dns_names, dcv_expires_at], [[kept, added], null]);
  assert.equal(await app.app.store.waiting.find(order.key.accountId, id), undefined, 'it is no longer pending');
  const issued = await certificate(app, order, id);
  const { subjectAltName, validFrom, validTo } = new X509Certificate(issued.pem);
  assert.equal(subjectAltName, `DNS:${kept}, DNS:${added}`);
  // The validity period starts an hour before issuance, with the requested number of days.
  const start = app.now() - 3_600 * SECOND;
  assert.deepEqual([Date.parse(validFrom), Date.parse(validTo)], [start, start + 30 * DAY - SECOND]);
  assert.deepEqual([issued.status, issued.version, issued.replaces], ['issued', 2, order.certificateId]);
  const [first, second] = [order.certificateId, id];
  assert.deepEqual(eventsOf(app, order), [`order:issued ${first}`, `order:issued ${second}`, `order:revoked ${first}`]);
  const { reason, cause, causedById, dueAt } = (await revocationOf(order, order.certificateId))!;
  assert.deepEqual([reason, cause, causedById, dueAt], ['superseded', 'name_removed', id, app.now()]);
  const last = (await auditOf(order)).at(-1);
  assert.deepEqual([last?.actor, last?.action], ['service', 'certificate:issued']);
  // A retry with the same idempotency key gets the same answer.
  const again = await reissue(app, order, request, '', headers);
  assert.equal(again.body.data.certificate.id, id);
  assert.equal(eventsOf(app, order).length, 3);
});

rule('dcv 14', 'the certificate is issued and the order becomes `issued`', async () => {
  // Both halves of a dual certificate; the encryption key is generated only now.
  const signing = await newSm2Csr();
  const domain = newDomain();
  const wanted = { product: 'ssl-sm2-dual', certificate: { csr: signing.csr, sign_hash: 'sm3' } };
  const order = await place([domain], {}, wanted);
  assert.equal(await outcome(order), 'domain_verifing');
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  const first = await certificate(app, order, order.certificateId);
  assert.equal(readSm2Certificate(first.pem).point, signing.point);
  const { point } = openEnvelope(first.encryption_key_envelope, signing);
  assert.equal(readSm2Certificate(first.encryption_pem).point, point);
  // Whether the encryption key is kept was fixed by the request.
  for (const isKept of [true, false]) {
    const [other, added] = [await newSm2Csr(), newDomain()];
    const change = { csr: other.csr, sign_hash: 'sm3', un_modify_key: isKept, dns_names: [added] };
    const id = await pendingOf(order, body({ common_name: domain, ...change }, agreed));
    await publish(order);
    await complete(order);
    const next = await certificate(app, order, id);
    assert.equal(next.status, 'issued');
    assert.equal(readSm2Certificate(next.encryption_pem).point === point, isKept);
    assert.equal(openEnvelope(next.encryption_key_envelope, other).point === point, isKept);
  }
});
const agreed = { i_know_remove_domain_will_revoke_before_cert: true };

rule('dcv 15', 'A reissue that waits too long lapses: the order is `issued` again with its earlier', async () => {
  const domain = newDomain();
  const order = await newOrder(app, { product: 'ssl-dv-replace', commonName: domain, dnsNames: [`gone.${domain}`] });
  const before = await show(app, order);
  const request = body(
    { common_name: domain, dns_names: [newDomain()] },
    { ...agreed, i_know_will_revoke_last_cert: true },
  );
  const id = await pendingOf(order, request);
  const endsAt = app.now() + 2 * DAY;
  assert.equal((await show(app, order)).dcv_expires_at, new Date(endsAt).toISOString());
  while (((await pendingRowOf(app, order))?.dueAt ?? endsAt) < endsAt) await workerChecks(order);
  assert.equal((await pendingRowOf(app, order))?.dueAt, endsAt, 'the last check is at expiry, and not after it');
  app.advance(endsAt - 1 - app.now());
  await app.issuance.proveDomains.proveDue();
  assert.equal((await show(app, order)).status, 'reissuing');
  app.advance(1);
  await workerChecks(order);
  const after = await show(app, order);
  assert.deepEqual([after.status, after.pending_certificate_id], ['issued', null]);
  assert.deepEqual([after.certificate, after.dns_names], [before.certificate, before.dns_names]);
  const lapsed = { reason: 'validation_lapsed', canceled_at: new Date(endsAt).toISOString() };
  const { status, canceled } = await certificate(app, order, id);
  assert.deepEqual([status, canceled.message.length > 20], ['canceled', true]);
  assert.deepEqual({ ...canceled, message: undefined }, { ...lapsed, message: undefined });
  assert.deepEqual(after.canceled, { certificate_id: id, ...canceled });
  assert.equal(await revocationOf(order, order.certificateId), null, 'the consented revocation is not applied');
  assert.deepEqual(eventsOf(app, order), [`order:issued ${order.certificateId}`, `order:reissue_canceled ${id}`]);
  const last = (await auditOf(order)).at(-1);
  assert.deepEqual([last?.actor, last?.action, last?.details.certificate_id], ['service', 'order:lapsed', id]);
  // The order accepts a new reissue.
  await pendingOf(order, request);
});

rule('dcv 17', 'first certificate waits too long for proof becomes `rejected`', async () => {
  // Expired, although all records are published by now; a caller who asks is told so.
  const order = await place([newDomain()]);
  await publish(order);
  app.advance(2 * DAY);
  const { status } = await complete(order).then(({ body: { data } }) => data ?? {});
  assert.ok(status === 'rejected' || status === undefined);
  assert.equal((await show(app, order)).status, 'rejected', 'a new order has no previous certificate');
  assert.equal((await certificate(app, order, order.certificateId)).status, 'canceled');
  assert.deepEqual(eventsOf(app, order), [`order:rejected ${order.certificateId}`]);
  const refused = await reissue(app, order, body());
  assert.equal(refused.body.code, 'order_state_conflict');
});

test('waiting ends with the term of the order', async () => {
  for (const isPublished of [true, false]) {
    const [domain, added] = [newDomain(), newDomain()];
    const order = await newOrder(app, { product: 'own', commonName: domain });
    app.advance(2 * DAY);
    await pendingOf(order, body({ common_name: domain, dns_names: [added] }));
    app.advance(1 * DAY - SECOND);
    await workerChecks(order);
    if (isPublished) await publish(order);
    // Due again by then, whatever the previous check found.
    app.advance(3_600 * SECOND);
    await workerChecks(order);
    const { status, certificate_id } = await show(app, order);
    assert.deepEqual([status, certificate_id], ['issued', order.certificateId]);
  }
});

/** Starts a reissue for one more name and publishes its record, then makes a change. */
async function afterwards(change: Record<string, unknown>, meanwhile: (order: PlacedOrder) => Promise<unknown>) {
  const [domain, added] = [newDomain(), newDomain()];
  const order = await newOrder(app, { commonName: domain });
  const id = await pendingOf(order, body({ common_name: domain, dns_names: [added], ...change }));
  await publish(order);
  await meanwhile(order);
  if (await pendingRowOf(app, order)) await complete(order);
  const { status, canceled } = await certificate(app, order, id);
  return [
    (await show(app, order)).status,
    status,
    canceled?.reason ?? null,
    eventsOf(app, order).at(-1)?.split(' ')[0],
  ];
}

rule('event 12', 'A reissue that ends without a certificate emits `order:reissue_canceled`', async () => {
  const domain = newDomain();
  const order = await newOrder(app, { commonName: domain });
  const id = await pendingOf(order, body({ common_name: domain, dns_names: [newDomain()] }));
  await app.call('PUT', `/openapi/v3/orders/${order.id}/cancel`, { key: order.key });
  assert.deepEqual(eventsOf(app, order), [`order:issued ${order.certificateId}`, `order:reissue_canceled ${id}`]);
});

rule('certificate 6', 'ends without being issued has the `status` `canceled` and says in `canceled` why', async () => {
  assert.deepEqual(await afterwards({}, async () => {}), ['issued', 'issued', null, 'order:issued']);
  const { publicKey } = (await app.app.store.certificates.find(...(await anyIssued())))!;
  const date = new Date(app.now() + DAY).toISOString().slice(0, 10);
  const dayAfter = async () => app.advance(1.6 * DAY);
  assert.deepEqual(await afterwards({ custom_expiration_date: date }, dayAfter), [
    ...['issued', 'canceled', 'expiration_passed', 'order:reissue_canceled'],
  ]);
  const block = () => app.app.store.blockedKeys.add(publicKey.fingerprint, 'compromised', app.now());
  // Last, because all of them share one key.
  assert.deepEqual(await afterwards({ csr: csrFor() }, block), [
    ...['issued', 'canceled', 'key_compromised', 'order:reissue_canceled'],
  ]);
});
async function anyIssued(): Promise<[string, string]> {
  const order = await newOrder(app, { commonName: newDomain() });
  return [order.key.accountId, order.certificateId];
}

test('only proven names are issued: a deleted persistent record proves nothing', async () => {
  const [first, second] = [newDomain(), newDomain()];
  const order = await place([first, second], { dcv_method: 'dns-persist' }, { certificate: { csr: csrFor('p384') } });
  const [one, other] = await entries(order);
  dns.set(one!.auth_path, 'TXT', [one!.auth_val]);
  await complete(order);
  const seen = async () => (await entries(order)).map(({ verified }) => verified);
  assert.deepEqual(await seen(), [true, false]);
  dns.clear(one!.auth_path);
  dns.set(other!.auth_path, 'TXT', [other!.auth_val]);
  await complete(order);
  assert.deepEqual([await outcome(order), await seen()], ['domain_verifing no_record', [false, true]]);
  dns.set(one!.auth_path, 'TXT', [one!.auth_val]);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
});

test('a reissue of a removed product expires too', async () => {
  await using own = await startDomainApp({ RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, csr: 'optional' }) });
  const order = await own.place([newDomain()], {}, { product: 'own' });
  await own.app.stop();
  await own.app.start({ RESEAL_DNS_SERVERS: `127.0.0.1:${own.dns.port}` });
  assert.equal((await own.entries(order))[0]?.verified, false, 'nothing was proven');
  own.app.advance(31 * DAY);
  await own.app.issuance.proveDomains.proveDue();
  assert.equal((await show(own.app, order)).status, 'rejected');
});
