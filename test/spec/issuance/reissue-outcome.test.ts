// Results of a reissue: a certificate at once, or a pending one while the previous one stays current, and one response
// per Idempotency-Key.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { DRY, HAN, requireError, startWatchedApp } from '../../support/watched-app.ts';

const { app, db, rows, requireRefused, requireAnswered } = await startWatchedApp();

const DAY = 86_400_000;
const [WWW, APEX, NEW] = ['www.example.com', 'example.com', 'new.example.com'];
const CONSENTS = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };
const certificatesOf = ({ key, id }: PlacedOrder) => app.app.store.certificates.listLast(key.accountId, id, 500);

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
    // A validation for another order of the account counts.
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
    assert.deepEqual(
      [found.status, found.pem, found.serial_number, found.ica_pem, found.root_pem],
      ['pending', null, null, '', ''],
    );
    const { status, certificate_id, pending_certificate_id } = await show(app, order);
    assert.deepEqual([status, certificate_id, pending_certificate_id], ['reissuing', order.certificateId, id]);
  }
  // A validation by another account does not count.
  const [order, other] = [await newOrder(app), await newOrder(app, { commonName: NEW })];
  const id = await requireAnswered(order, body({ dns_names: [NEW] }));
  assert.equal((await certificate(app, order, id)).status, 'pending');
  assert.equal((await show(app, other)).status, 'issued');
  // Nor does an expired one.
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
  // Reissues that need no validation are serialized in any order: each replaces the previous one.
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
  // Of those that need validation, one wins.
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
      (await later.app.store.certificates.listLast(key.accountId, id, 100)).length;
    const order = await newOrder(later);
    const headers = { 'Idempotency-Key': 'once' };
    const sent = body();
    // ECDSA signatures of a CSR vary, so the same body must contain the same CSR.
    const [a, b] = [await newOrder(later, {}, order.key), await newOrder(later)];
    const answer = async (to: PlacedOrder, key = 'k') => await reissue(later, to, sent, '', { 'Idempotency-Key': key });
    const original = await answer(a);
    assert.equal(original.status, 200);
    for (let again = 0; again < 3; again += 1) assert.equal((await answer(a)).text, original.text);
    assert.equal(await count(a), 2);
    // Another idempotency key, order or account makes it another request.
    const others = [await answer(a, 'other'), await answer(order), await answer(b)];
    const ids = [original, ...others].map(({ body: { data } }) => data.certificate.id);
    assert.equal(new Set(ids).size, 4);
    // Another API key of the same account is the same account.
    const sameAccount = await later.anotherKey(order.key.accountId, 'integration_key');
    assert.equal((await answer({ ...a, key: sameAccount })).text, original.text);
    // Also for concurrent requests.
    const rush = await newOrder(later);
    const texts = (await Promise.all(Array.from({ length: 20 }, () => answer(rush)))).map(({ text }) => text);
    assert.equal(new Set(texts).size, 1);
    assert.equal(await count(rush), 2);
    // Also for a pending one: not reissue_in_progress, but the original response.
    const waiting = await newOrder(later);
    const json = body({ dns_names: [NEW] });
    const pending = await reissue(later, waiting, json, '', headers);
    assert.equal(pending.status, 200);
    assert.equal((await reissue(later, waiting, json, '', headers)).text, pending.text);
    assert.equal((await show(later, waiting)).pending_certificate_id, pending.body.data.certificate.id);
    // A refusal does not use up the key.
    const refused = await newOrder(later);
    assert.equal((await reissue(later, refused, body({ validity_days: 0 }), '', headers)).status, 400);
    assert.equal((await reissue(later, refused, body(), '', headers)).status, 200);
    // Kept for a day.
    later.advance(24 * 3_600_000 - 1);
    assert.equal((await answer(a)).text, original.text);
    later.advance(1);
    const next = await answer(a);
    assert.equal(next.status, 200);
    assert.notEqual(next.text, original.text);
    assert.equal((await answer(a)).text, next.text, 'and another day begins');
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

rule('reissue 41', '`?dry_run=true` makes the same checks and writes nothing', async () => {
  const order = await newOrder(app);
  const headers = { 'Idempotency-Key': 'mine' };
  assert.equal((await reissue(app, order, body(), '', headers)).status, 200);
  for (const query of ['', DRY]) {
    const answer = await reissue(app, order, body({ validity_days: 7 }), query, headers);
    assert.deepEqual([answer.status, answer.body.code], [422, 'idempotency_key_reused'], `${query} ${answer.text}`);
  }
});

test('an Idempotency-Key is 1 to 255 printable characters', async () => {
  const order = await newOrder(app);
  const before = rows();
  for (const key of ['', 'a b', 'é', 'a\tb', 'x'.repeat(256)]) {
    const answer = await reissue(app, order, body(), '', { 'Idempotency-Key': key });
    requireError(answer, [400, 'invalid_parameters', 'Idempotency-Key'], key);
  }
  assert.deepEqual(rows(), before);
  await requireAnswered(order, body(), { 'Idempotency-Key': `!~${'x'.repeat(253)}` });
});
