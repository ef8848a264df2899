// What a reissue leads to: its validity, a certificate at once or later, one answer for one key, a plan, or nothing.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { type Answer, NOON, startApp, type TestApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());

const [SECOND, DAY] = [1000, 86_400_000];
const HAN = /\p{Script=Han}/u;
const [DAYS, DATE] = ['certificate.validity_days', 'certificate.custom_expiration_date'];
const [WWW, APEX, NEW] = ['www.example.com', 'example.com', 'new.example.com'];
const CONSENTS = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };
const DRY = '?dry_run=true';
const TABLES = [
  'certificate_order',
  'certificate',
  'revocation',
  'outbox',
  'idempotency_key',
  'audit',
  'domain_authorization',
];
const rows = () => TABLES.map((table) => db.prepare(`select * from ${table} order by 1, 2, 3`).all());
const iso = (at: number) => new Date(at).toISOString();

async function requireRefused(
  order: PlacedOrder,
  json: unknown,
  [status, code, field]: [number, string, (string | undefined)?],
  query = '',
) {
  const before = rows();
  const english = await reissue(app, order, json, query);
  const chinese = await reissue(app, order, json, query, { 'accept-language': 'zh-CN' });
  for (const { status: found, body: answer, text } of [english, chinese]) {
    assert.deepEqual([found, answer.code, answer.field], [status, code, field], text);
  }
  assert.match(chinese.body.message, HAN);
  assert.doesNotMatch(english.body.message, HAN);
  assert.deepEqual(rows(), before, 'a refusal writes nothing');
  return english.body;
}

async function requireAnswered(order: PlacedOrder, json: unknown, headers = {}, to: TestApp = app): Promise<string> {
  const answer = await reissue(to, order, json, '', headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.certificate.id;
}

/** Of an issued certificate, as it is written in it. */
async function validity(order: PlacedOrder, json: unknown, to: TestApp = app): Promise<[from: string, until: string]> {
  const { pem } = await certificate(to, order, await requireAnswered(order, json, {}, to));
  const { validFromDate, validToDate } = new X509Certificate(pem);
  return [validFromDate.toISOString(), validToDate.toISOString()];
}

const certificatesOf = ({ key, id }: PlacedOrder) =>
  app.app.store.certificates.listOf(key.accountId, id, { limit: 500 });

rule('reissue 29', '`validity_days` below 1 is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  for (const days of [0, -1, -365, -(2 ** 53), -1e300]) {
    await requireRefused(order, body({ validity_days: days }), [400, 'invalid_parameters', DAYS]);
  }
  assert.deepEqual(await validity(order, body({ validity_days: 1 })), [iso(NOON), iso(NOON + DAY - SECOND)]);
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
    assert.deepEqual(await validity(order, body({ custom_expiration_date: text })), [iso(NOON), end], text);
  }
});

rule('reissue 31', 'of another form, or not in the future, is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  const forms = [
    ...['', ' ', 'tomorrow', '01/31/2027', '31.01.2027', '20270131', '2027-1-31', '2027-01', '2027', '1800000000'],
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
    await requireRefused(order, body({ custom_expiration_date: text }), [400, 'invalid_parameters', DATE]);
  }
});

rule(
  'reissue 32',
  'the maximum of the product and the end of the term of the order; a longer wish is shortened',
  async () => {
    const order = await newOrder(app);
    const max = iso(NOON + 199 * DAY - SECOND);
    for (const [wish, end] of [
      [{}, max],
      [{ validity_days: 199 }, max],
      [{ validity_days: 200 }, max],
      [{ validity_days: 365 }, max],
      [{ validity_days: 1_000_000 }, max],
      [{ custom_expiration_date: '9999-12-31' }, max],
      [{ validity_days: 198 }, iso(NOON + 198 * DAY - SECOND)],
      [{ validity_days: 30, custom_expiration_date: '2026-12-01' }, '2026-12-01T23:59:59.000Z'],
      [{ validity_days: 2, custom_expiration_date: '2026-12-01' }, iso(NOON + 2 * DAY - SECOND)],
      [{ validity_days: 9999, custom_expiration_date: '2040-01-01' }, max],
    ] as const) {
      assert.equal((await validity(order, body(wish)))[1], end, JSON.stringify(wish));
    }
    const inside = await newOrder(app, { product: 'tls-private' });
    assert.equal((await validity(inside, body({ validity_days: 5000 })))[1], iso(NOON + 397 * DAY - SECOND));

    // Near the end of its term an order yields short certificates, and afterwards none.
    await using later = await startApp();
    const old = await newOrder(later);
    const end = Date.parse((await show(later, old)).term_ends_at);
    assert.equal(end, NOON + 365 * DAY);
    const prove = () => later.app.store.proofs.record(old.key.accountId, WWW, 'dns', later.now());
    later.advance(300 * DAY);
    await prove();
    assert.equal((await validity(old, body({ validity_days: 199 }), later))[1], iso(end - SECOND));
    assert.equal((await validity(old, body({ validity_days: 5 }), later))[1], iso(later.now() + 5 * DAY - SECOND));
    later.advance(65 * DAY - 2 * SECOND);
    await prove();
    assert.equal((await validity(old, body(), later))[1], iso(end - SECOND));
    later.advance(2 * SECOND);
    const over = await reissue(later, old, body());
    assert.deepEqual([over.status, over.body.code], [409, 'order_state_conflict'], over.text);
  },
);

rule('reissue 33', 'The maximum for public TLS is 199 days', async () => {
  const products = [...app.issuance.products.values()].filter(
    ({ kind, trust }) => kind === 'ssl' && trust === 'public',
  );
  assert.equal(products.length, 4);
  for (const { id } of products) {
    const order = await newOrder(app, { product: id });
    for (const wish of [{}, { validity_days: 200 }, { custom_expiration_date: '2028-01-01' }]) {
      const [from, until] = await validity(order, body(wish, CONSENTS));
      // Both seconds are part of it.
      assert.equal(Date.parse(until) + SECOND - Date.parse(from), 199 * DAY, id);
    }
  }
});

rule(
  'reissue 34',
  'When every name is already validated, the certificate is issued before the answer is sent',
  async () => {
    const order = await newOrder(app, { dnsNames: [APEX] });
    const id = await requireAnswered(order, body());
    const found = await certificate(app, order, id);
    assert.equal(found.status, 'issued');
    assert.equal(new X509Certificate(found.pem).subjectAltName, `DNS:${WWW}, DNS:${APEX}`);
    const { status, certificate_id, pending_certificate_id } = await show(app, order);
    assert.deepEqual([status, certificate_id, pending_certificate_id], ['issued', id, null]);
    // Proven for another order of the account is proven.
    const other = await newOrder(app, { commonName: NEW }, order.key);
    assert.equal((await certificate(app, other, other.certificateId)).status, 'issued');
    const grown = await requireAnswered(order, body({ dns_names: [APEX, NEW] }));
    assert.equal((await certificate(app, order, grown)).status, 'issued');
  },
);

rule('reissue 35', 'carries the identifier of a pending certificate, and the order becomes `reissuing`', async () => {
  for (const change of [{ dns_names: [NEW] }, { common_name: NEW }, { dns_names: ['*.example.com'] }]) {
    const order = await newOrder(app);
    const id = await requireAnswered(order, body(change));
    const found = await certificate(app, order, id);
    assert.deepEqual([found.status, found.pem, found.serial_number, found.ica_pem], ['pending', null, null, '']);
    const { status, certificate_id, pending_certificate_id } = await show(app, order);
    assert.deepEqual([status, certificate_id, pending_certificate_id], ['reissuing', order.certificateId, id]);
  }
  // A proof of another account is none.
  const [order, other] = [await newOrder(app), await newOrder(app, { commonName: NEW })];
  const id = await requireAnswered(order, body({ dns_names: [NEW] }));
  assert.equal((await certificate(app, order, id)).status, 'pending');
  assert.equal((await show(app, other)).status, 'issued');
  // Nor is one that has grown too old.
  await using later = await startApp();
  const old = await newOrder(later);
  later.advance(200 * DAY + 1);
  assert.equal((await certificate(later, old, await requireAnswered(old, body(), {}, later))).status, 'pending');
});

rule('reissue 36', 'While a reissue is pending the earlier certificate stays valid', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace', dnsNames: [APEX] });
  const before = await show(app, order);
  const earlier = await certificate(app, order, order.certificateId);
  await requireAnswered(order, body({ dns_names: [NEW] }, CONSENTS));
  const now = await show(app, order);
  assert.deepEqual(now.certificate, before.certificate);
  assert.deepEqual([now.common_name, now.dns_names], [before.common_name, before.dns_names]);
  const { history, ...unchanged } = await certificate(app, order, order.certificateId);
  assert.deepEqual({ ...unchanged, history: history.slice(0, 1) }, earlier);
  assert.deepEqual([earlier.status, earlier.replaced_by, earlier.revocation], ['issued', null, null]);
  const revocations = db.prepare('select * from revocation where account_id = ?').all(order.key.accountId);
  assert.deepEqual(revocations, [], 'although both consents were given');
});

rule('reissue 38', 'a second gets `reissue_in_progress` whose `details` name the pending certificate', async () => {
  const order = await newOrder(app);
  const id = await requireAnswered(order, body({ dns_names: [NEW] }));
  for (const json of [body(), body({ dns_names: [NEW] }), body({ dns_names: ['other.example.com'] })]) {
    const { details } = await requireRefused(order, json, [409, 'reissue_in_progress']);
    assert.deepEqual(details, { certificate_id: id });
    await requireRefused(order, json, [409, 'reissue_in_progress'], DRY);
  }
  // Those that need not wait follow each other, whoever comes first: each replaces the one before.
  const busy = await newOrder(app);
  const ids = await Promise.all(Array.from({ length: 10 }, () => requireAnswered(busy, body())));
  const all = await certificatesOf(busy);
  assert.deepEqual(
    all.map(({ version }) => version).sort((a, b) => a! - b!),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  );
  const serials = await Promise.all(ids.map(async (id) => (await certificate(app, busy, id)).serial_number));
  assert.equal(new Set(serials).size, 10);
  const { history } = await certificate(app, busy, ids[0]!);
  assert.deepEqual(history.map(({ id }: { id: string }) => id).sort(), all.map(({ id }) => id).sort());
  assert.equal(new Set(all.map(({ replacesId }) => replacesId)).size, 11, 'none was replaced twice');
  assert.ok(ids.includes((await show(app, busy)).certificate_id));
  // Of those that must wait, one wins.
  const rivals = await newOrder(app);
  const answers = await Promise.all(Array.from({ length: 5 }, () => reissue(app, rivals, body({ dns_names: [NEW] }))));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409]);
  assert.equal((await certificatesOf(rivals)).length, 2);
});

rule('errors reissue_in_progress', 'is 409: an earlier reissue of the order is still pending', async () => {
  const order = await newOrder(app);
  await requireAnswered(order, body({ common_name: NEW }));
  await requireRefused(order, body(), [409, 'reissue_in_progress']);
});

rule(
  'reissue 39',
  'with the same body and within 24 hours, gives the same answer and no second certificate',
  async () => {
    await using later = await startApp();
    const count = async ({ key, id }: PlacedOrder) =>
      (await later.app.store.certificates.listOf(key.accountId, id, { limit: 100 })).length;
    const order = await newOrder(later);
    const headers = { 'Idempotency-Key': 'once' };
    const sent = body();
    // Signatures of a CSR differ from one to the next, so the same body has the same one.
    const [a, b] = [await newOrder(later, {}, order.key), await newOrder(later)];
    const answer = async (to: PlacedOrder, key = 'k') => await reissue(later, to, sent, '', { 'Idempotency-Key': key });
    const original = await answer(a);
    assert.equal(original.status, 200);
    for (let again = 0; again < 3; again += 1) assert.equal((await answer(a)).text, original.text);
    assert.equal(await count(a), 2);
    // Another key, another order or another account is another request.
    const others = [await answer(a, 'other'), await answer(order), await answer(b)];
    const ids = [original, ...others].map(({ body: { data } }) => data.certificate.id);
    assert.equal(new Set(ids).size, 4);
    // Another key of the same account is the same account.
    const sameAccount = await later.anotherKey(order.key.accountId, 'integration_key');
    assert.equal((await answer({ ...a, key: sameAccount })).text, original.text);
    // However close together they come.
    const rush = await newOrder(later);
    const texts = (await Promise.all(Array.from({ length: 20 }, () => answer(rush)))).map(({ text }) => text);
    assert.equal(new Set(texts).size, 1);
    assert.equal(await count(rush), 2);
    // Also for one that waits: not reissue_in_progress, but the answer it got.
    const waiting = await newOrder(later);
    const json = body({ dns_names: [NEW] });
    const pending = await reissue(later, waiting, json, '', headers);
    assert.equal(pending.status, 200);
    assert.equal((await reissue(later, waiting, json, '', headers)).text, pending.text);
    assert.equal((await show(later, waiting)).pending_certificate_id, pending.body.data.certificate.id);
    // A refusal uses no key up.
    const refused = await newOrder(later);
    assert.equal((await reissue(later, refused, body({ validity_days: 0 }), '', headers)).status, 400);
    assert.equal((await reissue(later, refused, body(), '', headers)).status, 200);
    // For a day.
    later.advance(24 * 3_600_000 - 1);
    assert.equal((await answer(a)).text, original.text);
    later.advance(1);
    const next = await answer(a);
    assert.equal(next.status, 200);
    assert.notEqual(next.text, original.text);
    assert.equal((await answer(a)).text, next.text, 'and the day begins anew');
  },
);

rule('errors idempotency_key_reused', 'the `Idempotency-Key` was used before with another body', async () => {
  const order = await newOrder(app);
  const headers = { 'Idempotency-Key': 'mine' };
  const csr = csrFor();
  await requireAnswered(order, body({ csr }), headers);
  const before = rows();
  for (const json of [
    body({ csr, validity_days: 7 }),
    body({ csr }, { dcv_scope: 'fqdn' }),
    body({ csr: csrFor('p384') }),
  ]) {
    for (const language of ['en', 'zh-CN']) {
      const answer = await reissue(app, order, json, '', { ...headers, 'accept-language': language });
      assert.deepEqual([answer.status, answer.body.code], [422, 'idempotency_key_reused']);
      assert.equal(HAN.test(answer.body.message), language === 'zh-CN');
    }
  }
  assert.deepEqual(rows(), before);
  await requireAnswered(order, body({ csr }), headers);
  assert.deepEqual(rows(), before);
});

test('an Idempotency-Key is 1 to 255 printable characters', async () => {
  const order = await newOrder(app);
  const before = rows();
  for (const key of ['', 'a b', 'é', 'a\tb', 'x'.repeat(256)]) {
    const answer = await reissue(app, order, body(), '', { 'Idempotency-Key': key });
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.field],
      [400, 'invalid_parameters', 'Idempotency-Key'],
      key,
    );
  }
  assert.deepEqual(rows(), before);
  await requireAnswered(order, body(), { 'Idempotency-Key': `!~${'x'.repeat(253)}` });
});

/** One of each way to be refused, of an order with two names of a product that revokes. */
const REFUSALS: readonly (readonly [json: unknown, answer: [number, string, (string | undefined)?]])[] = [
  [{}, [400, 'invalid_parameters', 'certificate']],
  [body({ sign_hash: 'md5' }, CONSENTS), [400, 'invalid_parameters', 'certificate.sign_hash']],
  [body({ sign_hash: 'sm3' }, CONSENTS), [400, 'invalid_parameters', 'certificate.sign_hash']],
  [body({ csr: '' }, CONSENTS), [400, 'invalid_parameters', 'certificate.csr']],
  [body({ csr_from: 'sign-cloud-csc' }, CONSENTS), [400, 'invalid_parameters', 'certificate.csr_from']],
  [body({ common_name: '' }, CONSENTS), [400, 'invalid_parameters', 'certificate.common_name']],
  [body({ common_name: 'a_b.example.com' }, CONSENTS), [400, 'invalid_domain', 'certificate.common_name']],
  [body({ dns_names: Array(101).fill(WWW) }, CONSENTS), [400, 'invalid_sans', 'certificate.dns_names']],
  [body({ csr: 'x' }, CONSENTS), [400, 'invalid_csr', 'certificate.csr']],
  [body({ validity_days: 0 }, CONSENTS), [400, 'invalid_parameters', DAYS]],
  [body({ custom_expiration_date: '2020-01-01' }, CONSENTS), [400, 'invalid_parameters', DATE]],
  [body({}, { ...CONSENTS, dcv_method: 'email' }), [400, 'invalid_dcv_method', 'dcv_method']],
  [body({}, { ...CONSENTS, dcv_scope: 'zone' }), [400, 'invalid_parameters', 'dcv_scope']],
  [
    body({}, { ...CONSENTS, dcv_method: 'dns-persist', persist_until: 1 }),
    [400, 'invalid_parameters', 'persist_until'],
  ],
  [
    body({}, { ...CONSENTS, dcv_method: 'dns-persist', persist_policy: 'x' }),
    [400, 'invalid_parameters', 'persist_policy'],
  ],
];
const WITHOUT_CONSENT: typeof REFUSALS = [
  [body({ dns_names: [] }), [409, 'remove_domain_not_confirmed', 'i_know_remove_domain_will_revoke_before_cert']],
  [body(), [409, 'revoke_last_cert_not_confirmed', 'i_know_will_revoke_last_cert']],
];

rule('reissue 40', 'A refused reissue changes nothing', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace', dnsNames: [APEX] });
  const before = await show(app, order);
  for (const [json, answer] of [...REFUSALS, ...WITHOUT_CONSENT]) await requireRefused(order, json, answer);
  const headers = { 'Idempotency-Key': 'refused' };
  for (const [json, [status]] of REFUSALS) {
    const all = rows();
    assert.equal((await reissue(app, order, json, '', headers)).status, status);
    assert.deepEqual(rows(), all);
  }
  assert.deepEqual(await show(app, order), before);
  assert.equal((await certificatesOf(order)).length, 1);
  await requireAnswered(order, body({}, CONSENTS), headers);
});

rule('reissue 41', '`?dry_run=true` makes the same checks and writes nothing', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace', dnsNames: [APEX] });
  for (const [json, answer] of REFUSALS) {
    const real = await requireRefused(order, json, answer);
    const dry = await requireRefused(order, json, answer, DRY);
    assert.deepEqual({ ...dry, request_id: '' }, { ...real, request_id: '' });
  }
  const before = rows();
  for (const [json] of WITHOUT_CONSENT) assert.equal((await reissue(app, order, json, DRY)).status, 200);
  const both = (await reissue(app, order, body({ dns_names: [] }), DRY)).body.data.plan;
  assert.deepEqual(both.missing_consents, ['remove_domain_not_confirmed', 'revoke_last_cert_not_confirmed']);
  const agreed = (await reissue(app, order, body({ dns_names: [] }, CONSENTS), DRY)).body.data.plan;
  assert.deepEqual(agreed.missing_consents, []);
  assert.equal((await reissue(app, order, body({ dns_names: [NEW] }, CONSENTS), DRY)).status, 200);
  assert.equal((await reissue(app, order, body({}, CONSENTS), DRY, { 'Idempotency-Key': 'dry' })).status, 200);
  assert.deepEqual(rows(), before);
  await requireAnswered(order, body({}, CONSENTS), { 'Idempotency-Key': 'dry' });
  const missing = await app.call('POST', `/openapi/v3/orders/nothing/reissue${DRY}`, { key: order.key, json: body() });
  assert.deepEqual([missing.status, missing.body.code], [404, 'order_not_found']);
});

rule('reissue 42', 'A `dry_run` parameter with any value but `true` is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  const values = [
    '',
    '=',
    '=false',
    '=1',
    '=0',
    '=True',
    '=TRUE',
    '=yes',
    '=true%20',
    '=%20true',
    '=null',
    '=true,true',
  ];
  for (const value of [...values, '=true&dry_run=true', '=true&dry_run=false', '=false&dry_run=true']) {
    await requireRefused(order, body(), [400, 'invalid_parameters', 'dry_run'], `?dry_run${value}`);
  }
  assert.equal((await reissue(app, order, body(), '?dry_run=true')).body.data.plan.missing_consents.length, 0);
  assert.equal(
    (await reissue(app, order, body(), '?dry%5Frun=true')).body.data.certificate,
    undefined,
    'encoded, it is the same',
  );
});

rule(
  'reissue 43',
  'names added, names removed, names to be validated, certificates to be revoked with the time of it',
  async () => {
    const order = await newOrder(app, { dnsNames: [APEX] });
    const again = await requireAnswered(order, body());
    const json = body({ dns_names: [NEW], validity_days: 10 });
    const { text, body: answer }: Answer = await reissue(app, order, json, DRY);
    assert.deepEqual(Object.keys(answer.data), ['plan'], text);
    const { issuer_id, revokes, ...plan } = answer.data.plan;
    assert.deepEqual(plan, {
      names: [WWW, NEW],
      added_names: [NEW],
      removed_names: [APEX],
      needs_validation: [NEW],
      missing_consents: ['remove_domain_not_confirmed'],
      not_before: iso(NOON),
      not_after: iso(NOON + 10 * DAY - SECOND),
    });
    const revocation = { reason: 'superseded', hours_after_issuance: 0 };
    const byId = (a: { certificate_id: string }, b: { certificate_id: string }) =>
      a.certificate_id < b.certificate_id ? -1 : 1;
    assert.deepEqual(
      [...revokes].sort(byId),
      [order.certificateId, again].map((id) => ({ certificate_id: id, ...revocation })).sort(byId),
    );
    // What it says of issuer and validity is what happens.
    const wish = body({ csr: csrFor('rsa2048'), sign_hash: 'sha384', validity_days: 10 });
    const { plan: promised } = (await reissue(app, order, wish, DRY)).body.data;
    const id = await requireAnswered(order, wish);
    const made = await certificate(app, order, id);
    assert.deepEqual([made.not_before, made.not_after], [promised.not_before, promised.not_after]);
    const issuer = await app.call('GET', `/ca/${promised.issuer_id}.crt`);
    assert.equal(issuer.status, 200);
    const response = await fetch(`${app.url}/ca/${promised.issuer_id}.crt`);
    const served = new X509Certificate(Buffer.from(await response.arrayBuffer()));
    assert.ok(new X509Certificate(made.pem).checkIssued(served));
    assert.notEqual(issuer_id, promised.issuer_id, 'an RSA key has another issuer');
  },
);

rule('reissue 10', 'A field that nothing activates is checked for its type and otherwise ignored', async () => {
  const order = await newOrder(app);
  const before = await show(app, order);
  const inactive = [
    { persist_until: -5 },
    { persist_until: 1 },
    { persist_until: Number.MAX_SAFE_INTEGER },
    { persist_until: 1e300 },
    { persist_policy: 'zone' },
    { persist_policy: '' },
    { dcv_method: 'dns', persist_until: -5, persist_policy: 'zone' },
    { sign_key_pin: '' },
    { sign_key_pin: 'x', sign_key_pin_tip: 'x' },
    { i_know_remove_domain_will_revoke_before_cert: true },
    { i_know_will_revoke_last_cert: true },
  ];
  for (const top of inactive) await requireAnswered(order, body({}, top));
  await requireAnswered(order, body({ un_modify_key: true }));
  const { certificate_id, certificate: current } = before;
  assert.deepEqual({ ...(await show(app, order)), certificate_id, certificate: current }, before);
  const wrongTypes = [{ persist_until: '5' }, { persist_policy: 5 }, { sign_key_pin: 5 }, { sign_key_pin_tip: null }];
  for (const top of wrongTypes) {
    await requireRefused(order, body({}, top), [400, 'invalid_parameters', Object.keys(top)[0]]);
  }
  await requireRefused(order, body({ un_modify_key: 'no' }), [400, 'invalid_parameters', 'certificate.un_modify_key']);
});
