// The CSR: accepted encodings, what is taken from it and what is ignored, reasons for refusal, and the key that is
// reused without a CSR.
import assert from 'node:assert/strict';
import { checkPrimeSync, generatePrimeSync, hash, X509Certificate } from 'node:crypto';
import { oid, sequence, setOf, utf8String } from '../../../src/adapters/der/writer.ts';
import { NOON, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import * as make from '../../support/csr.ts';
import { csr, KEY_KINDS, keyPair, newKeyPair, pem } from '../../support/csr.ts';
import { body, certificate, csrFor, newOrder, reissue, spkiIn } from '../../support/orders.ts';
import { OWN_PRODUCT, PUBLIC_TLS, productsFile } from '../../support/products.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';
import * as wrong from '../../support/wrong-csrs.ts';

const { app, requireBad, requireIssued } = await startWatchedApp();

const CSR = 'certificate.csr';
const CONSENT = { i_know_will_revoke_last_cert: true };

rule(
  'reissue 17',
  'may have CRLF line ends, the label `NEW CERTIFICATE REQUEST`, or be bare base64 without any label',
  async () => {
    const order = await newOrder(app);
    const key = newKeyPair('p256');
    const der = csr({ key });
    const base64 = Buffer.from(der).toString('base64');
    for (const text of [
      pem(der),
      pem(der, 'CERTIFICATE REQUEST', '\r\n'),
      pem(der, 'NEW CERTIFICATE REQUEST'),
      pem(der, 'NEW CERTIFICATE REQUEST', '\r\n', 76),
      base64,
      `${base64}\n`,
      (base64.match(/.{1,64}/g) ?? []).join('\r\n'),
      `\n\n${pem(der)}\n\n`,
      pem(der).trimEnd(),
    ]) {
      const found = await requireIssued(order, body({ csr: text }), text);
      assert.deepEqual(spkiIn(found), key.spki);
      assert.equal(found.csr, text, 'shown as it was sent');
    }
  },
);

rule('reissue 18', 'its subject and extensions have no influence on the names', async () => {
  const order = await newOrder(app);
  const subject = sequence([
    make.name('2.5.4.3', utf8String('evil.example.org')),
    make.name('2.5.4.10', utf8String('Evil Corp')),
  ]);
  const challenge = sequence([oid('1.2.840.113549.1.9.7'), setOf([utf8String('secret')])]);
  const attributes = make.attributesOf(make.EXTENSION_REQUEST, challenge);
  const key = newKeyPair('p384');
  for (const parts of [
    { key, subject },
    { key, subject, attributes },
    { key, subject: sequence([]) },
  ]) {
    const found = await requireIssued(order, body({ csr: pem(csr(parts)) }));
    const leaf = new X509Certificate(found.pem);
    assert.deepEqual([leaf.subject, leaf.subjectAltName], ['CN=www.example.com', 'DNS:www.example.com']);
    assert.deepEqual(found.dns_names, ['www.example.com']);
    assert.deepEqual(spkiIn(found), key.spki);
  }
  for (const parts of Object.values(wrong.VALID_CSRS)) await requireIssued(order, body({ csr: pem(csr(parts)) }));
});

rule('reissue 19', 'must verify with an algorithm that fits its key and uses neither SHA-1 nor MD5', async () => {
  const order = await newOrder(app);
  for (const table of [wrong.BAD_SIGNATURES, wrong.BROKEN_HASHES, wrong.BAD_ALGORITHMS]) {
    for (const [what, parts] of Object.entries(table)) {
      await requireBad(order, body({ csr: pem(csr(parts)) }), CSR, 'invalid_csr', what);
    }
  }
});

rule(
  'errors invalid_csr',
  'the CSR cannot be read, its signature does not verify, or its key is not acceptable',
  async () => {
    const order = await newOrder(app);
    const good = csrFor();
    const texts = [
      ...[
        'x',
        '%%%',
        '{}',
        '\0',
        ' ',
        '-----BEGIN CERTIFICATE REQUEST-----',
        good.slice(0, -40),
        good + good,
        `${good}x`,
      ],
      ...[good.replaceAll('\n', '\\n'), pem(csr(), 'CERTIFICATE'), 'A'.repeat(100_000), good.replace('BEGIN', 'begin')],
      (await certificate(app, order, order.certificateId)).pem,
      keyPair('p256').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
    ];
    for (const text of texts) await requireBad(order, body({ csr: text }), CSR, 'invalid_csr', text.slice(0, 50));
    for (const table of [wrong.BAD_FORMS, wrong.BAD_SUBJECTS]) {
      for (const [what, parts] of Object.entries(table)) {
        await requireBad(order, body({ csr: pem(csr(parts)) }), CSR, 'invalid_csr', what);
      }
    }
    await requireBad(order, body({ csr: pem(csr(wrong.BAD_SIGNATURES['the key of another'])) }), CSR, 'invalid_csr');
    await using own = await startApp({
      RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, id: 'narrow', csr: 'optional' }),
    });
    const answer = await reissue(own, await newOrder(own, { product: 'narrow' }), body({ csr: csrFor('p384') }));
    requireError(answer, [400, 'invalid_csr', CSR]);
  },
);

const prime = (bits: number) => generatePrimeSync(bits, { bigint: true });

rule(
  'certificate 4',
  'RSA of at least 2048 bits, or on P-256, P-384 or P-521, and not known to be weak or compromised',
  async () => {
    const order = await newOrder(app);
    for (const kind of KEY_KINDS) await requireIssued(order, body({ csr: csrFor(kind) }), kind);
    const refused = (csr: string, what: string) => requireBad(order, body({ csr }), CSR, 'invalid_csr', what);
    for (const table of [wrong.BAD_KEYS, wrong.BAD_POINTS, wrong.OFF_CURVE, wrong.BAD_EXPONENTS]) {
      for (const [what, parts] of Object.entries(table)) await refused(pem(csr(parts)), what);
    }
    await refused(pem(csr({ key: make.rsaFromPrimes(prime(512), prime(512)) })), 'RSA of 1024 bits');
    await refused(pem(csr({ key: make.rsaFromPrimes(prime(1020), prime(1020)) })), 'RSA below 2048 bits');
    const p = prime(1024);
    let q = p + (1n << 100n);
    while (!checkPrimeSync(q)) q += 2n;
    assert.match(
      (await refused(pem(csr({ key: make.rsaFromPrimes(p, q) })), 'close primes')).message,
      /close together/,
    );
    const compromised = newKeyPair('p256');
    const text = pem(csr({ key: compromised }));
    await requireIssued(order, body({ csr: text }));
    await app.app.store.blockedKeys.add(hash('sha256', compromised.spki), 'test', NOON);
    assert.match((await refused(text, 'a listed key')).message, /compromised/);
    for (const product of PUBLIC_TLS) {
      const other = await newOrder(app, { product });
      await requireBad(other, body({ csr: text }, CONSENT), CSR, 'invalid_csr', product);
    }
  },
);

rule('reissue 21', 'a reissue without one certifies the public key of the last certificate again', async () => {
  for (const product of ['tls-private', 'document-signing']) {
    const order = await newOrder(app, { product });
    const json = (csr?: string) => body({ csr });
    assert.deepEqual(spkiIn(await requireIssued(order, json())), keyPair('p256').spki);
    await requireIssued(order, json(csrFor('rsa2048')));
    for (const csr of [undefined, '']) {
      const again = await requireIssued(order, body({ csr }));
      assert.deepEqual(spkiIn(again), keyPair('rsa2048').spki, 'the last key, not the first');
      assert.equal(again.csr, null);
    }
  }
  // A key blocked since is not certified again.
  const order = await newOrder(app, { product: 'tls-private' });
  const key = newKeyPair('p256');
  await requireIssued(order, body({ csr: pem(csr({ key })) }));
  await app.app.store.blockedKeys.add(hash('sha256', key.spki), 'test', NOON);
  await requireBad(order, body({ csr: undefined }), CSR, 'invalid_csr');
});
