// Revocation for account owners: by a reissue, rescheduled or canceled before it is due, and on request.
import assert from 'node:assert/strict';
import { rule } from '../../support/contract.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { crlOf, derOf, ocspStatus, pems } from '../../support/status.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const GRACE = { ...OWN_PRODUCT, csr: 'optional', revokes_previous_on_reissue: true, revocation_grace_hours: 24 };
const FIRM = { ...GRACE, id: 'firm', revocation_may_be_put_off: false };
const { app, db, requireIssued } = await startWatchedApp({ RESEAL_PRODUCTS_FILE: productsFile(GRACE, FIRM) });

const HOUR = 3_600_000;
const BOTH = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };
const iso = (ms: number): string => new Date(ms).toISOString();

/** Runs the background chores now. */
const runDue = async () => {
  for (const { run } of app.issuance.revocationChores) await run();
};
const events = (order: PlacedOrder) =>
  db
    .prepare('select action, certificate_id from outbox where order_id = ? order by id')
    .all(order.id)
    .map((row) => `${row.action} ${row.certificate_id}`);

/** The status of a certificate, on which the API, the CRL and OCSP must agree. */
async function stateOf(order: PlacedOrder, id: string) {
  const shown = await certificate(app, order, id);
  const der = derOf(shown.pem);
  const issuer = derOf(pems(shown.ica_pem)[0]!);
  const list = await crlOf(app, der, issuer);
  const listed = list.revoked.get(shown.serial_number);
  const ocsp = await ocspStatus(app, shown.serial_number, issuer);
  const isRevoked = Boolean(shown.revocation?.revoked_at);
  assert.equal(listed !== undefined, isRevoked, 'the CRL agrees with the owner’s view');
  assert.equal(ocsp.status, isRevoked ? 'revoked' : 'good', 'OCSP agrees with the owner’s view');
  if (isRevoked) {
    const at = Math.floor(Date.parse(shown.revocation.revoked_at) / 1000) * 1000;
    assert.deepEqual(listed, { at, reason: shown.revocation.reason });
    assert.deepEqual([ocsp.at, ocsp.reason], [at, shown.revocation.reason]);
    assert.ok(shown.revocation.crl_number <= list.number);
    assert.ok(shown.revocation.crl_published_at >= shown.revocation.revoked_at);
    assert.equal(shown.revocation.ocsp_since, shown.revocation.revoked_at);
  }
  return { isRevoked, reason: listed?.reason, shown };
}
const isRevoked = async (order: PlacedOrder, id: string) => (await stateOf(order, id)).isRevoked;

const post = (order: PlacedOrder, id: string, json?: unknown) =>
  app.call('POST', `/openapi/v3/certs/${id}/revoke`, { key: order.key, ...(json !== undefined && { json }) });
const put = (order: PlacedOrder, id: string, json: unknown) =>
  app.call('PUT', `/openapi/v3/certs/${id}/revocation`, { key: order.key, json });
const drop = (order: PlacedOrder, id: string) =>
  app.call('DELETE', `/openapi/v3/certs/${id}/revocation`, { key: order.key });

rule(
  'revocation 1',
  'the earlier certificates of the order that carry it are revoked with the reason superseded',
  async () => {
    const order = await newOrder(app, { dnsNames: ['a.example.com'] });
    const second = (await requireIssued(order, body({ dns_names: ['a.example.com'] }))).id;
    const without = (await requireIssued(order, body({ dns_names: [] }, BOTH))).id;
    for (const id of [order.certificateId, second]) {
      const { isRevoked, reason } = await stateOf(order, id);
      assert.deepEqual([isRevoked, reason], [true, 'superseded']);
    }
    assert.equal(await isRevoked(order, without), false);
  },
);

rule('revocation 2', 'the previous certificate is revoked with the reason superseded', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace' });
  const second = (await requireIssued(order, body({}, BOTH))).id;
  const { isRevoked: first, reason } = await stateOf(order, order.certificateId);
  assert.deepEqual([first, reason, await isRevoked(order, second)], [true, 'superseded', false]);
  assert.equal((await show(app, order)).status, 'issued');
});

rule('revocation 3', 'A reissue revokes nothing before the new certificate is issued', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace', dnsNames: ['a.example.com'] });
  // A name that is not validated: the certificate is pending, and so is everything it will revoke.
  const pending = await reissue(app, order, body({ dns_names: ['new.example.com'] }, BOTH));
  assert.equal(pending.status, 200, pending.text);
  app.advance(1000 * HOUR);
  await runDue();
  assert.equal(await isRevoked(order, order.certificateId), false);
  assert.deepEqual((await show(app, order)).revocations, []);
  await app.call('PUT', `/openapi/v3/orders/${order.id}/cancel`, { key: order.key });
  await runDue();
  assert.equal(await isRevoked(order, order.certificateId), false, 'a canceled certificate revokes nothing');
});

rule(
  'revocation 4',
  'The product says how many hours after the issuance a reissue revokes; the default is at once',
  async () => {
    const atOnce = await newOrder(app, { product: 'ssl-dv-replace' });
    await requireIssued(atOnce, body({}, BOTH));
    assert.equal(await isRevoked(atOnce, atOnce.certificateId), true);

    const order = await newOrder(app, { product: 'own' });
    const issuedAt = app.now();
    const second = (await requireIssued(order, body({ csr: undefined }, BOTH))).id;
    // At any time one of the two is valid; until the revocation is due, both are.
    for (const [hours, expected] of [
      [0, false],
      [23.999, false],
      [24, true],
      [25, true],
    ] as const) {
      app.advance(issuedAt + hours * HOUR - app.now());
      await runDue();
      assert.equal(await isRevoked(order, order.certificateId), expected, `after ${hours} hours`);
      assert.equal(await isRevoked(order, second), false);
    }
    const { shown } = await stateOf(order, order.certificateId);
    assert.deepEqual([shown.revocation.due_at, shown.revocation.revoked_at], Array(2).fill(iso(issuedAt + 24 * HOUR)));
  },
);

rule(
  'revocation 5',
  'the order shows what will be revoked and when, and the customer can bring it forward',
  async () => {
    const scheduled = async (product: string) => {
      const order = await newOrder(app, { product });
      const at = app.now() + 24 * HOUR;
      const second = (await requireIssued(order, body({ csr: undefined }, BOTH))).id;
      const row = { certificate_id: order.certificateId, reason: 'superseded', cause: 'previous_replaced' };
      assert.deepEqual((await show(app, order)).revocations, [{ ...row, caused_by: second, due_at: iso(at) }]);
      return { order, id: order.certificateId, at };
    };
    const dueAt = async (order: PlacedOrder) => (await show(app, order)).revocations[0]?.due_at;

    const forward = await scheduled('firm');
    const earlier = iso(forward.at - HOUR);
    assert.equal((await put(forward.order, forward.id, { due_at: earlier })).status, 200);
    assert.equal(await dueAt(forward.order), earlier);
    const now = await put(forward.order, forward.id, { due_at: iso(app.now()) });
    assert.equal(now.body.data.certificate.revocation.revoked_at, iso(app.now()));
    assert.deepEqual([await isRevoked(forward.order, forward.id), await dueAt(forward.order)], [true, undefined]);
    requireError(await put(forward.order, forward.id, { due_at: earlier }), [409, 'revocation_state_conflict']);
    requireError(await drop(forward.order, forward.id), [409, 'revocation_state_conflict']);

    const firm = await scheduled('firm');
    requireError(await put(firm.order, firm.id, { due_at: iso(firm.at + HOUR) }), [409, 'revocation_state_conflict']);
    requireError(await drop(firm.order, firm.id), [409, 'revocation_state_conflict']);
    assert.equal(await dueAt(firm.order), iso(firm.at));

    const put_off = await scheduled('own');
    const later = iso(put_off.at + 48 * HOUR);
    assert.equal((await put(put_off.order, put_off.id, { due_at: later })).status, 200);
    app.advance(25 * HOUR);
    await runDue();
    assert.deepEqual([await isRevoked(put_off.order, put_off.id), await dueAt(put_off.order)], [false, later]);
    const end = (await certificate(app, put_off.order, put_off.id)).not_after;
    const tooLate = iso(Date.parse(end) + 1000);
    requireError(await put(put_off.order, put_off.id, { due_at: tooLate }), [400, 'invalid_parameters', 'due_at']);

    const kept = await drop(put_off.order, put_off.id);
    assert.deepEqual([kept.status, kept.body.data.certificate.revocation], [200, null]);
    app.advance(1000 * HOUR);
    await runDue();
    assert.equal(await isRevoked(put_off.order, put_off.id), false);
    requireError(await drop(put_off.order, put_off.id), [409, 'revocation_state_conflict']);
  },
);

rule('revocation 6', '`POST /openapi/v3/certs/{id}/revoke` revokes a certificate with a reason', async () => {
  for (const reason of ['superseded', 'cessation_of_operation', 'affiliation_changed']) {
    const order = await newOrder(app);
    const { status, body: answer, text } = await post(order, order.certificateId, { reason });
    assert.equal(status, 200, text);
    assert.equal(answer.data.certificate.revocation.reason, reason);
    assert.equal((await stateOf(order, order.certificateId)).reason, reason);
  }
  // Without a reason the service chooses one, never "unspecified".
  const order = await newOrder(app);
  const second = (await requireIssued(order, body())).id;
  assert.equal((await post(order, order.certificateId)).body.data.certificate.revocation.reason, 'superseded');
  const last = (await post(order, second, {})).body.data.certificate.revocation;
  assert.equal(last.reason, 'cessation_of_operation');
  // Idempotent.
  app.advance(HOUR);
  assert.deepEqual((await post(order, second, { reason: 'superseded' })).body.data.certificate.revocation, last);
  for (const reason of ['unspecified', 'privilege_withdrawn', 'Superseded', '']) {
    requireError(await post(order, second, { reason }), [400, 'invalid_parameters', 'reason']);
  }
  for (const reason of [null, 4, true]) {
    requireError(await post(order, second, { reason }), [400, 'invalid_parameters', 'reason']);
  }
  requireError(await post(order, 'nothing'), [404, 'cert_not_found']);
  requireError(await post(await newOrder(app), order.certificateId), [404, 'cert_not_found']);
});

rule('event 7', 'The revocation of a certificate emits `order:revoked`', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace' });
  const first = order.certificateId;
  const second = (await requireIssued(order, body({}, BOTH))).id;
  const soFar = [`order:issued ${first}`, `order:issued ${second}`, `order:revoked ${first}`];
  assert.deepEqual(events(order), soFar);
  await post(order, first);
  assert.deepEqual(events(order), soFar, 'an already revoked certificate is not listed again');
  await post(order, second);
  assert.deepEqual(events(order), [...soFar, `order:revoked ${second}`]);
});
