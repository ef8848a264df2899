// Attacks on published status: clock jumps, CRLs and OCSP responses built during changes, caches, and PKI addresses that
// are used again. A revoked certificate stays revoked, and is on every CRL exactly once.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { checkRevocation } from '../../../src/adapters/doctor/revocation.ts';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { engineAt } from '../../../src/adapters/store/store.ts';
import type { RevocationReason } from '../../../src/domain/certificate/certificate.ts';
import { shardOf } from '../../../src/domain/revocation/revocation.ts';
import { revokeCertificate } from '../../../src/usecases/revocation/revoke-certificate.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { body, certificate, newOrder, type PlacedOrder } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import {
  certIdOf,
  crlAddressIn,
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
const { app, requireIssued } = await startWatchedApp({ RESEAL_PRODUCTS_FILE: productsFile(LONG) });
const { store, newId } = app.app;

interface Held {
  readonly id: string;
  readonly der: Buffer;
  readonly serial: string;
  readonly issuer: Buffer;
}

const post = (order: PlacedOrder, id: string, json: unknown = {}, to = app) =>
  to.call('POST', `/openapi/v3/certs/${id}/revoke`, { key: order.key, json });
async function held(order: PlacedOrder, id = order.certificateId, at: TestApp = app): Promise<Held> {
  const shown = await certificate(at, order, id);
  return { id, der: derOf(shown.pem), serial: shown.serial_number, issuer: derOf(pems(shown.ica_pem)[0]!) };
}
const listOf = ({ der, issuer }: Held, at: TestApp = app) => crlOf(at, der, issuer);
const runChores = async (of: TestApp = app) => {
  for (const { run } of of.issuance.revocationChores) await run();
};

/** Simulates an instance that crashes before it publishes. */
const recordOnly = ({ key }: PlacedOrder, id: string, reason: RevocationReason) =>
  revokeCertificate({ store, now: app.now, newId, publishCrls: async () => {} })(
    { accountId: key.accountId, actor: key.keyId, requestId: null },
    id,
    { reason },
  );

/** Each time this CRL is built, runs one of these after the changes were read. */
function whileMade({ mock }: TestContext, { serial }: Held, ...moments: (() => Promise<void>)[]): void {
  const { unlisted } = store.revokedSerials;
  mock.method(store.revokedSerials, 'unlisted', async (...args: Parameters<typeof unlisted>) => {
    const news = await unlisted(...args);
    if (args[0].shard === shardOf(serial)) await moments.shift()?.();
    return news;
  });
}

test('a clock that jumps ahead and back removes no unexpired entry from a CRL', async () => {
  const order = await newOrder(app, { product: 'own' });
  const revoked = await held(order);
  await post(order, revoked.id);
  const before = await listOf(revoked);
  assert.ok(before.revoked.has(revoked.serial));
  // The first CRL after its expiry still lists it, the next one does not.
  for (const days of [400, 2]) {
    app.advance(days * DAY);
    await runChores();
  }
  const ahead = await listOf(revoked);
  assert.equal(ahead.revoked.has(revoked.serial), false, 'by that clock it had expired');
  app.advance(-402 * DAY);
  await runChores();
  const back = await listOf(revoked);
  assert.deepEqual(back.revoked.get(revoked.serial), before.revoked.get(revoked.serial));
  assert.ok(back.number > ahead.number && back.thisUpdate <= app.now(), 'a new CRL with the correct time');
  assert.equal((await ocspStatus(app, revoked.serial, revoked.issuer)).status, 'revoked');
  app.advance(DAY);
  assert.ok((await listOf(revoked)).revoked.has(revoked.serial), 'and on the next one');
});

test('a reason that changes while the first CRL is built: listed once, with that CRL recorded as its first', async (context) => {
  const order = await newOrder(app);
  const one = await held(order, (await requireIssued(order, body())).id);
  let first: Awaited<ReturnType<typeof listOf>> | undefined;
  whileMade(
    context,
    one,
    () => recordOnly(order, one.id, 'key_compromise'),
    async () => {
      first = await listOf(one);
    },
  );
  await post(order, one.id, { reason: 'superseded' });
  // crlOf fails on a duplicate serial number.
  const last = await listOf(one);
  assert.equal(first?.revoked.get(one.serial)?.reason, 'superseded');
  assert.equal(last.revoked.get(one.serial)?.reason, 'key_compromise');
  assert.ok(last.number > first.number);
  const { revocation } = await certificate(app, order, one.id);
  assert.equal(revocation.crl_number, first.number, 'the first CRL that listed it');
});

test('a reason that changes while a CRL is rebuilt: on every served CRL', async (context) => {
  const order = await newOrder(app);
  const one = await held(order, (await requireIssued(order, body())).id);
  await post(order, one.id, { reason: 'superseded' });
  const before = await listOf(one);
  app.advance(DAY);
  const between: (string | undefined)[] = [];
  whileMade(
    context,
    one,
    () => recordOnly(order, one.id, 'key_compromise'),
    async () => {
      const list = await listOf(one);
      assert.ok(list.number > before.number, 'one that was built meanwhile');
      between.push(list.revoked.get(one.serial)?.reason);
    },
  );
  await runChores();
  assert.equal((await listOf(one)).revoked.get(one.serial)?.reason, 'key_compromise');
  assert.deepEqual(between, ['key_compromise']);
  const { revocation } = await certificate(app, order, one.id);
  assert.equal(revocation.crl_number, before.number);
});

test('an OCSP response is never good with a thisUpdate after the revocation', async ({ mock }) => {
  const order = await newOrder(app);
  const one = await held(order);
  const certId = certIdOf(one.serial, one.issuer);
  const { statusOf } = store.revokedSerials;
  const looking = mock.method(store.revokedSerials, 'statusOf', async (...args: Parameters<typeof statusOf>) => {
    const status = await statusOf(...args);
    looking.mock.restore();
    // Good when it was read; revoked while the response is signed.
    app.advance(5_000);
    await post(order, one.id);
    app.advance(5_000);
    return status;
  });
  const answer = readOcsp((await postOcsp(app, ocspRequest([certId]))).der, one.issuer, [certId]);
  assert.equal(answer.statuses[0]?.status, 'good');
  const { status, at } = await ocspStatus(app, one.serial, one.issuer);
  assert.equal(status, 'revoked', 'the cached response is not served again');
  assert.ok(answer.thisUpdate < at!, 'the response was correct at its thisUpdate');
});

test('a repeated revocation also waits until a CRL lists the certificate', async () => {
  const order = await newOrder(app);
  const one = await held(order);
  await recordOnly(order, one.id, 'superseded');
  const { status, body: answer } = await post(order, one.id);
  assert.deepEqual([status, answer.data.certificate.revocation.reason], [200, 'superseded']);
  const list = await listOf(one);
  assert.ok(list.revoked.has(one.serial));
  assert.equal(answer.data.certificate.revocation.crl_number, list.number);
});

test('conditional requests may have weak and several ETags, and responses have no Expires', async () => {
  const order = await newOrder(app);
  const { der, serial, issuer } = await held(order);
  const etag = (await fetchCrl(app, der)).headers.get('etag')!;
  for (const [known, expected] of [
    [`W/${etag}`, 304],
    [`"1", ${etag}`, 304],
    [`"1",W/${etag} , "2"`, 304],
    ['*', 304],
    ['"1"', 200],
    ['W/"1", "2"', 200],
    [etag.replaceAll('"', ''), 200],
  ] as const) {
    assert.equal((await fetchCrl(app, der, { 'if-none-match': known })).status, expected, known);
  }
  await post(order, order.certificateId);
  assert.equal((await fetchCrl(app, der, { 'if-none-match': `W/${etag}` })).status, 200, 'it has changed');
  const request = encodeURIComponent(Buffer.from(ocspRequest([certIdOf(serial, issuer)])).toString('base64'));
  const { headers } = await fetch(`${app.url}/ocsp/${request}`);
  assert.deepEqual(
    [headers.get('expires'), headers.get('last-modified')],
    [null, new Date(app.now() - 3_600_000).toUTCString()],
    'an old cache would keep it until nextUpdate',
  );
});

test('a reused PKI address stays in the CRLs, over restarts', async () => {
  const settings = { RESEAL_PKI_URL: 'http://one.example' };
  await using moved = await startApp(settings);
  const order = await newOrder(moved);
  const one = await held(order, order.certificateId, moved);
  assert.match(crlAddressIn(one.der), /^http:\/\/one\.example\//);
  for (let number = 1; number <= 16; number += 1) {
    moved.advance(1_000);
    await moved.app.store.pkiAddresses.remember(`http://other-${number}.example`, moved.now());
  }
  moved.advance(1_000);
  const restart = async () => {
    await moved.stop();
    await moved.start(settings);
    await runChores(moved);
    // crlOf fails on a CRL that does not name the URL in the certificate.
    return await listOf(one, moved);
  };
  const list = await restart();
  assert.equal(list.addresses.length, 16);
  moved.advance(1_000);
  // Published anew at every start (ADR 0035), with the same addresses.
  assert.deepEqual((await restart()).addresses, list.addresses);
});

test('after a clock was ahead, the previous responder answers again, over any number of restarts', async () => {
  await using own = await startApp();
  const order = await newOrder(own);
  const { serial, issuer } = await held(order, order.certificateId, own);
  const certId = certIdOf(serial, issuer);
  const responder = async () => {
    const answer = readOcsp((await postOcsp(own, ocspRequest([certId]))).der, issuer, [certId]);
    assert.ok(answer.responder.validFromDate.getTime() <= own.now());
    assert.ok(own.now() < answer.responder.validToDate.getTime());
    return answer.responderSerial;
  };
  const before = await responder();
  own.advance(400 * DAY);
  assert.notEqual(await responder(), before);
  own.advance(-400 * DAY);
  assert.equal(await responder(), before);
  for (let starts = 0; starts < 2; starts += 1) {
    await own.stop();
    await own.start({});
    await runChores(own);
    assert.equal(await responder(), before);
  }
  using db = new DatabaseSync(join(own.folder, 'reseal.db'), { readOnly: true });
  assert.deepEqual({ ...db.prepare('select count(*) as made from ocsp_responder').get() }, { made: 2 });
});

test('the doctor ignores CRLs of an expired issuer', async () => {
  await using own = await startApp();
  const db = openEngine(engineAt({ kind: 'sqlite', file: join(own.folder, 'reseal.db') }), () => {});
  try {
    const order = await newOrder(own);
    const { issuer } = await held(order, order.certificateId, own);
    await post(order, order.certificateId, {}, own);
    const { validToDate } = new X509Certificate(issuer);
    const found = async (at: number) => (await checkRevocation(db, at)).state;
    assert.deepEqual([await found(own.now()), await found(validToDate.getTime())], ['ok', 'problem']);
    own.advance(validToDate.getTime() + DAY - own.now());
    await runChores(own);
    assert.equal(await found(own.now()), 'ok');
  } finally {
    await db.destroy();
  }
});
