// Validity of a reissued certificate: the two request fields, their formats, and the limits that shorten it.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { NOON, startApp, type TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const { app, requireBad, requireAnswered } = await startWatchedApp();

const [SECOND, HOUR, DAY] = [1000, 3_600_000, 86_400_000];
/** notBefore of what is issued at noon. */
const START = NOON - HOUR;
const [DAYS, DATE] = ['certificate.validity_days', 'certificate.custom_expiration_date'];
const CONSENT = { i_know_will_revoke_last_cert: true };
const iso = (at: number) => new Date(at).toISOString();

/** notBefore and notAfter of an issued certificate. */
async function validity(order: PlacedOrder, json: unknown, to = app): Promise<[from: string, until: string]> {
  const { pem } = await certificate(to, order, await requireAnswered(order, json, {}, to));
  const { validFromDate, validToDate } = new X509Certificate(pem);
  return [validFromDate.toISOString(), validToDate.toISOString()];
}

rule('reissue 29', '`validity_days` below 1 is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  for (const days of [0, -1, -365, -(2 ** 53), -1e300]) {
    await requireBad(order, body({ validity_days: days }), DAYS);
  }
  assert.deepEqual(await validity(order, body({ validity_days: 1 })), [iso(START), iso(START + DAY - SECOND)]);
});

rule('reissue 30', 'is an RFC 3339 date-time, or `YYYY-MM-DD` for the end of that day in UTC', async () => {
  const order = await newOrder(app);
  for (const [text, end] of [
    ['2026-11-15', '2026-11-15T23:59:59.000Z'],
    ['2027-02-28', '2027-02-28T23:59:59.000Z'],
    ['2027-01-31T12:00:00Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31t12:00:00z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31T12:00:00.999Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31T12:00:00+08:00', '2027-01-31T04:00:00.000Z'],
    ['2027-01-31T12:00:00-05:30', '2027-01-31T17:30:00.000Z'],
    ['2026-11-15T20:00:01+08:00', '2026-11-15T12:00:01.000Z'],
  ]) {
    assert.deepEqual(await validity(order, body({ custom_expiration_date: text })), [iso(START), end], text);
  }
});

rule('reissue 31', 'of another form, or not in the future, is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  const forms = [
    ...[' ', 'tomorrow', '01/31/2027', '31.01.2027', '20270131', '2027-1-31', '2027-01', '2027', '1800000000'],
    ...[
      '2027-02-29',
      '2027-02-30',
      '2027-13-01',
      '2027-00-10',
      '2027-01-32',
      '2027-01-31T12:00:00',
      '2027-01-31 12:00:00Z',
    ],
    ...[
      '2027-01-31T24:00:00Z',
      '2027-01-31T12:60:00Z',
      '2027-01-31T12:00:60Z',
      '2027-01-31T12:00Z',
      '2027-01-31T12:00:00+24:00',
    ],
    ...[
      '+002027-01-31',
      '2027-01-31Z',
      ' 2027-01-31',
      '2027-01-31\n',
      '２０２７-01-31',
      '2027-01-31T12:00:00+0800',
      '9'.repeat(10_000),
    ],
  ];
  const past = [
    '2026-11-14',
    '2025-01-01',
    '1970-01-01',
    '2026-11-15T12:00:00Z',
    '2026-11-15T11:59:59Z',
    '2026-11-15T20:00:00+08:00',
  ];
  for (const text of [...forms, ...past]) {
    await requireBad(order, body({ custom_expiration_date: text }), DATE);
  }
});

rule(
  'reissue 32',
  'the maximum of the product and the end of the term of the order; a longer wish is shortened',
  async () => {
    const order = await newOrder(app);
    const max = iso(START + 199 * DAY - SECOND);
    for (const [request, end] of [
      [{}, max],
      [{ validity_days: 199 }, max],
      [{ validity_days: 200 }, max],
      [{ validity_days: 365 }, max],
      [{ validity_days: 1_000_000 }, max],
      [{ custom_expiration_date: '9999-12-31' }, max],
      [{ validity_days: 198 }, iso(START + 198 * DAY - SECOND)],
      [{ validity_days: 30, custom_expiration_date: '2026-12-01' }, '2026-12-01T23:59:59.000Z'],
      [{ validity_days: 2, custom_expiration_date: '2026-12-01' }, iso(START + 2 * DAY - SECOND)],
      [{ validity_days: 9999, custom_expiration_date: '2040-01-01' }, max],
    ] as const) {
      assert.equal((await validity(order, body(request)))[1], end, JSON.stringify(request));
    }
    const inside = await newOrder(app, { product: 'tls-private' });
    assert.equal((await validity(inside, body({ validity_days: 5000 })))[1], iso(START + 397 * DAY - SECOND));

    // Near the end of its term an order yields short certificates, and none afterwards.
    await using later = await startApp();
    const old = await newOrder(later);
    const end = Date.parse((await show(later, old)).term_ends_at);
    assert.equal(end, NOON + 365 * DAY);
    const prove = () => later.app.store.proofs.record(old.key.accountId, 'www.example.com', 'dns', later.now());
    later.advance(300 * DAY);
    await prove();
    assert.equal((await validity(old, body({ validity_days: 199 }), later))[1], iso(end - SECOND));
    assert.equal(
      (await validity(old, body({ validity_days: 5 }), later))[1],
      iso(later.now() - HOUR + 5 * DAY - SECOND),
    );
    later.advance(65 * DAY - 2 * SECOND);
    await prove();
    assert.equal((await validity(old, body(), later))[1], iso(end - SECOND));
    later.advance(2 * SECOND);
    const over = await reissue(later, old, body());
    assert.deepEqual([over.status, over.body.code], [409, 'order_state_conflict'], over.text);
  },
);

rule('reissue 32', 'a longer wish is shortened, not refused', async () => {
  for (const days of [1e9, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e18, 1e20, 1e300]) {
    const order = await newOrder(app);
    const answer = await reissue(app, order, body({ validity_days: days }));
    assert.equal(answer.status, 200, `${days} ${answer.text}`);
    assert.equal(
      (await app.call('GET', `/openapi/v3/orders/${order.id}`, { key: order.key })).status,
      200,
      `${days}: GET`,
    );
    const { validToDate } = new X509Certificate((await certificate(app, order, answer.body.data.certificate.id)).pem);
    assert.equal(validToDate.getTime(), START + 199 * DAY - 1000);
    assert.equal((await reissue(app, order, body())).status, 200, `${days}: the next reissue`);
  }
});

rule('reissue 50', '`validity_days` counts from there, and `custom_expiration_date` stays its exact end', async () => {
  await using own = await startApp();
  const order = await newOrder(own);
  const validityNow = (wanted: Record<string, unknown>) => validity(order, body(wanted), own);
  const issuer = new X509Certificate((await certificate(own, order, order.certificateId)).ica_pem);
  // The clock of the service is 10 minutes after the issuers were made, and an hour later.
  for (const minutes of [10, 60, 1]) {
    own.advance(minutes * 60_000 - (own.now() % SECOND));
    const start = Math.max(own.now() - HOUR, issuer.validFromDate.getTime());
    assert.deepEqual(await validityNow({ validity_days: 3 }), [iso(start), iso(start + 3 * DAY - SECOND)]);
    const end = iso(own.now() + SECOND);
    assert.deepEqual(await validityNow({ custom_expiration_date: end }), [iso(start), end]);
  }
});

const PUBLIC = [...app.issuance.products.values()].filter(({ kind, trust }) => kind === 'ssl' && trust === 'public');

/** How long what is issued now is valid, of an order whose names are proven now. Both ends are inclusive. */
async function daysOf(to: TestApp, product: string, request: Record<string, unknown>): Promise<number> {
  const order = await newOrder(to, { product });
  const [from, until] = await validity(order, body(request, CONSENT), to);
  assert.equal(Date.parse(from), to.now() - HOUR);
  return (Date.parse(until) + SECOND - Date.parse(from)) / DAY;
}

rule('reissue 49', 'for 99 if it is issued from 2027-03-15 on, and for 46 from 2029-03-15 on', async () => {
  const strict = { ...OWN_PRODUCT, id: 'strict', trust: 'public', csr: 'required', max_validity_days: 60 };
  await using dated = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(strict) });
  assert.equal(PUBLIC.length, 4);
  for (const [moment, days, stricter] of [
    ['2026-11-15T12:00:00Z', 199, 60],
    ['2027-03-14T22:59:59Z', 199, 60],
    // An hour early: clocks differ, and a signature takes its time.
    ['2027-03-14T23:00:00Z', 99, 60],
    ['2027-03-20T12:00:00Z', 99, 60],
    ['2029-03-14T22:59:59Z', 99, 60],
    ['2029-03-14T23:00:00Z', 46, 46],
    ['2029-03-20T12:00:00Z', 46, 46],
  ] as const) {
    dated.advance(Date.parse(moment) - dated.now());
    const offered = (await dated.call('GET', '/openapi/v3/products', { key: await dated.newKey() })).body.data.products;
    const daysIn = (id: string) => offered.find((one: { id: string }) => one.id === id).max_validity_days;
    assert.deepEqual(['ssl-dv', 'strict', 'tls-private'].map(daysIn), [days, stricter, 397], moment);
    for (const { id } of PUBLIC) {
      for (const request of [{}, { validity_days: 200 }, { custom_expiration_date: '2030-12-31' }]) {
        assert.equal(await daysOf(dated, id, request), days, `${id} at ${moment}`);
      }
    }
    assert.equal(await daysOf(dated, 'strict', {}), stricter, `a stricter product at ${moment}`);
    assert.equal(await daysOf(dated, 'tls-private', {}), 397, `private trust at ${moment}`);
  }
});
