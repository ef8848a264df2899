// CRLs and OCSP as verifiers see them: for every issuer type, over HTTP, at the URLs in the certificates.
import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { rule } from '../../support/contract.ts';
import type { KeyKind } from '../../support/csr.ts';
import { newDualOrder, newSm2Csr } from '../../support/dual.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import {
  certIdOf,
  crlOf,
  derOf,
  fetchCrl,
  type IdHash,
  ocspErrorOf,
  ocspRequest,
  ocspStatus,
  postOcsp,
  readCrl,
  readOcsp,
} from '../../support/status.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const { app } = await startWatchedApp();
const DAY = 86_400_000;
const BOTH = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };

const post = (order: PlacedOrder, id: string, json: unknown = {}) =>
  app.call('POST', `/openapi/v3/certs/${id}/revoke`, { key: order.key, json });

/** A certificate of the order, and its issuer, as a verifier has them. */
async function held(order: PlacedOrder, id = order.certificateId) {
  const shown = await certificate(app, order, id);
  const [issuer, root] = [derOf(shown.ica_pem), derOf(shown.root_pem)];
  return { shown, der: derOf(shown.pem), serial: shown.serial_number as string, issuer, root };
}

const KINDS = [
  ['p256', 'sha256'],
  ['p384', 'sha384'],
  ['rsa2048', 'sha256'],
] as const satisfies readonly (readonly [KeyKind, string])[];

rule('revocation 7', 'at once on a CRL of its issuer and revoked in the answers of OCSP', async () => {
  for (const [key, signHash] of KINDS) {
    const order = await newOrder(app, { product: 'ssl-dv-replace', key, signHash });
    const { der, serial, issuer } = await held(order);
    assert.equal((await crlOf(app, der, issuer)).revoked.has(serial), false, key);
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'good', key);
    const answer = await reissue(app, order, body({ sign_hash: signHash, csr: csrFor(key) }, BOTH));
    assert.equal(answer.status, 200, answer.text);
    const list = await crlOf(app, der, issuer);
    assert.equal(list.revoked.get(serial)?.reason, 'superseded', key);
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'revoked', key);
    const next = await held(order, answer.body.data.certificate.id);
    assert.equal((await ocspStatus(app, next.serial, next.issuer)).status, 'good', key);
    // The replacement is valid before the previous certificate is revoked.
    const { validFromDate } = new X509Certificate(next.der);
    assert.ok(validFromDate.getTime() <= list.revoked.get(serial)!.at);
  }
});

rule(
  'revocation 8',
  'published anew before its `nextUpdate`, at least every seven days, and its number only grows',
  async () => {
    const order = await newOrder(app);
    const { der, serial, issuer } = await held(order);
    let last = await crlOf(app, der, issuer);
    assert.equal(last.nextUpdate - last.thisUpdate, 7 * DAY);
    for (const days of [0.9, 0.2, 3, 6.9, 7.1, 30, 100]) {
      app.advance(days * DAY);
      const list = await crlOf(app, der, issuer);
      assert.ok(list.number >= last.number && app.now() < list.nextUpdate, `${days} days later`);
      assert.ok(app.now() - list.thisUpdate < DAY, 'a day old at most');
      last = list;
    }
    // Numbers grow within a millisecond, and when the clock goes back.
    await post(order, order.certificateId);
    const revoked = await crlOf(app, der, issuer);
    assert.ok(revoked.number > last.number && revoked.revoked.has(serial));
    app.advance(-50 * DAY);
    const back = await crlOf(app, der, issuer);
    assert.ok(back.number > revoked.number && back.thisUpdate <= app.now(), 'and thisUpdate is not in the future');
    assert.ok(back.revoked.has(serial));
    await app.stop();
    await app.start({});
    const restarted = await crlOf(app, der, issuer);
    assert.ok(restarted.number >= back.number && restarted.revoked.has(serial), 'over a restart');
    app.advance(50 * DAY);
  },
);

rule('revocation 22', '`thisUpdate` of a CRL and of an answer of OCSP is an hour before it was signed', async () => {
  const HOUR = 3_600_000;
  const order = await newOrder(app);
  const { der, serial, issuer } = await held(order);
  const head = async () => (await app.app.store.crls.heads()).find(({ number }) => number === last)!;
  let last = 0;
  const published = async () => {
    const list = await crlOf(app, der, issuer);
    assert.ok(list.number > last, 'another one');
    last = list.number;
    return list;
  };
  const inSeconds = (at: number) => Math.floor(at / 1000) * 1000;
  app.advance(30 * DAY);
  assert.equal((await published()).thisUpdate, inSeconds(app.now() - HOUR));
  const request = ocspRequest([certIdOf(serial, issuer)]);
  const asked = async () => readOcsp((await postOcsp(app, request)).der, issuer, [certIdOf(serial, issuer)]);
  const good = await asked();
  assert.deepEqual([good.thisUpdate, good.producedAt], [inSeconds(app.now() - HOUR), inSeconds(app.now())]);
  assert.equal((await ocspStatus(app, serial, issuer)).status, 'good');
  // A verifier that is 20 seconds behind sees a revocation, which was recorded and published now.
  await post(order, order.certificateId);
  const list = await published();
  assert.ok(list.revoked.has(serial) && list.thisUpdate <= app.now() - 20_000);
  const revoked = await asked();
  assert.deepEqual([revoked.statuses[0]?.status, revoked.thisUpdate], ['revoked', inSeconds(app.now() - HOUR)]);
  const { revocation } = await certificate(app, order, order.certificateId);
  assert.equal(Date.parse(revocation.crl_published_at), app.now(), 'published now, not an hour ago');

  // An earlier version has dated the CRL when it was signed, and a restart makes it due: the next one is not older.
  const { store } = app.app;
  const current = (await store.crls.find(await head()))!;
  const undated = { ...current, thisUpdate: app.now(), nextUpdate: app.now() + 7 * DAY };
  assert.ok(await store.crls.publish(undated, last, [], app.now()));
  const signedAt = app.now();
  app.advance(10 * 60_000);
  await store.crls.makeDue(app.now() - 2 * DAY);
  assert.equal((await published()).thisUpdate, inSeconds(signedAt));
  app.advance(DAY);
  assert.equal((await published()).thisUpdate, inSeconds(app.now() - HOUR));
});

rule('revocation 9', 'OCSP answers over GET and POST, repeats a nonce that was sent, and never says good', async () => {
  for (const [key, signHash] of KINDS) {
    const order = await newOrder(app, { key, signHash });
    const { serial, issuer } = await held(order);
    const certId = certIdOf(serial, issuer);
    for (const nonce of [undefined, randomBytes(1), randomBytes(32), randomBytes(128)]) {
      const request = ocspRequest([certId], nonce);
      const base64 = Buffer.from(request).toString('base64');
      for (const path of [base64, encodeURIComponent(base64)]) {
        const response = await fetch(`${app.url}/ocsp/${path}`);
        const answer = readOcsp(Buffer.from(await response.arrayBuffer()), issuer, [certId]);
        assert.deepEqual([answer.statuses[0]?.status, answer.nonce && Buffer.from(answer.nonce)], ['good', nonce]);
      }
      const posted = readOcsp((await postOcsp(app, request)).der, issuer, [certId]);
      assert.deepEqual([posted.statuses[0]?.status, posted.nonce && Buffer.from(posted.nonce)], ['good', nonce]);
    }
    // The next serial number is unknown, and so is a serial number of another issuer.
    const next = (BigInt(`0x${serial}`) + 1n).toString(16);
    for (const unknown of [next, '01', '7f'.repeat(20), `00${serial}`.slice(0, 32), '41'.repeat(30)]) {
      assert.equal((await ocspStatus(app, unknown, issuer)).status, 'unknown', unknown);
    }
    const other = await held(await newOrder(app, key === 'p256' ? { key: 'rsa2048' } : {}));
    assert.equal((await ocspStatus(app, other.serial, issuer)).status, 'unknown');
    for (const hash of ['sha256', 'sm3'] satisfies IdHash[]) {
      assert.equal((await ocspStatus(app, serial, issuer, hash)).status, 'good', hash);
    }
    // Several requests, one response each; the responder's own serial number is good.
    const { responderSerial, responder } = readOcsp((await postOcsp(app, ocspRequest([certId]))).der, issuer, [certId]);
    assert.equal((await ocspStatus(app, responderSerial, issuer)).status, 'good');
    assert.deepEqual(responder.keyUsage, ['1.3.6.1.5.5.7.3.9']);
    const asked = [certId, certIdOf(next, issuer)];
    const both = readOcsp((await postOcsp(app, ocspRequest(asked))).der, issuer, asked);
    assert.deepEqual(
      both.statuses.map(({ status }) => status),
      ['good', 'unknown'],
    );
  }
});

test('OCSP refuses invalid requests with OCSP error statuses', async () => {
  const { serial, issuer, root } = await held(await newOrder(app));
  const other = await held(await newOrder(app, { key: 'rsa2048' }));
  const certId = certIdOf(serial, issuer);
  const [malformed, unauthorized] = [1, 6];
  for (const [request, expected] of [
    [new Uint8Array(), malformed],
    [Buffer.from('GET / HTTP/1.1'), malformed],
    [ocspRequest([]), malformed],
    [ocspRequest(Array(17).fill(certId)), malformed],
    [ocspRequest([certId], new Uint8Array()), malformed],
    [ocspRequest([certId], new Uint8Array(129)), malformed],
    [Buffer.concat([ocspRequest([certId]), Buffer.alloc(1)]), malformed],
    [Buffer.alloc(5_000, 0x30), malformed],
    [Buffer.alloc(9_000), malformed],
    [ocspRequest([certIdOf(serial, root)]), unauthorized],
    [ocspRequest([certId, certIdOf(other.serial, other.issuer)]), unauthorized],
  ] as const) {
    const { status, headers, der } = await postOcsp(app, request);
    assert.deepEqual([status, ocspErrorOf(der)], [200, expected]);
    assert.equal(headers.get('cache-control'), 'no-store');
  }
  for (const path of ['%', '%ff', 'AAAA', '!!!!', '////', 'a'.repeat(10_000)]) {
    const response = await fetch(`${app.url}/ocsp/${path}`);
    assert.ok([200, 400].includes(response.status), `${path}: ${response.status}`);
  }
});

test('responses have Cache-Control and support conditional requests', async () => {
  const order = await newOrder(app);
  const { der, issuer, serial } = await held(order);
  const first = await fetchCrl(app, der);
  assert.equal(first.headers.get('cache-control'), 'public, max-age=300, must-revalidate');
  const etag = first.headers.get('etag')!;
  assert.equal(etag, `"${readCrl(first.der, issuer).number}"`);
  const again = await fetchCrl(app, der, { 'if-none-match': etag });
  assert.deepEqual([again.status, again.der.length], [304, 0]);
  const request = Buffer.from(ocspRequest([certIdOf(serial, issuer)])).toString('base64');
  const get = async () => {
    const response = await fetch(`${app.url}/ocsp/${encodeURIComponent(request)}`);
    return { headers: response.headers, der: Buffer.from(await response.arrayBuffer()) };
  };
  const asked = await get();
  assert.match(asked.headers.get('cache-control') ?? '', /^public, max-age=300/);
  assert.deepEqual((await get()).der, asked.der, 'the signed response is cached');
  await post(order, order.certificateId);
  assert.equal((await fetchCrl(app, der, { 'if-none-match': etag })).status, 200);
  const revoked = readOcsp((await get()).der, issuer, [certIdOf(serial, issuer)]);
  assert.equal(revoked.statuses[0]?.status, 'revoked', 'the cached response is not served after a revocation');
  for (const path of ['/crl/nobody/0.crl', '/crl/x/00.crl', '/crl/x/0', `${new URL('http://x/crl/').pathname}`]) {
    assert.equal((await fetch(app.url + path)).status, 404, path);
  }
});

rule(
  'revocation 15',
  'Both halves of a dual certificate are revoked together, on CRLs signed with SM2 and SM3',
  async () => {
    const order = await newDualOrder(app, await newSm2Csr());
    const { shown, der, serial, issuer } = await held(order);
    const half = derOf(shown.encryption_pem);
    const both = [
      [der, serial],
      [half, shown.encryption_serial_number],
    ] as const;
    for (const [one, number] of both) {
      const { revoked, number: crlNumber, addresses } = await crlOf(app, one, issuer);
      assert.equal(revoked.has(number), false);
      // GmSSL refuses the critical extension of shards, and reads numbers of 31 bits.
      assert.deepEqual([addresses, crlNumber > 0 && crlNumber < 2 ** 31], [[], true]);
      assert.equal((await ocspStatus(app, number, issuer, 'sm3')).status, 'good');
    }
    const { validFromDate, validToDate } = new X509Certificate(shown.root_pem);
    assert.ok(validToDate.getTime() - validFromDate.getTime() < 3_653 * DAY, 'GmSSL accepts ten years');
    await post(order, order.certificateId, { reason: 'affiliation_changed' });
    for (const [one, number] of both) {
      assert.equal((await crlOf(app, one, issuer)).revoked.get(number)?.reason, 'affiliation_changed');
      assert.equal((await ocspStatus(app, number, issuer)).status, 'revoked');
    }
  },
);

rule(
  'revocation 13',
  'when it was recorded, in which CRL number it first appeared and when that was published',
  async () => {
    const order = await newOrder(app);
    const { der, issuer, serial } = await held(order);
    const before = await crlOf(app, der, issuer);
    app.advance(1500);
    await post(order, order.certificateId);
    const { revocation } = (await held(order)).shown;
    const at = new Date(app.now()).toISOString();
    assert.deepEqual([revocation.revoked_at, revocation.crl_published_at, revocation.ocsp_since], [at, at, at]);
    const list = await crlOf(app, der, issuer);
    assert.equal(revocation.crl_number, list.number);
    assert.ok(!before.revoked.has(serial) && list.revoked.has(serial) && before.number < list.number);
    // Later CRLs list it too; the first one is reported.
    app.advance(2 * DAY);
    assert.ok((await crlOf(app, der, issuer)).number > list.number);
    assert.deepEqual((await held(order)).shown.revocation, revocation);
  },
);
