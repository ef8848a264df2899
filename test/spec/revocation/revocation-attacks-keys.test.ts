// Attacks around keys: reported while a certificate on it is signed, an escrowed key of a compromised dual certificate,
// another account's key, a key in a non-canonical encoding; and more due revocations than one run handles.
import assert from 'node:assert/strict';
import { createHash, ECDH, randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { explicit, integer, octetString, oid, raw, sequence, TAG } from '../../../src/adapters/der/writer.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import type { Repositories } from '../../../src/domain/store.ts';
import { Problem } from '../../../src/kernel/problem.ts';
import { revokeKey } from '../../../src/usecases/revocation/revoke-key.ts';
import { runDueRevocations } from '../../../src/usecases/revocation/run-due-revocations.ts';
import { revocationCommands } from '../../../src/wiring/revocation-commands.ts';
import { rule } from '../../support/contract.ts';
import { csr, newKeyPair, pem } from '../../support/csr.ts';
import { newDualOrder, newSm2Csr } from '../../support/dual.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { issuedIn } from '../../support/records.ts';
import { crlOf, derOf, ocspStatus, pems } from '../../support/status.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const HOUR = 3_600_000;
const GRACE = { ...OWN_PRODUCT, csr: 'optional', revokes_previous_on_reissue: true, revocation_grace_hours: 24 };
const { app, db, requireAnswered, requireIssued } = await startWatchedApp({
  RESEAL_PRODUCTS_FILE: productsFile(GRACE),
});
const { store, newId } = app.app;
const { authority, crls } = app.issuance;
const tools = { store, now: app.now, newId, publishCrls: crls.publish };
const CONSENT = { i_know_remove_domain_will_revoke_before_cert: true, i_know_will_revoke_last_cert: true };
const REFUSED_KEY = [400, 'invalid_csr', 'certificate.csr'] as const;

const post = (order: PlacedOrder, id: string, json: unknown = {}) =>
  app.call('POST', `/openapi/v3/certs/${id}/revoke`, { key: order.key, json });

function newKey() {
  const pair = newKeyPair('p256');
  return { ...pair, csr: pem(csr({ key: pair })), fingerprint: createHash('sha256').update(pair.spki).digest('hex') };
}

/** The status that CRL and OCSP agree on. */
async function seen(order: PlacedOrder, id: string) {
  const shown = await certificate(app, order, id);
  const issuer = derOf(pems(shown.ica_pem)[0]!);
  const { status, reason } = await ocspStatus(app, shown.serial_number, issuer);
  assert.equal((await crlOf(app, derOf(shown.pem), issuer)).revoked.get(shown.serial_number)?.reason, reason);
  return status === 'revoked' ? reason : status;
}
const revokedEvents = ({ id }: PlacedOrder) =>
  db
    .prepare("select certificate_id as id from outbox where action = 'order:revoked' and order_id = ?")
    .all(id)
    .map((row) => row.id);

/** The encryption half's key, which the service holds. */
const escrowedKeyOf = (certificateId: string): string => {
  const select =
    'select k.key_fingerprint as found from escrowed_key k join encryption_certificate e on e.key_id = k.id';
  return String(db.prepare(`${select} where e.certificate_id = ?`).get(certificateId)?.found);
};

/** Runs once, between preparing and signing. */
function whileSigned({ mock }: TestContext, happens: () => Promise<unknown>): void {
  const { sign } = authority;
  const signing = mock.method(authority, 'sign', async (...args: Parameters<typeof sign>) => {
    signing.mock.restore();
    await happens();
    return await sign(...args);
  });
}

for (const [product, when] of [
  ['ssl-dv-replace', 'at once'],
  ['own', 'a day later'],
] as const) {
  test(`a key reported during signing: its certificate is revoked, and not the one it would replace ${when}`, async (context) => {
    const order = await newOrder(app, { product });
    const { csr: text, fingerprint } = newKey();
    whileSigned(context, async () => {
      const certificates = await app.issuance.revokeKey(fingerprint);
      assert.deepEqual(certificates, [], 'it is not issued yet');
    });
    const id = await requireAnswered(order, body({ csr: text }, CONSENT));
    assert.equal(await seen(order, id), 'key_compromise');
    assert.deepEqual((await show(app, order)).revocations, [], 'nothing is pending either');
    app.advance(25 * HOUR);
    for (const { run } of app.issuance.revocationChores) await run();
    assert.equal(await seen(order, order.certificateId), 'good', 'nothing valid replaced it');
    assert.deepEqual(revokedEvents(order), [id]);
    assert.equal((await show(app, order)).status, 'issued');
    const next = (await requireIssued(order, body({ csr: newKey().csr }, CONSENT))).id;
    assert.equal(await seen(order, next), 'good');
  });
}

const dual = async (certificate = {}) => ({
  certificate: { csr: (await newSm2Csr()).csr, common_name: 'www.example.com', sign_hash: 'sm3', ...certificate },
});

/** `un_modify_key` is refused; without it the certificate is on a new key. */
async function requireNewKey(order: PlacedOrder): Promise<string> {
  const refused = await reissue(app, order, await dual({ un_modify_key: true }));
  assert.deepEqual([refused.body.code, refused.body.field], ['invalid_csr', 'certificate.un_modify_key']);
  return (await requireIssued(order, await dual())).id;
}

rule('dual 7', 'that keeps a compromised encryption key is refused with `invalid_csr`', async () => {
  const order = await newDualOrder(app, await newSm2Csr());
  const second = (await requireIssued(order, await dual())).id;
  const kept = (await requireIssued(order, await dual({ un_modify_key: true }))).id;
  const fingerprint = escrowedKeyOf(kept);
  assert.equal(fingerprint, escrowedKeyOf(second), 'without a report it is');
  const certificates = await app.issuance.revokeKey(fingerprint);
  assert.deepEqual(certificates.map(({ certificateId }) => certificateId).sort(), [second, kept].sort());
  const next = await requireNewKey(order);
  assert.notEqual(escrowedKeyOf(next), fingerprint);
  assert.deepEqual([await seen(order, kept), await seen(order, next)], ['key_compromise', 'good']);
});

test('reporting a dual certificate reports both of its keys', async () => {
  const order = await newDualOrder(app, await newSm2Csr());
  const second = (await requireIssued(order, await dual())).id;
  const path = `/openapi/v3/certs/${second}/revoke`;
  const { status } = await app.call('POST', path, { key: order.key, json: { reason: 'key_compromise' } });
  assert.equal(status, 200);
  const next = await requireNewKey(order);
  assert.notEqual(escrowedKeyOf(next), escrowedKeyOf(second), 'the signing key decrypts its envelope');
});

test('an escrowed key reported during signing: both halves are revoked', async (context) => {
  const order = await newDualOrder(app, await newSm2Csr());
  const second = (await requireIssued(order, await dual())).id;
  const fingerprint = escrowedKeyOf(second);
  // The first step of a report; the rest waits for this signature.
  whileSigned(context, () => store.blockedKeys.add(fingerprint, 'key_compromise', app.now()));
  const id = await requireAnswered(order, await dual({ un_modify_key: true }));
  assert.equal(escrowedKeyOf(id), fingerprint);
  assert.equal(await seen(order, id), 'key_compromise');
  assert.equal((await store.revokedSerials.ofCertificate(id)).length, 2);
  assert.equal(await seen(order, order.certificateId), 'good', 'on another key');
});

test('an order that stays locked does not keep others from being revoked', async () => {
  const { csr: text, fingerprint } = newKey();
  const orders: { order: PlacedOrder; id: string }[] = [];
  while (orders.length < 3) {
    const order = await newOrder(app);
    orders.push({ order, id: (await requireIssued(order, body({ csr: text }))).id });
  }
  const [busy, ...others] = orders;
  // Forces the timeout of waiting for a signer.
  const withBusy = (tx: Repositories): Repositories => ({
    ...tx,
    orders: {
      ...tx.orders,
      async findForUpdate(accountId, orderId) {
        if (orderId === busy?.order.id) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
        return await tx.orders.findForUpdate(accountId, orderId);
      },
    },
  });
  const crowded: typeof store = {
    ...store,
    transaction: (work) => store.transaction((tx) => work(withBusy(tx))),
  };
  const isBusy = (error: unknown) => error instanceof Refusal && error.code === 'service_busy';
  await assert.rejects(revokeKey({ ...tools, store: crowded })(fingerprint), isBusy, 'the operator gets the refusal');
  for (const { order, id } of others) assert.equal(await seen(order, id), 'key_compromise');
  requireError(await reissue(app, busy!.order, body({ csr: text })), REFUSED_KEY);
  assert.equal((await app.issuance.revokeKey(fingerprint)).length, 3);
  assert.equal(await seen(busy!.order, busy!.id), 'key_compromise', 'on the next run');
});

test('reporting a key from a copied CSR blocks it for the reporting account only', async () => {
  const { csr: text, fingerprint } = newKey();
  const victim = await newOrder(app);
  const theirs = (await requireIssued(victim, body({ csr: text }))).id;
  const stranger = await newOrder(app, { commonName: 'evil.example.net' });
  const request = { csr: text, common_name: 'evil.example.net' };
  const copied = (await requireIssued(stranger, body(request))).id;
  assert.equal((await post(stranger, copied, { reason: 'key_compromise' })).status, 200);
  assert.deepEqual([await seen(stranger, copied), await seen(victim, theirs)], ['key_compromise', 'good']);
  requireError(await reissue(app, stranger, body(request)), REFUSED_KEY);
  const again = (await requireIssued(victim, body({ csr: text }))).id;
  assert.equal(await seen(victim, again), 'good');
  // The operator blocks the key for all accounts.
  await app.issuance.revokeKey(fingerprint);
  assert.equal(await seen(victim, again), 'key_compromise');
  requireError(await reissue(app, victim, body({ csr: text })), REFUSED_KEY);
});

test('a key in an encoding that is never certified is an error, not a no-op block', () => {
  const { fingerprintOf } = revocationCommands(app.issuance);
  const { privateKey, spki, fingerprint } = newKey();
  const { d = '' } = privateKey.export({ format: 'jwk' });
  const point = spki.subarray(-65);
  const compressed = new Uint8Array(ECDH.convertKey(point, 'prime256v1', undefined, undefined, 'compressed') as Buffer);
  const P256 = oid('1.2.840.10045.3.1.7');
  const bits = (bytes: Uint8Array) => raw(TAG.bitString, Buffer.concat([Uint8Array.of(0), bytes]));
  const publicKey = (bytes: Uint8Array) =>
    pem(sequence([sequence([oid('1.2.840.10045.2.1'), P256]), bits(bytes)]), 'PUBLIC KEY');
  const ownKey = (bytes: Uint8Array) => {
    const parts = [integer(1), octetString(Buffer.from(d, 'base64url')), explicit(0, P256), explicit(1, bits(bytes))];
    return pem(sequence(parts), 'EC PRIVATE KEY');
  };
  for (const form of [publicKey, ownKey]) {
    assert.equal(fingerprintOf(form(point)), fingerprint);
    assert.throws(() => fingerprintOf(form(compressed)), Problem);
  }
});

test('more due revocations than one run handles: each is applied once, over several runs', async () => {
  const COUNT = 520;
  const order = await newOrder(app);
  const { accountId } = order.key;
  const model = await issuedIn(store, accountId, order.certificateId);
  const dueAt = app.now() + HOUR;
  await store.transaction(async (tx) => {
    for (let made = 0; made < COUNT; made += 1) {
      const id = newId();
      const serial = `45${randomBytes(15).toString('hex')}`;
      const version = made + 2;
      await tx.certificates.insert({ ...model, id, version, preparation: { ...model.preparation, serial } });
      const planned = { reason: 'superseded', cause: 'previous_replaced', causedById: null } as const;
      await tx.revocations.schedule(accountId, id, { ...planned, dueAt, revokedAt: null });
    }
  });
  // A separate clock for these runs, so that the chores of the service do not revoke anything.
  const late = { ...tools, now: () => dueAt };
  const runs: number[] = [];
  do runs.push(await runDueRevocations(late));
  while (runs.at(-1)! > 0);
  assert.ok(runs.length > 2 && runs.every((done) => done < COUNT), `${runs}`);
  const told = revokedEvents(order);
  assert.deepEqual([told.length, new Set(told).size], [COUNT, COUNT]);
  const unlisted = db.prepare('select count(*) as n from revoked_serial where listed_in is null').get();
  assert.deepEqual({ ...unlisted }, { n: 0 });
});
