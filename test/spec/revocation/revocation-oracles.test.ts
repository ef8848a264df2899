// Independent verifiers: openssl and GnuTLS where installed, and a JavaScript library. For every issuing authority they
// must agree with the service on good, revoked and unknown, right after a reissue with consent. Runs on the real clock,
// because some of these tools take no other time.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import 'reflect-metadata';
import { cryptoProvider, X509Certificate, X509Crl } from '@peculiar/x509';
import { sm2 as oracle } from 'sm-crypto-v2';
import { DerReader } from '../../../src/adapters/der/reader.ts';
import { pem } from '../../../src/domain/certificate/pem.ts';
import { NOON, newFolder, TestApp } from '../../support/app.ts';
import type { KeyKind } from '../../support/csr.ts';
import { hex, newDualOrder, newSm2Csr, readSm2Certificate } from '../../support/dual.ts';
import { body, certificate, csrFor, newOrder, reissue } from '../../support/orders.ts';
import { certIdOf, derOf, fetchCrl, ocspRequest, pems, postOcsp } from '../../support/status.ts';

cryptoProvider.set(webcrypto);
const app = new TestApp(newFolder());
app.advance(Date.now() - NOON);
await app.start({});
after(() => app[Symbol.asyncDispose]());

const run = promisify(execFile);
const has = (tool: string, ...args: string[]): boolean => spawnSync(tool, args).status === 0;
const HAS_OPENSSL = has('openssl', 'version');
const HAS_GNUTLS = has('ocsptool', '--version') && has('certtool', '--version');

/** A reissue with consent just happened; the files are what a verifier would fetch. */
async function justReissued(key: KeyKind, signHash: 'sha256' | 'sha384') {
  const order = await newOrder(app, { product: 'ssl-dv-replace', key, signHash });
  const answer = await reissue(
    app,
    order,
    body({ csr: csrFor(key), sign_hash: signHash }, { i_know_will_revoke_last_cert: true }),
  );
  const old = await certificate(app, order, order.certificateId);
  const current = await certificate(app, order, answer.body.data.certificate.id);
  const { ica_pem: issuing, root_pem: root } = old;
  const lists = [];
  for (const one of [old.pem, current.pem, issuing]) lists.push((await fetchCrl(app, derOf(one))).der);
  const folder = newFolder();
  const file = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
  file('root.pem', root);
  file('issuing.pem', issuing);
  file('old.pem', old.pem);
  file('current.pem', current.pem);
  file('lists.pem', lists.map((der) => pem('X509 CRL', der)).join(''));
  /** Returns the output, whatever the exit code is. */
  const said = (tool: string, ...args: string[]): Promise<string> =>
    run(tool, args, { cwd: folder }).then(
      ({ stdout, stderr }) => stdout + stderr,
      ({ stdout, stderr }) => stdout + stderr,
    );
  return { old, current, issuing, lists, file, said };
}

const ISSUERS = [
  ['p256', 'sha256'],
  ['p384', 'sha384'],
  ['rsa2048', 'sha256'],
] as const;

for (const [key, signHash] of ISSUERS) {
  test(`the issuer for ${key}, checked by independent verifiers`, async (context) => {
    const { old, current, issuing, lists, file, said } = await justReissued(key, signHash);
    const [first, second, ofRoot] = lists.map((der) => new X509Crl(der)) as [X509Crl, X509Crl, X509Crl];
    const { publicKey } = new X509Certificate(issuing);
    assert.ok(await first.verify({ publicKey }));
    assert.ok(first.findRevoked(old.serial_number), 'the library finds the revoked certificate');
    assert.ok(await second.verify({ publicKey }));
    assert.equal(second.findRevoked(current.serial_number), null, 'on its own CRL');
    assert.equal(ofRoot.entries.length, 0);

    if (HAS_OPENSSL) {
      const verify = ['verify', '-CAfile', 'root.pem', '-untrusted', 'issuing.pem', '-crl_check_all', '-CRLfile'];
      assert.match(await said('openssl', ...verify, 'lists.pem', 'current.pem'), /^current\.pem: OK/m);
      assert.match(await said('openssl', ...verify, 'lists.pem', 'old.pem'), /certificate revoked/);
      const ocsp = ['ocsp', '-CAfile', 'root.pem', '-issuer', 'issuing.pem', '-url', `${app.url}/ocsp`];
      for (const [args, expected] of [
        [['-cert', 'current.pem'], /^current\.pem: good$/m],
        [['-cert', 'old.pem'], /^old\.pem: revoked\n(.*\n)*\s+Reason: superseded$/m],
        [['-serial', `0x${'41'.repeat(16)}`], /: unknown$/m],
        [['-sha256', '-cert', 'current.pem'], /^current\.pem: good$/m],
      ] as const) {
        const answer = await said('openssl', ...ocsp, ...args);
        assert.match(answer, /^Response verify OK$/m);
        assert.match(answer, expected);
        assert.doesNotMatch(answer, /WARNING/, 'the nonce is returned');
      }
    }

    if (HAS_GNUTLS) {
      for (const [shown, expected] of [
        [current, /Certificate Status: good/],
        [old, /Certificate Status: revoked/],
      ] as const) {
        const { der } = await postOcsp(app, ocspRequest([certIdOf(shown.serial_number, derOf(issuing))]));
        file('answer.der', der);
        // ocsptool builds no chain: the issuing authority must be trusted directly.
        const loads = ['--load-response', 'answer.der', '--load-trust', 'issuing.pem'];
        const answer = await said('ocsptool', '--verify-response', ...loads);
        assert.match(answer, expected);
        assert.match(answer, /Verifying OCSP Response: Success/);
      }
    }
    context.diagnostic(
      `oracles present: ${1 + Number(HAS_OPENSSL) + Number(HAS_GNUTLS)} of 3 (library, openssl, GnuTLS)`,
    );
  });
}

test('another library verifies the CRL signature of an SM2 issuer', async () => {
  const order = await newDualOrder(app, await newSm2Csr());
  await app.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key });
  const shown = await certificate(app, order, order.certificateId);
  const { der } = await fetchCrl(app, derOf(shown.pem));
  const list = new DerReader(der).sequence();
  const signed = list.any();
  list.any();
  const { point } = readSm2Certificate(pems(shown.ica_pem)[0]!);
  const options = { der: true, hash: true, userId: '1234567812345678' };
  assert.ok(oracle.doVerifySignature(new Uint8Array(signed), hex(list.bitString()), point, options));
  assert.ok(new X509Crl(der).findRevoked(shown.serial_number));
});
