// Profiles of private trust: Ed25519 keys, client authentication, the subject of a holder, and short-lived certificates.
// openssl verifies them where it is installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCertificate } from '../../../src/adapters/ca/certificate-reader.ts';
import { nameText } from '../../../src/adapters/ca/distinguished-name.ts';
import { distinguishedName } from '../../../src/adapters/ca/to-be-signed.ts';
import { explicit } from '../../../src/adapters/der/writer.ts';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { asInFile } from '../../../src/domain/catalog/products-file.ts';
import { NO_FIELDS } from '../../../src/domain/certificate/subject.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { newFolder } from '../../support/app.ts';
import { caChain, importExternal, nameConstraints } from '../../support/authority.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, show } from '../../support/orders.ts';
import { productsFile } from '../../support/products.ts';
import { derOf, ocspStatus, readCrl } from '../../support/status.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const rowOf = (id: string) => {
  const product = PRODUCTS.find((one) => one.id === id) ?? assert.fail(id);
  return { ...asInFile(product), id: `short-${id}`, aliases: [], short_lived: true, max_validity_days: 7 };
};
const { app, requireRefused, requireIssued } = await startWatchedApp({
  RESEAL_PRODUCTS_FILE: productsFile(rowOf('tls-private'), rowOf('client-auth')),
});

const DAY = 86_400_000;
const CRLS = '2.5.29.31';
const NO_REVOCATION = '2.5.29.56';
const SUBJECT = { country: 'DE', organization: 'Müller, "Söhne" + Co', organizationalUnit: 'R&D' };
const SUBJECT_VIEW = { country: 'DE', organization: SUBJECT.organization, organizational_unit: 'R&D' };

const folder = newFolder();
/** Does nothing where openssl is not installed. */
function requireVerified({ pem, ica_pem, root_pem }: Record<string, string>, purpose: string): void {
  const write = (name: string, text = '') => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const files = ['-CAfile', write('root.pem', root_pem), '-untrusted', write('issuing.pem', ica_pem)];
  const at = ['-attime', String(Math.floor(app.now() / 1000))];
  const args = ['verify', '-x509_strict', ...at, '-purpose', purpose, ...files, write('leaf.pem', pem)];
  const { error, status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
  if (!error) assert.equal(status, 0, stderr);
}

const shown = (order: PlacedOrder) => certificate(app, order, order.certificateId);
const subjectOf = (pem: string): string => nameText(readCertificate(derOf(pem)).subject);

rule('key 5', 'Products of private trust for TLS servers and clients certify Ed25519 keys', async () => {
  for (const [product, purpose] of [
    ['tls-private', 'sslserver'],
    ['client-auth', 'sslclient'],
  ] as const) {
    const order = await newOrder(app, { product, key: 'ed25519' });
    const found = await shown(order);
    const { publicKey } = new X509Certificate(found.pem);
    assert.equal(publicKey.asymmetricKeyType, 'ed25519');
    requireVerified(found, purpose);
    await requireIssued(order, body({ csr: csrFor('ed25519') }));
    await requireIssued(order, body({ csr: csrFor('p256') }));
  }
});

rule('key 5', 'no product of public trust does', async () => {
  const order = await newOrder(app);
  const sent = body({ csr: csrFor('ed25519') });
  const { message } = await requireRefused(order, sent, [400, 'invalid_csr', 'certificate.csr']);
  assert.match(message, /does not certify this key \(ed25519/);
});

rule('issuer 5', 'Certificates of a client-authentication product name a holder', async () => {
  const order = await newOrder(app, { product: 'client-auth', commonName: 'jane@example.com' });
  const { pem, ...chain } = await shown(order);
  const leaf = new X509Certificate(pem);
  assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  assert.deepEqual([subjectOf(pem), leaf.subjectAltName], ['CN=jane@example.com', undefined]);
  requireVerified({ pem, ...chain }, 'sslclient');
  const json = body({ common_name: 'jane@example.com' });
  const answer = await app.call('POST', '/openapi/v3/orders/client-auth', { key: order.key, json });
  requireError(answer, [403, 'permission_denied']);
});

rule('issuer 5', 'those of document signing carry the usage of RFC 9336 and that of Microsoft', async () => {
  const order = await newOrder(app, { product: 'document-signing', commonName: 'Jane' });
  const { keyUsage } = new X509Certificate((await shown(order)).pem);
  assert.deepEqual(keyUsage, ['1.3.6.1.5.5.7.3.36', '1.3.6.1.4.1.311.10.3.12']);
});

rule('order 20', 'every certificate of the order has them in its subject', async () => {
  for (const product of ['code-signing', 'document-signing', 'client-auth']) {
    const order = await newOrder(app, { product, commonName: 'Jane', subject: SUBJECT });
    const { country, organization, organizational_unit } = await show(app, order);
    assert.deepEqual({ country, organization, organizational_unit }, SUBJECT_VIEW);
    const again = await requireIssued(order, body({ common_name: 'Jane', csr: csrFor('p384') }));
    for (const found of [await shown(order), again]) {
      assert.equal(subjectOf(found.pem), 'C=DE, O=Müller, "Söhne" + Co, OU=R&D, CN=Jane');
      assert.deepEqual([found.country, found.organization, found.organizational_unit], Object.values(SUBJECT_VIEW));
      requireVerified(found, 'any');
    }
  }
  const without = await show(app, await newOrder(app));
  assert.deepEqual([without.country, without.organization, without.organizational_unit], [null, null, null]);
});

rule('order 20', 'anything else is `invalid_parameters` naming the field', async () => {
  const table: [object, string, string?][] = [
    [{ country: 'Germany' }, 'country'],
    [{ country: 'de' }, 'country'],
    [{ organization: '' }, 'organization'],
    [{ organization: 'x'.repeat(65) }, 'organization'],
    [{ organization: 'a\nb' }, 'organization'],
    [{ organizationalUnit: '\u202e' }, 'organizational_unit'],
    [{ organization: 'Acme' }, 'organization', 'ssl-dv'],
  ];
  for (const [change, field, product = 'code-signing'] of table) {
    const placing = newOrder(app, { product, subject: { ...NO_FIELDS, ...change } });
    await assert.rejects(
      placing,
      (error) => error instanceof Refusal && error.code === 'invalid_parameters' && error.facts.field === field,
      JSON.stringify(change),
    );
  }
  await newOrder(app, { product: 'code-signing', subject: { ...NO_FIELDS, organization: '😀'.repeat(64) } });
});

rule('certificate 9', 'A certificate of a short-lived product ends within seven days', async () => {
  for (const product of ['short-tls-private', 'short-client-auth']) {
    const order = await newOrder(app, { product });
    const found = await shown(order);
    const issuer = derOf(found.ica_pem);
    const { extensions } = readCertificate(derOf(found.pem));
    assert.ok(Date.parse(found.not_after) - Date.parse(found.not_before) < 7 * DAY);
    assert.equal(extensions.has(CRLS), false);
    assert.match(new X509Certificate(found.pem).infoAccess ?? '', /^CA Issuers - URI:\S+\n?$/);
    const said = extensions.get(NO_REVOCATION);
    assert.deepEqual(said && [said.isCritical, [...said.value]], [false, [5, 0]]);
    requireVerified(found, product === 'short-client-auth' ? 'sslclient' : 'sslserver');
    // Revoked all the same, for verifiers that have the CRL of the issuer or ask its responder.
    const { serial_number: serial } = found;
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'good');
    const json = { reason: 'superseded' };
    const answer = await app.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key, json });
    assert.equal(answer.status, 200, answer.text);
    assert.equal((await ocspStatus(app, serial, issuer)).status, 'revoked');
    const record = await app.app.store.certificates.find(order.key.accountId, order.certificateId);
    const issuerId = record?.state === 'issued' ? record.preparation.issuerId : assert.fail();
    const shard = Number.parseInt(serial.slice(-2), 16) % 16;
    const crl = await (await fetch(`${app.url}/crl/${issuerId}/${shard}.crl`)).arrayBuffer();
    assert.ok(readCrl(new Uint8Array(crl), issuer).revoked.has(serial));
  }
});

rule('order 20', 'name constraints on directory names apply to the whole subject', async () => {
  const permitted = [explicit(4, distinguishedName({ country: 'DE', organization: 'Corp' }))];
  const name = { country: 'DE', organization: 'Corp', commonName: 'Corp Code Signing' };
  const ca = caChain([{}, { name, extensions: [nameConstraints({ permitted })] }], app.now());
  await importExternal(app, ca, { purposes: ['code-signing'] });
  const place = (subject: object) =>
    newOrder(app, { product: 'code-signing', commonName: 'Jane', subject: { ...NO_FIELDS, ...subject } });
  requireVerified(await shown(await place({ country: 'DE', organization: 'CORP', organizationalUnit: 'QA' })), 'any');
  for (const [outside, text] of [
    [{}, 'Jane'],
    [{ organization: 'Corp' }, 'O=Corp, CN=Jane'],
    [{ country: 'DE', organization: 'Corp Ltd' }, 'C=DE, O=Corp Ltd, CN=Jane'],
  ] as const) {
    await assert.rejects(place(outside), (error) => {
      assert.ok(error instanceof Refusal && error.code === 'invalid_sans');
      assert.deepEqual(error.facts.details, { name: text, constraint: 'permitted DirName:C=de, O=corp' });
      return error.facts.field === 'certificate.common_name';
    });
  }
});

rule('catalog 5', 'Every product tells its trust and whether it is short-lived', async () => {
  const { body: listed } = await app.call('GET', '/openapi/v3/products', { key: await app.newKey() });
  const facts = new Map(
    listed.data.products.map((one: Record<string, unknown>) => [one.id, [one.kind, one.trust, one.short_lived]]),
  );
  assert.deepEqual(facts.get('ssl-dv'), ['ssl', 'public', false]);
  assert.deepEqual(facts.get('client-auth'), ['client_auth', 'private', false]);
  assert.deepEqual(facts.get('short-tls-private'), ['ssl', 'private', true]);
});
