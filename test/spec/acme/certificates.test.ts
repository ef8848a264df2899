// Revocation and renewal information over ACME, `replaces`, and what one ACME account sees of another.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { after } from 'node:test';
import { type AcmeClient, acmeKey, newAcmeClient, problemOf } from '../../support/acme.ts';
import {
  acmeCsr,
  b64der,
  dnsIdentifiers,
  downloaded,
  finalized,
  issued,
  placed,
  poll,
  proven,
  sameAccount,
} from '../../support/acme-orders.ts';
import type { Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { type KeyPair, newKeyPair } from '../../support/csr.ts';
import { DAY, startDomainApp } from '../../support/domain-app.ts';
import { certificate, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const GRACE = { ...OWN_PRODUCT, id: 'grace', csr: 'optional', dcv_methods: ['dns'], revocation_grace_hours: 24 };
const world = await startDomainApp({ RESEAL_PRODUCTS_FILE: productsFile(GRACE) });
after(() => world[Symbol.asyncDispose]());
const { app, newDomain } = world;

const idOf = (url: string): string => url.split('/').at(-1) ?? '';

interface Issued {
  readonly key: Key;
  readonly client: AcmeClient;
  readonly name: string;
  readonly certificateKey: KeyPair;
  readonly orderId: string;
  readonly certificateId: string;
  readonly leaf: X509Certificate;
  /** As renewal information has it. */
  readonly certId: string;
}

async function newIssued(key?: Key, more: object = {}, certificateKey = newKeyPair('p256')): Promise<Issued> {
  const owner = key ?? (await app.newKey());
  const client = await newAcmeClient(app, { accountId: owner.accountId });
  const name = newDomain();
  const ready = await proven(world, client, await placed(client, [name], { ...more }));
  const order = await finalized(client, ready, certificateKey);
  const [pem = ''] = await downloaded(client, order);
  const leaf = new X509Certificate(pem);
  const ids = { orderId: idOf(order.url), certificateId: idOf(order.body.certificate) };
  return { key: owner, client, name, certificateKey, ...ids, leaf, certId: certIdOf(leaf) };
}

/** By OpenSSL's reading of the extension, independent of ours. */
function certIdOf({ raw, serialNumber }: X509Certificate): string {
  const at = raw.indexOf(Buffer.from('0603551d23', 'hex'));
  // OID, OCTET STRING, SEQUENCE, [0]: the identifier follows.
  const keyId = raw.subarray(at + 11, at + 11 + (raw[at + 10] ?? 0));
  const sign = Number.parseInt(serialNumber.slice(0, 2), 16) >= 0x80 ? '00' : '';
  return `${b64der(keyId)}.${b64der(Buffer.from(sign + serialNumber, 'hex'))}`;
}

const revokeCert = () => `${app.url}/acme/revoke-cert`;
const payloadOf = ({ leaf }: Issued, reason?: number) => ({
  certificate: b64der(leaf.raw),
  ...(reason !== undefined && { reason }),
});
const revocationOf = async (one: Issued) =>
  (await certificate(app, { key: one.key, id: one.orderId, certificateId: '' }, one.certificateId)).revocation;

/** Signs with the key of the certificate. */
const byCertificateKey = ({ certificateKey, client }: Issued): AcmeClient => {
  const signer = sameAccount(client);
  const privateKey = createPrivateKey(certificateKey.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  signer.key = acmeKey('p256', privateKey, createPublicKey(certificateKey.privateKey));
  signer.kid = undefined;
  return signer;
};

const renewalInfo = (certId: string) => app.call('GET', `/acme/renewal-info/${certId}`);

rule('acme 110', '`revokeCert` revokes a certificate that the account has ordered', async () => {
  const one = await newIssued();
  const answer = await one.client.post(revokeCert(), payloadOf(one, 4));
  assert.deepEqual([answer.status, answer.text], [200, '']);
  const { reason, revoked_at } = await revocationOf(one);
  assert.deepEqual([reason, revoked_at], ['superseded', new Date(app.now()).toISOString()]);
  assert.equal((await show(app, { key: one.key, id: one.orderId, certificateId: '' })).status, 'revoked');
});

rule('acme 111', 'revokes a certificate of whose names that account has valid proofs, all of them', async () => {
  const one = await newIssued();
  const sibling = await newAcmeClient(app, { accountId: one.key.accountId, rights: { nameSuffixes: ['example.com'] } });
  const other = await newAcmeClient(app);
  for (const client of [sibling, other]) {
    const refused = await client.post(revokeCert(), payloadOf(one));
    assert.deepEqual([refused.status, problemOf(refused)], [403, 'unauthorized']);
  }
  await proven(world, other, await placed(other, [one.name]));
  assert.equal((await other.post(revokeCert(), payloadOf(one))).status, 200);
  assert.ok((await revocationOf(one)).revoked_at);
});

rule('acme 111', 'Reason 1 is `badRevocationReason` there', async () => {
  const one = await newIssued();
  // Of the same account and on the same key, with a name that the other tenant does not have.
  const beside = await newIssued(one.key, {}, one.certificateKey);
  const other = await newAcmeClient(app);
  await proven(world, other, await placed(other, [one.name]));
  assert.equal(problemOf(await other.post(revokeCert(), payloadOf(one, 1))), 'badRevocationReason');
  assert.deepEqual([await revocationOf(one), await revocationOf(beside)], [null, null]);
  assert.equal((await other.post(revokeCert(), payloadOf(one, 5))).status, 200);
  assert.equal(problemOf(await other.post(revokeCert(), payloadOf(one, 1))), 'badRevocationReason');
  assert.equal((await revocationOf(one)).reason, 'cessation_of_operation');
  assert.equal(await revocationOf(beside), null);
});

rule('acme 112', '`revokeCert` signed by the key of the certificate, as `jwk`, revokes it', async () => {
  const [one, other] = [await newIssued(), await newIssued()];
  assert.equal(problemOf(await byCertificateKey(other).post(revokeCert(), payloadOf(one))), 'unauthorized');
  assert.equal((await byCertificateKey(one).post(revokeCert(), payloadOf(one))).status, 200);
  assert.ok((await revocationOf(one)).revoked_at);
  assert.equal(await revocationOf(other), null);
});

rule('acme 113', 'Reasons are 0, 1, 3, 4 and 5; another one is `badRevocationReason`', async () => {
  const one = await newIssued();
  for (const reason of [2, 6, 8, 9, 10, -1, 1.5])
    assert.equal(problemOf(await one.client.post(revokeCert(), payloadOf(one, reason))), 'badRevocationReason');
  assert.equal((await one.client.post(revokeCert(), payloadOf(one, 0))).status, 200);
  for (const [code, word] of [
    [3, 'affiliation_changed'],
    [5, 'cessation_of_operation'],
  ] as const) {
    const next = await newIssued();
    await next.client.post(revokeCert(), payloadOf(next, code));
    assert.equal((await revocationOf(next)).reason, word);
  }
});

rule(
  'acme 114',
  'A certificate that is revoked is `alreadyRevoked`, and one that was not issued here is answered 404',
  async () => {
    const one = await newIssued();
    await one.client.post(revokeCert(), payloadOf(one));
    assert.equal(problemOf(await one.client.post(revokeCert(), payloadOf(one))), 'alreadyRevoked');
    const altered = Buffer.from(one.leaf.raw);
    altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
    const unknown = await one.client.post(revokeCert(), { certificate: b64der(altered) });
    assert.deepEqual([unknown.status, problemOf(unknown)], [404, 'malformed']);
    assert.equal(problemOf(await one.client.post(revokeCert(), { certificate: 'AAAA' })), 'malformed');
  },
);

rule('acme 115', 'is blocked for all accounts, and every certificate on it is revoked', async () => {
  const one = await newIssued();
  const other = await newAcmeClient(app);
  const name = newDomain();
  const order = await proven(world, other, await placed(other, [name]));
  assert.equal((await byCertificateKey(one).post(revokeCert(), payloadOf(one, 1))).status, 200);
  assert.equal((await revocationOf(one)).reason, 'key_compromise');
  const csr = acmeCsr([name], one.certificateKey);
  assert.equal(problemOf(await other.post(order.body.finalize, { csr })), 'badCSR');
});

rule('acme 115', 'also if the one that it names was revoked before', async () => {
  const one = await newIssued();
  const elsewhere = await newIssued(undefined, {}, one.certificateKey);
  // The account's own report counts in the account alone.
  assert.equal((await one.client.post(revokeCert(), payloadOf(one, 1))).status, 200);
  assert.equal(await revocationOf(elsewhere), null);
  assert.equal(problemOf(await byCertificateKey(one).post(revokeCert(), payloadOf(one, 1))), 'alreadyRevoked');
  assert.equal((await revocationOf(elsewhere)).reason, 'key_compromise');
});

rule(
  'acme 117',
  "in the last third of the certificate's life, the same each time and spread over certificates",
  async () => {
    const [one, other] = [await newIssued(), await newIssued()];
    const answer = await renewalInfo(one.certId);
    assert.equal(answer.status, 200, answer.text);
    const { start, end } = answer.body.suggestedWindow;
    const { validFromDate, validToDate } = one.leaf;
    const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
    assert.ok(Date.parse(start) >= from + ((to - from) * 2) / 3 - 1_000 && Date.parse(start) < Date.parse(end));
    assert.ok(Date.parse(end) < to);
    assert.equal(answer.headers.get('retry-after'), '21600');
    assert.deepEqual((await renewalInfo(one.certId)).body, answer.body);
    assert.notEqual((await renewalInfo(other.certId)).body.suggestedWindow.start, start);
  },
);

rule('acme 118', 'its window has passed, and `Retry-After` is a minute', async () => {
  const [revoked, scheduled] = [await newIssued(), await newIssued()];
  await revoked.client.post(revokeCert(), payloadOf(revoked));
  const { accountId } = scheduled.key;
  const dueAt = app.now() + 10 * DAY;
  await app.app.store.revocations.schedule(accountId, scheduled.certificateId, {
    ...{ reason: 'superseded', cause: 'requested', causedById: null, dueAt, revokedAt: null },
  });
  for (const { certId } of [revoked, scheduled]) {
    const { body, headers } = await renewalInfo(certId);
    assert.ok(Date.parse(body.suggestedWindow.end) < app.now());
    assert.equal(headers.get('retry-after'), '60');
  }
  // A client that polls renews before it happens, and the revocation comes as scheduled.
  const { client, name, certId } = scheduled;
  const renewed = await finalized(client, await placed(client, [name], { replaces: certId }));
  assert.deepEqual([renewed.body.status, (await revocationOf(scheduled)).revoked_at], ['valid', null]);
  app.advance(10 * DAY);
  await app.issuance.revocationChores.find(({ name: chore }) => chore === 'revoke')?.run();
  assert.ok((await revocationOf(scheduled)).revoked_at);
});

rule('acme 119', 'any other spelling, and the id of no certificate, is answered 404', async () => {
  const { certId } = await newIssued();
  const [keyId = '', serial = ''] = certId.split('.');
  const zero = b64der(Buffer.concat([Buffer.of(0), Buffer.from(serial, 'base64url')]));
  const texts = [`${certId}=`, `${keyId}.${zero}`, `${keyId}.AQ`, `AQ.${serial}`, keyId, `.${serial}`, 'x'.repeat(500)];
  for (const text of texts) assert.equal((await renewalInfo(text)).status, 404, text);
  assert.equal((await app.call('POST', `/acme/renewal-info/${certId}`)).status, 405);
});

rule('acme 120', '`replaces` of the new order and `replaced_by` of the old one name each other', async () => {
  const one = await newIssued();
  const order = await placed(one.client, [one.name], { replaces: one.certId });
  assert.equal(order.body.replaces, one.certId);
  const id = idOf(order.url);
  const [fresh, old] = [
    await show(app, { key: one.key, id, certificateId: '' }),
    await show(app, { key: one.key, id: one.orderId, certificateId: '' }),
  ];
  assert.deepEqual([fresh.replaces, fresh.replaced_by, old.replaces, old.replaced_by], [one.orderId, null, null, id]);
});

rule('acme 121', 'must name a certificate that the same ACME account has ordered, else `unauthorized`', async () => {
  const one = await newIssued();
  const sibling = await newAcmeClient(app, { accountId: one.key.accountId });
  const post = async (client: AcmeClient, name: string, replaces: string) =>
    problemOf(await client.post(`${app.url}/acme/new-order`, { identifiers: dnsIdentifiers([name]), replaces }));
  assert.equal(await post(sibling, one.name, one.certId), 'unauthorized');
  assert.equal(await post(one.client, one.name, 'AQ.AQ'), 'unauthorized');
  assert.equal(await post(one.client, newDomain(), one.certId), 'malformed');
});

rule('acme 122', 'is answered 409 `alreadyReplaced`, unless that order is invalid', async () => {
  const one = await newIssued();
  const more = newDomain();
  const order = await placed(one.client, [one.name, more], { replaces: one.certId });
  const again = { identifiers: dnsIdentifiers([one.name]), replaces: one.certId };
  const refused = await one.client.post(`${app.url}/acme/new-order`, again);
  assert.deepEqual([refused.status, problemOf(refused)], [409, 'alreadyReplaced']);
  const { body } = await one.client.post(order.body.authorizations[1]);
  await one.client.post(body.challenges.find(({ type }: { type: string }) => type === 'dns-01').url, {});
  assert.equal((await poll(one.client, order.url)).body.status, 'invalid');
  assert.equal((await one.client.post(`${app.url}/acme/new-order`, again)).status, 201);
});

rule('acme 123', "revoked after the product's grace, once the new certificate is issued", async () => {
  const key = await app.newKey();
  for (const [revokesReplaced, product, after] of [
    [false, 'ssl-dv', null],
    [true, 'ssl-dv', 0],
    [true, 'grace', DAY],
  ] as const) {
    const client = await newAcmeClient(app, { accountId: key.accountId, rights: { revokesReplaced } });
    const name = newDomain();
    const first = await issued(world, client, [name], { profile: product });
    const old = { key, certificateId: idOf(first.body.certificate), orderId: idOf(first.url) };
    const [pem = ''] = await downloaded(client, first);
    const replaces = certIdOf(new X509Certificate(pem));
    const renewal = await placed(client, [name], { profile: product, replaces });
    const scheduled = async () =>
      (await certificate(app, { key, id: old.orderId, certificateId: '' }, old.certificateId)).revocation;
    assert.equal(await scheduled(), null);
    await finalized(client, await proven(world, client, renewal));
    const revocation = await scheduled();
    assert.equal(revocation && Date.parse(revocation.due_at) - app.now(), after);
    if (after !== 0) continue;
    await app.issuance.revocationChores.find(({ name: chore }) => chore === 'revoke')?.run();
    assert.equal((await show(app, { key, id: old.orderId, certificateId: '' })).status, 'revoked');
    assert.equal((await client.post(renewal.url)).body.status, 'valid');
  }
});

rule('acme 124', 'are answered 404 to every other, also to one of the same tenant', async () => {
  const one = await newIssued();
  const open = await placed(one.client, [newDomain()]);
  const [authorization] = open.body.authorizations;
  const { body } = await one.client.post(authorization);
  const sibling = await newAcmeClient(app, { accountId: one.key.accountId });
  const certificateUrl = (await one.client.post(`${app.url}/acme/order/${one.orderId}`)).body.certificate;
  for (const other of [sibling, await newAcmeClient(app)]) {
    const requests: [string, unknown][] = [
      [open.url, undefined],
      [open.body.finalize, { csr: acmeCsr([one.name]) }],
      [authorization, undefined],
      [authorization, { status: 'deactivated' }],
      [body.challenges[0].url, {}],
      [certificateUrl, undefined],
    ];
    for (const [url, payload] of requests) assert.equal((await other.post(url, payload)).status, 404, url);
    assert.deepEqual((await other.post(`${other.kid}/orders`)).body, { orders: [] });
  }
  assert.equal((await one.client.post(authorization)).body.status, 'pending');
});
