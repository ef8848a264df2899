// A simulated year: CRLs and OCSP responders are renewed before they expire, with or without requests; expired
// certificates leave the CRLs; and at any time the old or the new certificate is valid.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { body, certificate, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import {
  certIdOf,
  crlOf,
  derOf,
  fetchCrl,
  ocspRequest,
  ocspStatus,
  pems,
  postOcsp,
  readOcsp,
} from '../../support/status.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const DAY = 86_400_000;
const LONG = { ...OWN_PRODUCT, csr: 'optional', max_validity_days: 397, term_days: 800 };
const SHORT_GRACE = {
  ...{ ...OWN_PRODUCT, id: 'grace', csr: 'optional' },
  ...{ revokes_previous_on_reissue: true, revocation_grace_hours: 1 },
};
const { app, db } = await startWatchedApp({ RESEAL_PRODUCTS_FILE: productsFile(LONG, SHORT_GRACE) });

const runChores = async () => {
  for (const { run } of app.issuance.revocationChores) await run();
};

async function held(order: PlacedOrder, id = order.certificateId) {
  const shown = await certificate(app, order, id);
  return { der: derOf(shown.pem), serial: shown.serial_number as string, issuer: derOf(pems(shown.ica_pem)[0]!) };
}

test('for a year of days, no CRL and no responder is ever expired', async () => {
  const orders = [await newOrder(app, { product: 'own' }), await newOrder(app, { product: 'ssl-dv', key: 'rsa2048' })];
  const all = await Promise.all(orders.map((order) => held(order)));
  const responders = new Set<string>();
  const numbers = all.map(() => 0);
  for (let day = 0; day <= 366; day += 6) {
    // Only the background chores run: renewal must not depend on requests.
    await runChores();
    const heads = db.prepare('select next_update, this_update from crl').all() as Record<string, number>[];
    for (const head of heads) assert.ok(head.next_update! > app.now() && app.now() - head.this_update! < DAY);
    assert.ok(heads.length > 0 || day === 0);
    const ends = db.prepare('select max(not_after) as at from ocsp_responder group by issuer_id').all();
    for (const { at } of ends)
      assert.ok(Number(at) - app.now() >= 10 * DAY, `a responder is about to expire on day ${day}`);
    for (const [index, { der, serial, issuer }] of all.entries()) {
      const list = await crlOf(app, der, issuer);
      assert.ok(list.thisUpdate <= app.now() && app.now() < list.nextUpdate);
      assert.ok(list.number > numbers[index]!, 'a CRL of six days ago was renewed');
      numbers[index] = list.number;
      const certId = certIdOf(serial, issuer);
      const answer = readOcsp((await postOcsp(app, ocspRequest([certId]))).der, issuer, [certId]);
      const { validFromDate, validToDate } = answer.responder;
      assert.ok(validFromDate.getTime() <= app.now() && app.now() < validToDate.getTime());
      assert.ok(answer.thisUpdate <= app.now() && app.now() < answer.nextUpdate);
      assert.ok(answer.nextUpdate <= validToDate.getTime(), 'no response outlives its responder');
      assert.equal(answer.statuses[0]?.status, 'good');
      responders.add(answer.responderSerial);
    }
    app.advance(6 * DAY);
  }
  // Valid for 30 days, renewed when 10 are left: about 18 a year for each of the two issuers.
  assert.ok(responders.size >= 2 * 15 && responders.size <= 2 * 25, `${responders.size} responders`);
});

test('a clock that jumps a year forward finds everything renewed at the first request', async () => {
  const order = await newOrder(app, { product: 'own' });
  const { der, serial, issuer } = await held(order);
  await crlOf(app, der, issuer);
  assert.equal((await ocspStatus(app, serial, issuer)).status, 'good');
  app.advance(365 * DAY);
  const list = await crlOf(app, der, issuer);
  assert.ok(list.thisUpdate <= app.now() && app.now() < list.nextUpdate);
  const certId = certIdOf(serial, issuer);
  const { responder } = readOcsp((await postOcsp(app, ocspRequest([certId]))).der, issuer, [certId]);
  assert.ok(responder.validToDate.getTime() > app.now());
  app.advance(-365 * DAY);
  const back = readOcsp((await postOcsp(app, ocspRequest([certId]))).der, issuer, [certId]);
  assert.ok(back.responder.validFromDate.getTime() <= app.now(), 'and back again');
});

test('an expired certificate stays on one more CRL, then leaves', async () => {
  const order = await newOrder(app, { product: 'own' });
  const short = await reissue(app, order, body({ csr: undefined, validity_days: 10 }));
  const id = short.body.data.certificate.id;
  const { der, serial, issuer } = await held(order, id);
  await app.call('POST', `/openapi/v3/certs/${id}/revoke`, { key: order.key });
  const end = new X509Certificate(der).validToDate.getTime();
  const isListed = async () => (await crlOf(app, der, issuer)).revoked.has(serial);
  for (let day = 1; app.now() < end; day += 1) {
    assert.equal(await isListed(), true, `day ${day}`);
    app.advance(DAY);
  }
  assert.equal(await isListed(), true, 'on the first CRL after its expiry');
  app.advance(DAY);
  assert.equal(await isListed(), false);
  assert.equal((await ocspStatus(app, serial, issuer)).status, 'revoked', 'OCSP still reports it');
});

/** The status a verifier sees now: dates, CRL and OCSP. */
async function isValid({ der, serial, issuer }: Awaited<ReturnType<typeof held>>): Promise<boolean> {
  const isBegun = new X509Certificate(der).validFromDate.getTime() <= app.now();
  const isListed = (await crlOf(app, der, issuer)).revoked.has(serial);
  return isBegun && !isListed && (await ocspStatus(app, serial, issuer)).status === 'good';
}

test('at any time around a revocation, one of the two certificates is valid', async () => {
  for (const product of ['ssl-dv-replace', 'grace']) {
    const order = await newOrder(app, { product });
    const old = await held(order);
    app.advance(1_500);
    assert.ok(await isValid(old));
    const answer = await reissue(app, order, body({}, { i_know_will_revoke_last_cert: true }));
    assert.equal(answer.status, 200, answer.text);
    const current = await held(order, answer.body.data.certificate.id);
    for (let minutes = 0; minutes <= 70; minutes += 10) {
      assert.ok((await isValid(old)) || (await isValid(current)), `${product}, ${minutes} minutes after`);
      app.advance(600_000);
      await runChores();
    }
    assert.deepEqual([await isValid(old), await isValid(current)], [false, true]);
    const revokedAt = (await crlOf(app, old.der, old.issuer)).revoked.get(old.serial)?.at ?? assert.fail(product);
    const from = new X509Certificate(current.der).validFromDate.getTime();
    assert.ok(from <= revokedAt, 'the new one was valid before the old one was revoked');
  }
});

test('a store restored from an older backup continues with higher CRL numbers', async () => {
  // The clock of an earlier test was ahead by a year: past that, no number is ahead of the clock in any shard.
  app.advance(366 * DAY);
  const order = await newOrder(app, { product: 'own' });
  const { der, issuer } = await held(order);
  const before = await crlOf(app, der, issuer);
  const [, issuerId = '', shard = ''] = /\/crl\/([^/]+)\/(\d+)\.crl/.exec(before.addresses[0]!) ?? [];
  const { store } = app.app;
  const kept = (await store.crls.find({ issuerId, shard: Number(shard) }))!;
  app.advance(2 * DAY);
  const seen = await crlOf(app, der, issuer);
  assert.ok(seen.number > before.number);
  // The table as it was two days ago.
  await store.crls.publish(kept, seen.number, [], app.now());
  app.advance(DAY);
  const after = await crlOf(app, der, issuer);
  assert.ok(after.number > seen.number, 'higher than any published before');
  assert.equal((await fetchCrl(app, der)).status, 200);
});
