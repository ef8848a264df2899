// Effects of a revocation: on the order, the key and other certificates on it; permissions; interrupted issuances; changed
// PKI addresses.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import type { PendingCertificate } from '../../../src/domain/certificate/certificate.ts';
import { SIGNING_LEASE_MS } from '../../../src/domain/issuance/ports.ts';
import { finishIssuance, prepare } from '../../../src/usecases/issuance/issue-certificate.ts';
import { NO_KEYS } from '../../../src/usecases/issuance/obtain-keys.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { csr, newKeyPair, pem } from '../../support/csr.ts';
import { reseal } from '../../support/in-process.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show, spkiIn } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { issuedIn } from '../../support/records.ts';
import { HOLDS } from '../../support/signings.ts';
import { crlAddressIn, crlOf, derOf, ocspStatus, pems } from '../../support/status.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const GRACE = {
  ...{ ...OWN_PRODUCT, csr: 'optional' },
  ...{ revokes_previous_on_reissue: true, revocation_grace_hours: 24 },
};
const SETTINGS = { RESEAL_PRODUCTS_FILE: productsFile(GRACE) };
const { app, db, requireIssued, requireAnswered } = await startWatchedApp(SETTINGS);
const { store } = app.app;
const BOTH = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };

const post = (order: PlacedOrder, id: string, json: unknown = {}, key = order.key) =>
  app.call('POST', `/openapi/v3/certs/${id}/revoke`, { key, json });
const statusOf = async (order: PlacedOrder): Promise<string> => (await show(app, order)).status;
const fingerprintOf = (shown: { pem: string }) => createHash('sha256').update(spkiIn(shown)).digest('hex');

async function seen(order: PlacedOrder, id: string) {
  const shown = await certificate(app, order, id);
  const issuer = derOf(pems(shown.ica_pem)[0]!);
  const list = await crlOf(app, derOf(shown.pem), issuer);
  const { status, reason } = await ocspStatus(app, shown.serial_number, issuer);
  assert.equal(list.revoked.get(shown.serial_number)?.reason, reason);
  return status === 'revoked' ? reason : status;
}

rule('revocation 12', 'it cannot be reissued, and a reissue of it that was pending is canceled', async () => {
  const order = await newOrder(app);
  const second = (await requireIssued(order, body())).id;
  await post(order, second);
  assert.equal(await statusOf(order), 'issued', 'the first one is still valid');
  const third = await requireAnswered(order, body({ dns_names: ['new.example.com'] }));
  assert.equal(await statusOf(order), 'reissuing');
  await post(order, order.certificateId);
  const shown = await show(app, order);
  assert.deepEqual([shown.status, shown.pending_certificate_id], ['revoked', null]);
  const { status, canceled } = await certificate(app, order, third);
  assert.deepEqual([status, canceled.reason], ['canceled', 'order_revoked']);
  requireError(await reissue(app, order, body()), [409, 'order_state_conflict']);
  requireError(await post(order, third), [409, 'revocation_state_conflict']);
  const last = db
    .prepare('select action, certificate_id from outbox where order_id = ? order by id desc')
    .get(order.id);
  assert.deepEqual({ ...last }, { action: 'order:revoked', certificate_id: order.certificateId });
  // A scheduled revocation does not count yet.
  const graceful = await newOrder(app, { product: 'own' });
  const next = (await requireIssued(graceful, body({ csr: undefined }, BOTH))).id;
  await post(graceful, next);
  assert.equal(await statusOf(graceful), 'issued');
  app.advance(24 * 3_600_000);
  for (const { run } of app.issuance.revocationChores) await run();
  assert.equal(await statusOf(graceful), 'revoked');
  // An expired certificate was not valid any more, so its revocation does not end the order.
  const expired = await newOrder(app, { product: 'own' });
  app.advance(31 * 24 * 3_600_000);
  await post(expired, expired.certificateId);
  assert.equal(await statusOf(expired), 'issued');
});

rule(
  'errors revocation_state_conflict',
  'the certificate has nothing to revoke, no revocation of it is scheduled',
  async () => {
    const order = await newOrder(app);
    const pending = await requireAnswered(order, body({ dns_names: ['new.example.com'] }));
    requireError(await post(order, pending), [409, 'revocation_state_conflict']);
    const path = `/openapi/v3/certs/${order.certificateId}/revocation`;
    requireError(await app.call('DELETE', path, { key: order.key }), [409, 'revocation_state_conflict']);
    const json = { due_at: new Date(app.now()).toISOString() };
    requireError(await app.call('PUT', path, { key: order.key, json }), [409, 'revocation_state_conflict']);
    for (const due_at of ['tomorrow', '2027-02-30T00:00:00Z', '2027-01-01', '']) {
      const answer = await app.call('PUT', path, { key: order.key, json: { due_at } });
      requireError(answer, [400, 'invalid_parameters', 'due_at']);
    }
    requireError(await app.call('PUT', path, { key: order.key, json: {} }), [400, 'invalid_parameters', 'due_at']);
    assert.deepEqual(db.prepare('select * from revocation where certificate_id = ?').all(order.certificateId), []);
  },
);

rule('permission 11', 'Only `standard` and `cloud_manager_token` credentials may revoke on request', async () => {
  for (const kind of CREDENTIAL_KINDS) {
    const order = await newOrder(app);
    const key = await app.anotherKey(order.key.accountId, kind);
    const may = kind === 'standard' || kind === 'cloud_manager_token';
    const { status } = await post(order, order.certificateId, {}, key);
    assert.equal(status, may ? 200 : 403, kind);
    for (const method of ['PUT', 'DELETE']) {
      const path = `/openapi/v3/certs/${order.certificateId}/revocation`;
      const answer = await app.call(method, path, { key, json: { due_at: new Date(app.now()).toISOString() } });
      assert.equal(answer.status, may ? 409 : 403, `${kind} ${method}`);
    }
    assert.equal(await seen(order, order.certificateId), may ? 'cessation_of_operation' : 'good');
  }
});

/** An order with a certificate on a key of its own. */
async function onNewKey(change = {}) {
  const text = pem(csr({ key: newKeyPair('p256') }));
  const order = await newOrder(app, change);
  return { order, csr: text, id: (await requireIssued(order, body({ csr: text }))).id as string };
}

rule(
  'revocation 14',
  'blocks the key of the certificate for the account, and changes the reason of one that was revoked',
  async () => {
    const { order, csr: text, id } = await onNewKey();
    await post(order, id, { reason: 'superseded' });
    assert.equal(await seen(order, id), 'superseded');
    const { revocation } = await certificate(app, order, id);
    app.advance(1000);
    const { status, body: answer } = await post(order, id, { reason: 'key_compromise' });
    assert.deepEqual([status, answer.data.certificate.revocation.reason], [200, 'key_compromise']);
    assert.equal(await seen(order, id), 'key_compromise');
    const after = await certificate(app, order, id);
    assert.equal(after.revocation.revoked_at, revocation.revoked_at, 'revoked_at is unchanged');
    assert.equal(after.revocation.crl_number, revocation.crl_number, 'crl_number is unchanged');
    await post(order, id, { reason: 'superseded' });
    assert.equal(await seen(order, id), 'key_compromise', 'never reverted');
    requireError(await reissue(app, order, body({ csr: text })), [400, 'invalid_csr', 'certificate.csr']);
  },
);

rule('revocation 21', 'also revokes the other certificates of the account on the same key', async () => {
  const { order, csr: text, id } = await onNewKey();
  const second = await newOrder(app, {}, order.key);
  const own = (await requireIssued(second, body({ csr: text }))).id;
  const other = await newOrder(app, {}, await app.newKey());
  const theirs = (await requireIssued(other, body({ csr: text }))).id;
  assert.equal((await post(order, id, { reason: 'key_compromise' })).status, 200);
  assert.equal(await seen(order, id), 'key_compromise');
  assert.equal(await seen(second, own), 'key_compromise');
  assert.equal(await seen(second, second.certificateId), 'good', 'on another key');
  assert.equal(await seen(other, theirs), 'good', 'of another account');
  const causes = [await certificate(app, order, id), await certificate(app, second, own)];
  assert.deepEqual(
    causes.map(({ revocation }) => revocation.cause),
    ['requested', 'key_compromise'],
  );
  const rows = db.prepare("select account_id, subject, details from audit where action = 'key:reported'").all();
  const fingerprint = fingerprintOf(await certificate(app, order, id));
  const details = { reported_by: order.key.accountId, certificates_of_others: 1 };
  const reported = rows.filter(({ subject }) => subject === fingerprint);
  assert.deepEqual(
    reported.map((row) => [row.account_id, JSON.parse(String(row.details))]),
    [[null, details]],
  );
});

rule(
  'certificate 5',
  'A revoked certificate has the `status` `revoked`, also in its order and in the `history`',
  async () => {
    const order = await newOrder(app);
    const second = (await requireIssued(order, body())).id;
    await post(order, second, { reason: 'superseded' });
    const shown = await certificate(app, order, second);
    const { revoked_at, reason, cause } = shown.revocation;
    assert.deepEqual([shown.status, reason, cause], ['revoked', 'superseded', 'requested']);
    assert.equal(revoked_at, new Date(app.now()).toISOString());
    const statuses = shown.history.map(({ id, status }: { id: string; status: string }) => [id, status]);
    assert.deepEqual(statuses, [
      [order.certificateId, 'issued'],
      [second, 'revoked'],
    ]);
    assert.equal((await show(app, order)).certificate.status, 'revoked');
    // One that is scheduled is still valid.
    const grace = await newOrder(app, { product: 'own' });
    await requireIssued(grace, body({ csr: undefined }, BOTH));
    const scheduled = await certificate(app, grace, grace.certificateId);
    assert.deepEqual([scheduled.status, scheduled.revocation.revoked_at], ['issued', null]);
  },
);

rule(
  'revocation 11',
  'One command revokes every certificate on a compromised key and refuses the key from then on',
  async () => {
    const { order, csr: text, id } = await onNewKey();
    const other = await newOrder(app, {}, await app.newKey());
    const theirs = (await requireIssued(other, body({ csr: text }))).id;
    const earlier = (await requireIssued(other, body({ csr: text }))).id;
    await post(other, earlier, { reason: 'superseded' });
    const fingerprint = fingerprintOf(await certificate(app, order, id));
    const certificates = await app.issuance.revokeKey(fingerprint);
    assert.deepEqual(certificates.map(({ certificateId }) => certificateId).sort(), [id, theirs, earlier].sort());
    for (const [whose, one] of [
      [order, id],
      [other, theirs],
      [other, earlier],
    ] as const) {
      assert.equal(await seen(whose, one), 'key_compromise');
    }
    assert.equal(await seen(order, order.certificateId), 'good', 'on another key');
    for (const one of [order, other]) {
      requireError(await reissue(app, one, body({ csr: text })), [400, 'invalid_csr', 'certificate.csr']);
    }
    assert.deepEqual((await app.issuance.revokeKey(fingerprint)).length, 3, 'repeating changes nothing');
    const rows = db.prepare("select count(*) as n from outbox where action = 'order:revoked' and certificate_id = ?");
    assert.deepEqual({ ...rows.get(theirs) }, { n: 1 });
  },
);

rule(
  'revocation 16',
  'The serial number of an issuance that was interrupted is unknown to OCSP, and can be revoked',
  async () => {
    const order = await newOrder(app);
    const { accountId } = order.key;
    const {
      state: _,
      der,
      issuedAt,
      version,
      replacesId,
      revocation,
      ...model
    } = await issuedIn(store, accountId, order.certificateId);
    // What a signer leaves when it crashes between writing down and finishing.
    const serial = `${'41'.repeat(15)}05`;
    const id = app.app.newId();
    const preparation = { ...model.preparation, serial, leaseEndsAt: app.now() + SIGNING_LEASE_MS };
    const record = {
      ...model,
      id,
      state: 'prepared',
      preparation,
      toBeSigned: Buffer.from('x'),
      encryption: null,
    } as const;
    const { revision } = (await store.orders.find(accountId, order.id))!;
    assert.ok(await store.signings.begin(record, { ...HOLDS, revision }));
    const issuer = derOf(pems((await certificate(app, order, order.certificateId)).ica_pem)[0]!);
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'unknown', 'while it is being signed');
    app.advance(SIGNING_LEASE_MS + 1);
    await app.issuance.sweep();
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'unknown', 'when its signer is lost');
    const voided = await app.issuance.interrupted.list();
    assert.deepEqual(
      voided.map(({ certificateId }) => certificateId),
      [id],
    );
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'unknown', 'reading changes nothing');
    await app.issuance.interrupted.revoke();
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'revoked');
    assert.deepEqual(await app.issuance.interrupted.list(), []);
    assert.equal(await statusOf(order), 'issued', 'the order is not affected');
    const told = db.prepare('select * from outbox where certificate_id = ?').all(id);
    assert.deepEqual(told, [], 'no event was emitted');
  },
);

rule('revocation 17', 'names that very address, also after `RESEAL_PKI_URL` has changed', async () => {
  await using moved = await startApp({ RESEAL_PKI_URL: 'http://one.example' });
  const order = await newOrder(moved);
  const first = await certificate(moved, order, order.certificateId);
  const issuer = derOf(pems(first.ica_pem)[0]!);
  assert.match(crlAddressIn(derOf(first.pem)), /^http:\/\/one\.example\/crl\//);
  await crlOf(moved, derOf(first.pem), issuer);
  await moved.stop();
  const change = ['address', 'set', '--pki-url', 'http://two.example', '--yes'];
  assert.equal((await reseal(change, { RESEAL_DATA_DIR: moved.folder })).code, 0);
  await moved.start({ RESEAL_PKI_URL: 'http://two.example' });
  const next = await reissue(moved, order, body());
  const second = await certificate(moved, order, next.body.data.certificate.id);
  assert.match(crlAddressIn(derOf(second.pem)), /^http:\/\/two\.example\/crl\//);
  await moved.issuance.revocationChores[1]!.run();
  // crlOf compares the addresses itself.
  await crlOf(moved, derOf(first.pem), issuer);
  await crlOf(moved, derOf(second.pem), issuer);
});

test('a certificate whose key is reported while it is being signed is never good', async () => {
  const order = await newOrder(app);
  const { accountId } = order.key;
  const { authority, products, crls } = app.issuance;
  const publishCrls = crls.publish;
  const tools = { store, authority, now: app.now, newId: app.app.newId, publishCrls, onIssued() {} };
  const model = await issuedIn(store, accountId, order.certificateId);
  const { spki } = newKeyPair('p256');
  const fingerprint = createHash('sha256').update(spki).digest('hex');
  const publicKey = { ...model.publicKey, spki, fingerprint };
  const wanted: PendingCertificate = {
    ...{ ...model, id: tools.newId(), state: 'pending', publicKey },
  };
  const before = (await store.orders.find(accountId, order.id))!;
  const basis = { decided: { at: app.now(), until: app.now() } };
  const plan = model.preparation;
  const record = prepare(tools, { order: before, wanted, plan, product: products.get('ssl-dv')!, basis }, NO_KEYS);
  assert.ok(await store.signings.begin(record, { ...HOLDS, revision: before.revision }));
  const certificates = await app.issuance.revokeKey(fingerprint);
  assert.deepEqual(certificates, [], 'it is not issued yet');
  await finishIssuance(tools, record, {
    ...{ order: before, previous: { id: order.certificateId, version: 1 }, idempotency: null },
    ...{ by: { accountId, actor: 'cli', requestId: null }, action: 'order:reissued', details: {} },
  });
  assert.equal(await seen(order, record.id), 'key_compromise');
  assert.equal(await seen(order, order.certificateId), 'good');
  assert.equal(await statusOf(order), 'issued');
});
