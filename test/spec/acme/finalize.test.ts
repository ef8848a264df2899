// Finalization: the CSR, the issuance, the certificate.
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import { SIGNING_LEASE_MS } from '../../../src/domain/issuance/ports.ts';
import { type AcmeClient, newAcmeClient, problemOf } from '../../support/acme.ts';
import {
  type AcmeOrderUrls,
  acmeCsr,
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
import { ISSUERS, pendingRowOf, startDomainApp } from '../../support/domain-app.ts';
import { reissue, body as reissueBody, show } from '../../support/orders.ts';
import { HOLDS } from '../../support/signings.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, newDomain, dns } = world;

const idOf = (url: string): string => url.split('/').at(-1) ?? '';
const placedOf = (key: Key, { url }: AcmeOrderUrls) => ({ key, id: idOf(url), certificateId: '' });

async function tenant(): Promise<{ key: Key; client: AcmeClient }> {
  const key = await app.newKey();
  return { key, client: await newAcmeClient(app, { accountId: key.accountId }) };
}

const ready = async (client: AcmeClient, ...names: string[]): Promise<AcmeOrderUrls> =>
  await proven(world, client, await placed(client, names));

const refusal = async (client: AcmeClient, { body }: AcmeOrderUrls, csr: string): Promise<string> =>
  problemOf(await client.post(body.finalize, { csr }));

rule('acme 95', 'is answered 403 `orderNotReady`', async () => {
  const { client } = await tenant();
  const name = newDomain();
  const order = await placed(client, [name]);
  const pending = await client.post(order.body.finalize, { csr: acmeCsr([name]) });
  assert.deepEqual([pending.status, problemOf(pending)], [403, 'orderNotReady']);
  await finalized(client, await proven(world, client, order));
  assert.equal(await refusal(client, order, acmeCsr([name])), 'orderNotReady');
});

rule('acme 96', 'must be those of the order, in any case and order', async () => {
  const { client } = await tenant();
  const [one, two] = [newDomain(), newDomain()];
  const order = await ready(client, one, two);
  for (const csr of [
    acmeCsr([one]),
    acmeCsr([one, two, newDomain()]),
    acmeCsr([one, two], undefined, newDomain()),
    acmeCsr([one, two, '192.0.2.1']),
    acmeCsr([]),
    'AAAA',
  ])
    assert.equal(await refusal(client, order, csr), 'badCSR');
  assert.equal(problemOf(await client.post(order.body.finalize, { csr: '-----BEGIN' })), 'malformed');
  assert.equal((await client.post(order.url)).body.status, 'ready');
  const csr = acmeCsr([two.toUpperCase(), one], undefined, one.toUpperCase());
  assert.equal((await client.post(order.body.finalize, { csr })).status, 200);
  const [leaf = ''] = await downloaded(client, { ...order, body: (await poll(client, order.url)).body });
  assert.deepEqual(
    new Set(new X509Certificate(leaf).subjectAltName?.split(', ')),
    new Set([`DNS:${one}`, `DNS:${two}`]),
  );
});

rule(
  'acme 97',
  "A CSR of the ACME account's own key, of a weak key or of one on the blocklist is `badCSR`",
  async () => {
    const { client } = await tenant();
    const name = newDomain();
    const order = await ready(client, name);
    const { privateKey, publicKey } = client.key;
    const own: KeyPair = { privateKey, spki: new Uint8Array(publicKey.export({ format: 'der', type: 'spki' })) };
    assert.equal(await refusal(client, order, acmeCsr([name], own)), 'badCSR');
    const blocked = newKeyPair('p256');
    const fingerprint = createHash('sha256').update(blocked.spki).digest('hex');
    await app.app.store.blockedKeys.add(fingerprint, 'key_compromise', app.now());
    assert.equal(await refusal(client, order, acmeCsr([name], blocked)), 'badCSR');
    assert.equal(await refusal(client, order, acmeCsr([name], newKeyPair('ed25519'))), 'badCSR');
    assert.equal((await finalized(client, order)).body.status, 'valid');
  },
);

rule('acme 98', 'with `order:issued`, an audit row, and the id in the certificate URL', async () => {
  const { client, key } = await tenant();
  const order = await issued(world, client, [newDomain()]);
  const id = idOf(order.body.certificate);
  const shown = await show(app, placedOf(key, order));
  assert.deepEqual([shown.status, shown.certificate_id, shown.certificate.status], ['issued', id, 'issued']);
  const { body } = await app.call('GET', '/openapi/v3/account/callback/deliveries', { key });
  assert.deepEqual(
    body.data.deliveries.map(({ action, order_id, cert_id }: never) => [action, order_id, cert_id]),
    [['order:issued', shown.id, id]],
  );
  const { body: log } = await app.call('GET', '/openapi/v3/account/audit', { key });
  const rows = log.data.audit.filter(({ subject }: { subject: string }) => subject === shown.id);
  assert.deepEqual(
    rows.map(({ action, actor }: never) => [action, actor]),
    ['order:placed', 'certificate:issued'].map((action) => [action, `acme:${idOf(client.kid ?? '')}`]),
  );
});

rule('acme 99', 'the certificate first, then its issuers, without the root', async () => {
  const { client } = await tenant();
  const order = await issued(world, client, [newDomain()]);
  const answer = await client.post(order.body.certificate);
  assert.equal(answer.headers.get('content-type'), 'application/pem-certificate-chain');
  const chain = (await downloaded(client, order)).map((one) => new X509Certificate(one));
  assert.equal(answer.text, chain.map((one) => one.toString()).join(''));
  for (const [index, one] of chain.entries()) {
    const above = chain[index + 1];
    if (above) assert.ok(one.checkIssued(above) && one.verify(above.publicKey));
    assert.ok(!one.checkIssued(one));
  }
});

rule('acme 100', 'also after the order was reissued', async () => {
  const { client, key } = await tenant();
  const name = newDomain();
  const order = await issued(world, client, [name]);
  const before = await downloaded(client, order);
  const { status, text } = await reissue(app, placedOf(key, order), reissueBody({ common_name: name, dns_names: [] }));
  assert.equal(status, 200, text);
  assert.notEqual((await show(app, placedOf(key, order))).certificate_id, idOf(order.body.certificate));
  assert.deepEqual(await downloaded(client, { ...order, body: (await client.post(order.url)).body }), before);
});

rule(
  'acme 101',
  '`accounturi` may name the ACME account, and `validationmethods` is judged by the challenge',
  async () => {
    const { client, key } = await tenant();
    const [issuer] = ISSUERS;
    const outcomes: Record<string, string> = {};
    const other = await newAcmeClient(app, { accountId: key.accountId });
    for (const parameters of [
      `accounturi=${client.kid}`,
      `accounturi=${other.kid}`,
      'validationmethods=dns-01',
      'validationmethods=http-01',
    ]) {
      const name = newDomain();
      const order = await ready(client, name);
      dns.set(name, 'CAA', [{ flags: 0, tag: 'issue', value: `${issuer}; ${parameters}` }]);
      const answer = await client.post(order.body.finalize, { csr: acmeCsr([name]) });
      outcomes[parameters] = answer.status === 200 ? 'issued' : problemOf(answer);
      if (answer.status === 200) continue;
      assert.deepEqual(answer.body.subproblems[0].identifier, { type: 'dns', value: name });
      const { body } = await client.post(order.url);
      assert.deepEqual([body.status, body.error.type], ['invalid', answer.body.type]);
    }
    assert.deepEqual(Object.values(outcomes), ['issued', 'caa', 'issued', 'caa']);
  },
);

rule('acme 101', '`validationmethods` is judged by the challenge that validated the name', async () => {
  const { client } = await tenant();
  const [issuer] = ISSUERS;
  const name = newDomain();
  dns.set(name, 'CAA', [{ flags: 0, tag: 'issue', value: `${issuer}; validationmethods=dns-persist-01` }]);
  const order = await placed(client, [name]);
  const [authorization] = order.body.authorizations;
  const { challenges } = (await client.post(authorization)).body;
  const persist = challenges.find(({ type }: { type: string }) => type === 'dns-persist-01');
  dns.set(`_validation-persist.${name}`, 'TXT', [`${issuer}; accounturi=${persist.accounturi}`]);
  await client.post(persist.url, {});
  assert.equal((await poll(client, authorization)).body.status, 'valid');
  assert.equal((await finalized(client, order)).body.status, 'valid');
});

rule('acme 101', 'A reissue through the order interface is not asked for by the ACME account', async () => {
  const { client, key } = await tenant();
  const [issuer] = ISSUERS;
  const name = newDomain();
  const order = await issued(world, client, [name]);
  const only = (uri: string | undefined) =>
    dns.set(name, 'CAA', [{ flags: 0, tag: 'issue', value: `${issuer}; accounturi=${uri}` }]);
  only(client.kid);
  const of = placedOf(key, order);
  const { status, text } = await reissue(app, of, reissueBody({ common_name: name, dns_names: [] }));
  assert.equal(status, 200, text);
  await world.workerChecks(of);
  const shown = await show(app, of);
  assert.deepEqual([shown.status, shown.certificate_id], ['reissuing', idOf(order.body.certificate)]);
});

rule('acme 102', 'the order is `processing` with `Retry-After`, and issued once they are answered', async () => {
  const { client, key } = await tenant();
  const name = newDomain();
  const order = await ready(client, name);
  dns.set(name, 'CAA', 'servfail');
  const answer = await client.post(order.body.finalize, { csr: acmeCsr([name]) });
  assert.deepEqual([answer.status, answer.body.status, answer.headers.get('retry-after')], [200, 'processing', '1']);
  const waiting = await pendingRowOf(app, placedOf(key, order));
  assert.ok(waiting && waiting.expiresAt - app.now() === 600_000);
  dns.set(name, 'CAA', 'nodata');
  await world.workerChecks(placedOf(key, order));
  assert.equal((await client.post(order.url)).body.status, 'valid');
});

test('a certificate that waits is not issued once the operator has disabled its ACME account', async () => {
  const { client, key } = await tenant();
  const name = newDomain();
  const order = await ready(client, name);
  dns.set(name, 'CAA', 'servfail');
  await client.post(order.body.finalize, { csr: acmeCsr([name]) });
  await app.app.store.acmeAccounts.end(idOf(client.kid ?? ''), 'revoked');
  dns.set(name, 'CAA', 'nodata');
  await world.workerChecks(placedOf(key, order));
  const { status, certificate_id } = await show(app, placedOf(key, order));
  assert.deepEqual([status, certificate_id], ['rejected', null]);
});

rule('acme 103', 'An order whose CSR was accepted is issued although its signer dies', async () => {
  const { client, key } = await tenant();
  const name = newDomain();
  const order = await ready(client, name);
  const { store } = app.app;
  const { orders } = store;
  const { id, accountId } = { id: idOf(order.url), accountId: key.accountId };
  dns.set(name, 'CAA', 'servfail');
  await client.post(order.body.finalize, { csr: acmeCsr([name]) });
  dns.set(name, 'CAA', 'nodata');
  const found = (await orders.find(accountId, id)) ?? assert.fail();
  const record = (await store.certificates.find(accountId, found.pendingCertificateId ?? '')) ?? assert.fail();
  // What a signer leaves that dies between the two writes.
  const issuerId = app.issuance.issuers.find(({ role }) => role === 'issuing')?.id ?? '';
  await store.transaction(async (tx) => {
    await tx.orders.save({ ...found, status: 'issuing' });
    const at = app.now();
    const dates = { notBefore: at, notAfter: at + 1_000, preparedAt: at, leaseEndsAt: at + SIGNING_LEASE_MS };
    const preparation = { issuerId, serial: '5e41ac3e01', ...dates };
    assert.ok(record.state === 'pending');
    const prepared = {
      ...record,
      state: 'prepared',
      preparation,
      toBeSigned: Buffer.from('x'),
      encryption: null,
    } as const;
    assert.ok(await tx.signings.begin(prepared, { ...HOLDS, revision: found.revision + 1 }));
  });
  assert.equal((await client.post(order.url)).body.status, 'processing');
  app.advance(SIGNING_LEASE_MS + 1);
  await app.issuance.sweep();
  await world.workerChecks(placedOf(key, order));
  const { body } = await sameAccount(client).post(order.url);
  assert.deepEqual([body.status, idOf(body.certificate)], ['valid', record.id]);
});
