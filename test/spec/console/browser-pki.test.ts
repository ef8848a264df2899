// What the console makes in browsers, run here: the modules need nothing that Node lacks. openssl and node:crypto judge.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { Secret } from '../../../src/domain/secret.ts';
import { signatureOf as signedByService } from '../../../src/usecases/callbacks/sign-callback.ts';
import { rule } from '../../support/contract.ts';
import { TestCa } from '../../support/receiver-certificates.ts';

/** By address: the compiler checks these modules with the types of browsers, not with those of Node. */
const module = (name: string) => import(new URL(`../../../src/console/pki/${name}.ts`, import.meta.url).href);
const { readCertificate } = await module('certificate');
const { KEY_CHOICES, makeCsr } = await module('csr');
const { decodePem, encodePem } = await module('pem');
const { certificateBundle } = await module('pkcs7');
const { signatureOf } = await module('webhook-signature');

const openssl = (args: readonly string[], input: string | Uint8Array): string =>
  execFileSync('openssl', [...args], { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });

rule(
  'console 35',
  'Keys, signing requests and PKCS#7 files that the console makes in the browser are read by',
  async () => {
    Object.assign(globalThis, { isSecureContext: true });
    // The longer RSA keys take seconds, and differ in a number.
    for (const kind of KEY_CHOICES.slice(0, 2)) {
      const { csr, privateKey } = await makeCsr(kind, ['www.example.com', '*.example.com', 'xn--bcher-kva.example']);
      const text = openssl(['req', '-verify', '-noout', '-text', '-nameopt', 'RFC2253'], csr);
      assert.match(text, /Subject: CN ?= ?www\.example\.com/);
      assert.match(text, /DNS:www\.example\.com, DNS:\*\.example\.com, DNS:xn--bcher-kva\.example/);
      const certified = openssl(['req', '-pubkey', '-noout'], csr);
      const own = createPublicKey(createPrivateKey(privateKey)).export({ type: 'spki', format: 'pem' });
      assert.equal(certified, own);
    }
    const ca = new TestCa('A root');
    const { cert } = ca.identity(['www.example.com']);
    const [leaf, root] = [cert, ca.root].map((one) => decodePem(one, 'CERTIFICATE')[0]);
    assert.ok(leaf && root);
    assert.equal(encodePem('CERTIFICATE', leaf).trim(), new X509Certificate(leaf).toString().trim());
    const bundle = certificateBundle([leaf, root]);
    const printed = openssl(['pkcs7', '-inform', 'DER', '-print_certs'], bundle);
    const found = decodePem(printed, 'CERTIFICATE').map((der: Uint8Array) => new X509Certificate(der).fingerprint256);
    assert.deepEqual(found.sort(), [leaf, root].map((der) => new X509Certificate(der).fingerprint256).sort());
    const facts = await readCertificate(leaf);
    assert.deepEqual([facts.key, facts.sha256], ['ECDSA P-256', new X509Certificate(leaf).fingerprint256]);
  },
);

rule('console 35', 'the signature it computes for a callback is the one that was sent', async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const message = { id: '01m7h6', timestamp: '1794800632', body: '{"message":"证书已签发"}' };
  const { id, timestamp, body } = message;
  assert.equal(await signatureOf(secret, message), signedByService(new Secret(secret), id, timestamp, body));
  await assert.rejects(signatureOf('another kind of text', message), TypeError);
});
