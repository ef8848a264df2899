// Certificates as their account sees them: chain, predecessor and successor, and the URLs in them.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import 'reflect-metadata';
import * as peculiar from '@peculiar/x509';
import { newFolder, TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, reissue } from '../../support/orders.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const { app, requireAnswered } = await startWatchedApp();

rule(
  'certificate 7',
  'the certificate as `pem`, the issuers between it and the root as `ica_pem`, and the root as `root_pem`',
  async () => {
    const order = await newOrder(app, { key: 'rsa2048' });
    const answer = await app.call('GET', `/openapi/v3/certs/${order.certificateId}`, { key: order.key });
    assert.deepEqual(Object.keys(answer.body.data), ['Certificate']);
    const { pem, ica_pem, root_pem, serial_number, not_before, not_after } = answer.body.data.Certificate;
    const PEM = /^(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]{1,64}\n)+-----END CERTIFICATE-----\n)+$/;
    assert.match(pem, PEM);
    for (const text of [ica_pem, root_pem]) assert.match(text, PEM);
    const leaf = new X509Certificate(pem);
    assert.equal(leaf.serialNumber.toLowerCase(), serial_number);
    assert.deepEqual([leaf.validFromDate.toISOString(), leaf.validToDate.toISOString()], [not_before, not_after]);
    const chain = ica_pem.split(/(?<=END CERTIFICATE-----\n)/).map((one: string) => new X509Certificate(one));
    assert.ok(
      chain.every((one: X509Certificate) => !one.checkIssued(one)),
      'no root, which servers need not send',
    );
    const all: X509Certificate[] = [leaf, ...chain, new X509Certificate(root_pem)];
    for (const [index, one] of all.entries()) {
      const issuer = all[index + 1] ?? one;
      assert.ok(
        one.checkIssued(issuer) && one.verify(issuer.publicKey),
        'each is signed by the next, the last is self-signed',
      );
    }
  },
);

rule(
  'certificate 2',
  'tells whether the certificate is pending or issued, which one it replaces and which one replaced it',
  async () => {
    const order = await newOrder(app);
    const [first, second] = [order.certificateId, await requireAnswered(order, body())];
    const third = await requireAnswered(order, body());
    const pending = await requireAnswered(order, body({ dns_names: ['new.example.com'] }));
    const facts = async (id: string) => {
      const { status, replaces, replaced_by } = await certificate(app, order, id);
      return [status, replaces, replaced_by];
    };
    assert.deepEqual(await facts(first), ['issued', null, second]);
    assert.deepEqual(await facts(second), ['issued', first, third]);
    assert.deepEqual(await facts(third), ['issued', second, null]);
    assert.deepEqual(await facts(pending), ['pending', null, null], 'it replaces nothing while pending');
  },
);

rule(
  'certificate 8',
  'the addresses of its issuer certificate, its CRL and its OCSP responder, built on `RESEAL_PUBLIC_URL`',
  async () => {
    const base = 'http://certs.example.com/pki';
    // Issuers have URLs too: they are created here, and not copied.
    await using own = new NearbyApp(newFolder());
    await own.start({ RESEAL_PUBLIC_URL: base });
    for (const product of ['ssl-dv', 'tls-private', 'code-signing', 'document-signing']) {
      const order = await newOrder(own, { product });
      const answer = await reissue(own, order, body({ csr: csrFor('rsa2048'), sign_hash: 'sha384' }));
      assert.equal(answer.status, 200, answer.text);
      for (const id of [order.certificateId, answer.body.data.certificate.id]) {
        const { pem, ica_pem } = await certificate(own, order, id);
        const { caIssuers, ocsp, crl } = addressesIn(pem);
        assert.deepEqual(ocsp, [`${base}/ocsp`]);
        assert.equal(crl.length, 1);
        assert.match(crl[0]!, /^http:\/\/certs\.example\.com\/pki\/crl\/[0-9a-z]+\/\d+\.crl$/);
        assert.match(caIssuers[0] ?? '', /^http:\/\/certs\.example\.com\/pki\/ca\/[0-9a-z]+\.crt$/);
        // Cross-checked with Node's parser.
        const node = new X509Certificate(pem).infoAccess ?? '';
        for (const url of [...ocsp, ...caIssuers]) assert.ok(node.includes(`URI:${url}`), node);
        // The URL serves the issuer certificate.
        const response = await fetch(own.url + new URL(caIssuers[0]!).pathname);
        assert.equal(response.status, 200);
        const issuer = new X509Certificate(Buffer.from(await response.arrayBuffer()));
        assert.ok(new X509Certificate(pem).verify(issuer.publicKey));
        assert.ok(ica_pem.startsWith(issuer.toString()));
        assert.match(addressesIn(issuer.toString()).crl[0] ?? '', /^http:\/\/certs\.example\.com\/pki\/crl\//);
      }
    }
    // Clients that fetch these cannot verify TLS yet, so the URLs are never https.
    await using secure = new NearbyApp(newFolder());
    await secure.start({ RESEAL_PUBLIC_URL: 'https://certs.example.com' });
    const order = await newOrder(secure);
    const { pem } = await certificate(secure, order, order.certificateId);
    assert.deepEqual(addressesIn(pem).ocsp, ['http://certs.example.com/ocsp']);
  },
);

/** Its public URL is elsewhere; the test calls its listening port. */
class NearbyApp extends TestApp {
  override get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
}

function addressesIn(pem: string) {
  const parsed = new peculiar.X509Certificate(pem);
  const access = parsed.getExtension(peculiar.AuthorityInfoAccessExtension);
  const points = parsed.getExtension(peculiar.CRLDistributionPointsExtension);
  const urls = (names: readonly { value: string }[] = []) => names.map(({ value }) => value);
  const crl = (points?.distributionPoints ?? []).flatMap(
    ({ distributionPoint }) => distributionPoint?.fullName?.map((one) => one.uniformResourceIdentifier ?? '') ?? [],
  );
  return { caIssuers: urls(access?.caIssuers), ocsp: urls(access?.ocsp), crl };
}
