// Requests that change nothing: a refused reissue, and a dry run with its plan.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type Answer, NOON } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, reissue, show } from '../../support/orders.ts';
import { DRY, type Expected, startWatchedApp } from '../../support/watched-app.ts';

const { app, rows, requireRefused, requireAnswered } = await startWatchedApp();

const [SECOND, HOUR, DAY] = [1000, 3_600_000, 86_400_000];
const [DAYS, DATE] = ['certificate.validity_days', 'certificate.custom_expiration_date'];
const [WWW, APEX, NEW] = ['www.example.com', 'example.com', 'new.example.com'];
const CONSENTS = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };
const iso = (at: number) => new Date(at).toISOString();

/** One request for each kind of refusal, for an order with two names of a revoking product. */
const REFUSALS: readonly (readonly [json: unknown, answer: Expected])[] = [
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
  assert.equal((await app.app.store.certificates.listLast(order.key.accountId, order.id, 9)).length, 1);
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

rule('reissue 46', 'with any value but `true` and `false` is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  const values = ['', '=', '=1', '=0', '=True', '=TRUE', '=yes', '=true%20', '=%20true', '=null', '=true,true'];
  for (const value of [...values, '=true&dry_run=true', '=true&dry_run=false', '=false&dry_run=true']) {
    await requireRefused(order, body(), [400, 'invalid_parameters', 'dry_run'], `?dry_run${value}`);
  }
  assert.equal((await reissue(app, order, body(), '?dry_run=true')).body.data.plan.missing_consents.length, 0);
  assert.ok((await reissue(app, order, body(), '?dry_run=false')).body.data.certificate.id, 'a real reissue');
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
      missing_permissions: [],
      caa_problems: [],
      not_before: iso(NOON - HOUR),
      not_after: iso(NOON - HOUR + 10 * DAY - SECOND),
    });
    const revocation = { reason: 'superseded', hours_after_issuance: 0 };
    const byId = (a: { certificate_id: string }, b: { certificate_id: string }) =>
      a.certificate_id < b.certificate_id ? -1 : 1;
    assert.deepEqual(
      [...revokes].sort(byId),
      [order.certificateId, again].map((id) => ({ certificate_id: id, ...revocation })).sort(byId),
    );
    // Issuer and validity of the plan are those of the issued certificate.
    const request = body({ csr: csrFor('rsa2048'), sign_hash: 'sha384', validity_days: 10 });
    const { plan: promised } = (await reissue(app, order, request, DRY)).body.data;
    const id = await requireAnswered(order, request);
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
