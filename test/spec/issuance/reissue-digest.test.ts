// The digest of a certificate's signature: spelling, supported values, and that it is the one used.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import 'reflect-metadata';
import * as peculiar from '@peculiar/x509';
import { NOON, newFolder, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { csr, HASHES, KEY_KINDS, keyPair, pem } from '../../support/csr.ts';
import { body, csrFor, newOrder, reissue, spkiIn } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const { app, requireBad, requireIssued } = await startWatchedApp();

const SIGN_HASH = 'certificate.sign_hash';

rule(
  'reissue 12',
  'is `sha256`, `sha384`, `sha512` or `sm3`, in upper or lower case, with or without a hyphen',
  async () => {
    const order = await newOrder(app);
    for (const [name, spellings] of Object.entries({
      sha256: ['sha256', 'SHA256', 'sha-256', 'SHA-256', 'Sha-256'],
      sha384: ['sha384', 'SHA384', 'sha-384', 'SHA-384'],
      sha512: ['sha512', 'SHA512', 'sha-512', 'SHA-512'],
    })) {
      for (const spelling of spellings) {
        const found = await requireIssued(order, body({ sign_hash: spelling }), spelling);
        assert.match(new X509Certificate(found.pem).signatureAlgorithm ?? '', new RegExp(name, 'i'));
      }
    }
    // Known, but not supported by any issuer yet: another error than for an unknown value.
    for (const spelling of ['sm3', 'SM3', 'sm-3', 'SM-3']) {
      const { details } = await requireBad(order, body({ sign_hash: spelling }), SIGN_HASH);
      assert.ok(Array.isArray(details.served), spelling);
    }
    for (const other of [
      'sha224',
      'sha3-256',
      'sha 256',
      ' sha256',
      'sha256 ',
      'sha_256',
      '256',
      'sm4',
      'none',
      'constructor',
    ]) {
      const answer = await requireBad(order, body({ sign_hash: other }), SIGN_HASH, 'invalid_parameters', other);
      assert.match(answer.message, /sha256, sha384, sha512, sm3/);
    }
  },
);

rule(
  'reissue 13',
  'asking for SHA-1 or MD5 is `invalid_parameters`, and the answer says that the digest is not safe',
  async () => {
    const order = await newOrder(app);
    for (const digest of ['sha1', 'SHA1', 'sha-1', 'SHA-1', 'md5', 'MD5', 'MD-5']) {
      const { message } = await requireBad(order, body({ sign_hash: digest }), SIGN_HASH);
      assert.match(message, /is not safe/, digest);
      const chinese = await reissue(app, order, body({ sign_hash: digest }), '', { 'accept-language': 'zh' });
      assert.match(chinese.body.message, /不再安全/);
    }
  },
);

const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0;

/** Three independent parsers: Node, @peculiar/x509 and, where installed, OpenSSL. */
async function requireSound(
  found: { pem: string; ica_pem: string; root_pem: string },
  digest: string,
  what: string,
): Promise<void> {
  const leaf = new X509Certificate(found.pem);
  const chain = [found.ica_pem, found.root_pem];
  const [issuing, root] = chain.map((one) => new X509Certificate(one));
  assert.ok(issuing && root, what);
  assert.match(leaf.signatureAlgorithm ?? '', new RegExp(digest, 'i'), what);
  assert.ok(leaf.checkIssued(issuing) && leaf.verify(issuing.publicKey), what);
  assert.ok(issuing.checkIssued(root) && issuing.verify(root.publicKey) && root.verify(root.publicKey), what);
  assert.ok(!leaf.ca && issuing.ca && root.ca, what);

  const second = new peculiar.X509Certificate(found.pem);
  assert.equal(second.signatureAlgorithm.hash.name, digest.replace('sha', 'SHA-'), what);
  const publicKey = new peculiar.X509Certificate(chain[0]!);
  assert.ok(await second.verify({ publicKey, signatureOnly: true }), what);

  if (!HAS_OPENSSL) return;
  const folder = newFolder();
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const files = [file('root', chain[1]!), '-untrusted', file('issuing', chain[0]!), file('leaf', found.pem)];
  const at = String(NOON / 1000 + 60);
  const said = execFileSync('openssl', ['verify', '-x509_strict', '-attime', at, '-CAfile', ...files], {
    encoding: 'utf8',
  });
  assert.match(said, /: OK/, what);
}

rule('reissue 14', 'The certificate is signed with the digest that was asked for, never with another', async () => {
  const order = await newOrder(app);
  for (const kind of KEY_KINDS) {
    for (const digest of HASHES) {
      const found = await requireIssued(order, body({ csr: csrFor(kind), sign_hash: digest }), `${kind} ${digest}`);
      assert.deepEqual(spkiIn(found), keyPair(kind).spki);
      await requireSound(found, digest, `${kind} ${digest}`);
    }
  }
  // The digest of the CSR's own signature is independent.
  const found = await requireIssued(order, body({ csr: pem(csr({ hash: 'sha512' })), sign_hash: 'sha256' }));
  await requireSound(found, 'sha256', 'csr signed with sha512');
  for (const product of ['tls-private', 'code-signing', 'document-signing']) {
    const other = await newOrder(app, { product });
    for (const digest of HASHES) {
      await requireSound(await requireIssued(other, body({ sign_hash: digest })), digest, `${product} ${digest}`);
    }
  }
});

rule('reissue 15', 'is `invalid_parameters`, and the answer lists those that can be served', async () => {
  const order = await newOrder(app);
  const json = body({ sign_hash: 'sm3' });
  const { details, message } = await requireBad(order, json, SIGN_HASH);
  assert.ok(details.served.length > 0);
  for (const { key_type, sign_hash } of details.served) {
    assert.ok(message.includes(`${key_type}+${sign_hash}`));
    const kind = key_type === 'rsa' ? 'rsa2048' : key_type;
    await requireIssued(order, body({ csr: csrFor(kind), sign_hash }), `${key_type} ${sign_hash}`);
  }
  // A product that offers fewer lists them.
  const row = { ...OWN_PRODUCT, id: 'narrow', csr: 'optional' };
  await using own = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(row) });
  const narrow = await newOrder(own, { product: 'narrow' });
  const refused = await reissue(own, narrow, body({ sign_hash: 'sha384' }));
  requireError(refused, [400, 'invalid_parameters', SIGN_HASH]);
  assert.deepEqual(refused.body.details.served, [{ key_type: 'p256', sign_hash: 'sha256' }]);
});
