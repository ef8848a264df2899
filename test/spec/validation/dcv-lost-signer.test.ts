// A signer that dies between preparing and signing a certificate that had waited: its id was answered long ago, so the
// certificate waits again and is issued under another serial number. The tests write what the dead signer leaves behind.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import type { PreparedCertificate } from '../../../src/domain/certificate/certificate.ts';
import type { Order } from '../../../src/domain/certificate/order.ts';
import { rule } from '../../support/contract.ts';
import { pendingRowOf, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { newSm2Csr, openEnvelope } from '../../support/dual.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { finished, HOLDS } from '../../support/signings.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, place, publish, complete, changeMethod, newDomain, workerChecks } = world;

const LEASE_MS = 10 * SECOND;
let serials = 0;

interface Dead {
  /** The order as it was read. */
  readonly order: Order;
  readonly prepared: PreparedCertificate;
}

/** Runs a signer up to the point where it dies. */
async function dieBeforeSigning({ key, id }: PlacedOrder, hasHalf = false): Promise<Dead> {
  const { store, newId } = app.app;
  const { accountId } = key;
  const at = app.now();
  const serial = `5e41a1${++serials}`;
  const issuerId = app.issuance.issuers.find(({ role }) => role === 'issuing')!.id;
  return await store.transaction(async (tx) => {
    const { order } = (await tx.orders.findForUpdate(accountId, id))!;
    const record = (await tx.certificates.find(accountId, order.pendingCertificateId!))!;
    const toBeSigned = Buffer.from('to be signed');
    const { publicKey } = record;
    const half = { id: newId(), accountId, orderId: id, createdAt: at, publicKey, privateKey: Buffer.from('private') };
    if (hasHalf) await tx.escrowedKeys.insert(half);
    const isFirst = order.status === 'domain_verifing';
    if (isFirst) await tx.orders.save({ ...order, status: 'issuing' });
    const revision = order.revision + (isFirst ? 1 : 0);
    const prepared: PreparedCertificate = {
      ...record,
      state: 'prepared',
      preparation: {
        ...{ issuerId, serial, notBefore: at, notAfter: at + 1_000 },
        ...{ preparedAt: at, leaseEndsAt: at + LEASE_MS },
      },
      toBeSigned,
      encryption: hasHalf ? { escrowedKeyId: half.id, serial: `${serial}ff`, toBeSigned, envelope: toBeSigned } : null,
    };
    assert.ok(await tx.signings.begin(prepared, { ...HOLDS, revision }));
    return { order: { ...order, revision }, prepared };
  });
}

/** Runs the sweep, or finds that the service's own has run. */
async function sweep(): Promise<void> {
  app.advance(LEASE_MS);
  await app.issuance.sweep();
}

async function requireIssuedAnew(
  placed: PlacedOrder,
  id: string,
  { preparation: { serial } }: PreparedCertificate,
  waitsAs: string,
): Promise<void> {
  const before = await show(app, placed);
  assert.deepEqual([before.status, before.pending_certificate_id], [waitsAs, id]);
  assert.equal((await certificate(app, placed, id)).status, 'pending');
  assert.notEqual(await pendingRowOf(app, placed), undefined);
  await workerChecks(placed);
  const { status, certificate_id } = await show(app, placed);
  assert.deepEqual([status, certificate_id], ['issued', id], 'under the id in the response');
  const { serial_number, pem } = await certificate(app, placed, id);
  assert.notEqual(serial_number, serial);
  assert.notEqual(new X509Certificate(pem).serialNumber.toLowerCase(), serial);
}

rule('dcv 14', 'When the last name is proven, the certificate is issued', async () => {
  const placed = await place([newDomain()]);
  await publish(placed);
  const { order, prepared } = await dieBeforeSigning(placed);
  // While its lease lasts, nothing else touches the certificate.
  await app.issuance.sweep();
  assert.equal((await show(app, placed)).status, 'issuing');
  const { status, body: answer } = await complete(placed);
  assert.deepEqual([status, answer.data.status], [200, 'issuing']);
  const busy = [
    await changeMethod(placed, { dcv_method: 'file' }),
    await app.call('PUT', `/openapi/v3/orders/${placed.id}/cancel`, { key: placed.key }),
  ];
  for (const { status, body: refused } of busy) assert.deepEqual([status, refused.code], [503, 'service_busy']);

  await sweep();
  await requireIssuedAnew(placed, placed.certificateId, prepared, 'domain_verifing');
  // The signer was slow, not dead: its signature is discarded and changes nothing.
  const { store } = app.app;
  const { accountId } = placed.key;
  const issued = await store.certificates.find(accountId, placed.certificateId);
  const { revision } = (await store.orders.find(accountId, placed.id))!;
  for (const seen of [order.revision, revision]) {
    const late = finished(prepared, { order: { ...order, revision: seen } });
    assert.equal(await store.signings.finish(late, { evenIfReported: true }), false);
  }
  assert.deepEqual(await store.certificates.find(accountId, placed.certificateId), issued);
});

test('a reissue returns to waiting, and the previous certificate is unchanged', async () => {
  const [domain, added] = [newDomain(), newDomain()];
  const order = await newOrder(app, { commonName: domain });
  const { body: answer } = await reissue(app, order, body({ common_name: domain, dns_names: [added] }));
  const { id } = answer.data.certificate;
  const before = await show(app, order);
  await publish(order);
  const { prepared } = await dieBeforeSigning(order);
  assert.equal((await show(app, order)).status, 'reissuing');
  await sweep();
  assert.deepEqual((await show(app, order)).certificate, before.certificate);
  const another = await reissue(app, order, body({ common_name: domain }));
  assert.deepEqual([another.body.code, another.body.details], ['reissue_in_progress', { certificate_id: id }]);
  await requireIssuedAnew(order, id, prepared, 'reissuing');
  const { version, replaces, history } = await certificate(app, order, id);
  assert.deepEqual([version, replaces], [2, order.certificateId]);
  assert.deepEqual(
    history.map((one: { id: string }) => one.id),
    [order.certificateId, id],
    'the voided certificate is not in the history',
  );
});

test('both halves of a dual certificate are created again', async () => {
  const signing = await newSm2Csr();
  const wanted = { product: 'ssl-sm2-dual', certificate: { csr: signing.csr, sign_hash: 'sm3' } };
  const placed = await place([newDomain()], {}, wanted);
  await publish(placed);
  const { prepared } = await dieBeforeSigning(placed, true);
  await sweep();
  assert.equal((await show(app, placed)).status, 'domain_verifing');
  await workerChecks(placed);
  const shown = await certificate(app, placed, placed.certificateId);
  assert.equal(shown.status, 'issued');
  assert.ok(![prepared.preparation.serial, prepared.encryption?.serial].includes(shown.encryption_serial_number));
  assert.ok(openEnvelope(shown.encryption_key_envelope, signing).scalar.length > 0);
});

test('a certificate whose signer is lost repeatedly is still issued, and one canceled meanwhile is not', async () => {
  const placed = await place([newDomain()]);
  for (let count = 0; count < 3; count += 1) {
    await dieBeforeSigning(placed);
    await sweep();
  }
  await publish(placed);
  await workerChecks(placed);
  assert.equal((await show(app, placed)).status, 'issued');

  // The applicant cancels after the signer was lost and before the sweep.
  const order = await newOrder(app);
  await reissue(app, order, body({ dns_names: ['www.example.com', newDomain()] }));
  await dieBeforeSigning(order);
  app.advance(LEASE_MS);
  const canceled = await app.call('PUT', `/openapi/v3/orders/${order.id}/cancel`, { key: order.key });
  assert.deepEqual([canceled.status, canceled.body.data.status], [200, 'issued']);
  await app.issuance.sweep();
  const { status, pending_certificate_id, certificate_id } = await show(app, order);
  assert.deepEqual([status, pending_certificate_id, certificate_id], ['issued', null, order.certificateId]);
});
