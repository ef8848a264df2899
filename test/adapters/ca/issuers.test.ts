// Issuers imported and retired while the service runs: selection, maximum validity, and what retired issuers still do.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { openAuthority } from '../../../src/adapters/ca/authority.ts';
import { readImportedIssuer } from '../../../src/adapters/ca/imported-issuer.ts';
import { readPublicKey } from '../../../src/adapters/ca/public-key.ts';
import { extension } from '../../../src/adapters/ca/to-be-signed.ts';
import { ia5String, implicit, oid, sequence } from '../../../src/adapters/der/writer.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { caPair } from '../../support/authority.ts';
import { rule } from '../../support/contract.ts';
import { keyPair } from '../../support/csr.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

type Lives = NonNullable<Parameters<typeof caPair>[1]>;

function ownIssuer({ now, app: { newId } }: TestApp, lives: Lives = {}) {
  const { root, issuing } = caPair('p256', { now: now(), ...lives });
  return readImportedIssuer({ certificate: issuing.pem, key: issuing.key, root: root.pem }, now(), newId);
}

/** `reseal ca import`, without the process. */
async function bringIssuer(app: TestApp, lives: Lives = {}) {
  const pair = ownIssuer(app, lives);
  await app.app.store.transaction(({ issuers }) => issuers.adopt(pair));
  return pair[1];
}

const activeIssuer = (app: TestApp, type: string) =>
  app.issuance.issuers.find(
    ({ role, state, keyType }) => role === 'issuing' && state === 'active' && keyType === type,
  )!;

async function issued(app: TestApp, order: PlacedOrder, request = body()): Promise<X509Certificate> {
  const answer = await reissue(app, order, request);
  assert.equal(answer.status, 200, answer.text);
  return new X509Certificate((await certificate(app, order, answer.body.data.certificate.id)).pem);
}

const isFrom = (leaf: X509Certificate, issuer: { certificate: Uint8Array }): boolean => {
  const above = new X509Certificate(issuer.certificate);
  return leaf.checkIssued(above) && leaf.verify(above.publicKey);
};

test('selects the preferred issuer valid long enough, else another one that is, else the one valid longest', async () => {
  await using app = await startApp();
  const made = app.issuance.issuers;
  const rsa = activeIssuer(app, 'rsa');
  const others = made.filter(({ keyType }) => keyType !== 'p256');
  const [root, brief] = ownIssuer(app, { issuingDays: 30 });
  const authority = openAuthority([...others, root, brief], 'http://pki.example.com');
  const chosen = (days: number) => authority.issuerFor('p256', 'sha256', app.now() + days * DAY);
  const { notAfter } = chosen(30)!;
  assert.deepEqual([chosen(30)?.id, notAfter], [brief.id, app.now() + 30 * DAY]);
  assert.equal(chosen(31)?.id, rsa.id);
  assert.equal(chosen(100_000)?.id, rsa.id);
  const alone = openAuthority([root, brief], 'http://pki.example.com');
  assert.equal(alone.issuerFor('p256', 'sha256', app.now() + 199 * DAY)?.id, brief.id);
  assert.equal(alone.issuerFor('rsa', 'sha256', app.now()), undefined);
  assert.deepEqual(
    alone.served.map(({ keyType, signHash }) => `${keyType}+${signHash}`),
    ['p256+sha256', 'p384+sha256', 'p521+sha256'],
  );
  // A chain ends with its root when that expires first.
  const hanging = openAuthority(ownIssuer(app, { rootDays: 20, issuingDays: 30 }), 'http://pki.example.com');
  assert.equal(hanging.issuerFor('p256', 'sha256', 0)?.notAfter, app.now() + 20 * DAY);
});

test('a running service loads a new issuer at its next sweep, and keeps serving the previous one', async () => {
  await using app = await startApp();
  const order = await newOrder(app);
  const before = activeIssuer(app, 'p256');
  const early = await reissue(app, order, body());
  assert.equal(early.status, 200);
  assert.equal(await app.issuance.sweep(), 0);
  assert.equal(activeIssuer(app, 'p256'), before, 'nothing changed, so nothing is reloaded');
  // Prepared under the old issuer, and not signed yet.
  const { authority } = app.issuance;
  const prepared = authority.prepare({
    ...{
      role: 'single',
      kind: 'ssl',
      trust: 'public',
      commonName: 'www.example.com',
      names: ['www.example.com'],
      maxDays: 199,
    },
    ...{ publicKey: readPublicKey(keyPair('p256').spki), signHash: 'sha256', issuerId: before.id },
    ...{ notBefore: app.now(), notAfter: app.now() + DAY },
  });
  const brought = await bringIssuer(app);
  assert.ok(isFrom(await issued(app, order), before), 'not noticed yet');
  await app.issuance.sweep();
  assert.equal(activeIssuer(app, 'p256').id, brought.id);
  assert.ok(app.lines.some((line) => line.event === 'issuers_changed' && line.text.includes(`${brought.id} active`)));
  assert.ok(isFrom(await issued(app, order), brought));
  const late = await authority.sign(before.id, 'sha256', prepared.toBeSigned);
  assert.ok(isFrom(new X509Certificate(late), before));
  // Certificates of both issuers have their chain, and both issuer certificates are served at the URLs in them.
  const chain = (await certificate(app, order, early.body.data.certificate.id)).ica_pem;
  assert.equal(new X509Certificate(chain).fingerprint256, new X509Certificate(before.certificate).fingerprint256);
  for (const { id, certificate: expected } of [before, brought]) {
    const answer = await fetch(`${app.url}/ca/${id}.crt`);
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), Buffer.from(expected));
  }
});

rule('reissue 44', 'No certificate outlives its issuer: a longer wish is shortened to the chain', async () => {
  await using app = await startApp();
  const ends = new X509Certificate(activeIssuer(app, 'p256').certificate).validToDate.getTime();
  app.advance(ends - app.now() - 100 * DAY);
  const order = await newOrder(app, { product: 'tls-private' });
  const request = body({ validity_days: 365 });
  assert.equal((await issued(app, order, request)).validToDate.getTime(), ends);
  const dry = await reissue(app, order, request, '?dry_run=true');
  assert.equal(Date.parse(dry.body.data.plan.not_after), ends);
  app.advance(99 * DAY);
  assert.equal((await issued(app, order, request)).validToDate.getTime(), ends);
  app.advance(1000);
  for (const [language, reason] of [
    ['en', /has reached its end.*reseal ca import/],
    ['zh-CN', /均已到期.*reseal ca import/],
  ] as const) {
    const refused = await reissue(app, order, request, '', { 'accept-language': language });
    assert.deepEqual([refused.status, refused.body.code], [503, 'service_busy']);
    assert.equal(refused.headers.get('retry-after'), '3600');
    assert.match(refused.body.message, reason);
  }
  const { length: faults } = app.lines.filter(({ event }) => event === 'error');
  assert.equal(faults, 0);
  const brought = await bringIssuer(app);
  await app.issuance.sweep();
  const leaf = await issued(app, order, request);
  assert.ok(isFrom(leaf, brought));
  assert.equal(leaf.validToDate.getTime(), app.now() - HOUR + 365 * DAY - 1000);
});

test('a product may allow more years than its issuer has', async () => {
  const product = { ...OWN_PRODUCT, csr: 'optional', max_validity_days: 3650, term_days: 3650 };
  await using app = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(product) });
  const brought = await bringIssuer(app, { issuingDays: 2_000, rootDays: 2_000 });
  // The RSA issuer is valid longer, and signs every key type but SM2.
  await app.issuance.sweep();
  const order = await newOrder(app, { product: 'own' });
  const rsa = activeIssuer(app, 'rsa');
  const leaf = await issued(app, order, body({ csr: csrFor() }));
  const ends = new X509Certificate(rsa.certificate).validToDate.getTime();
  assert.deepEqual([isFrom(leaf, brought), isFrom(leaf, rsa)], [false, true]);
  assert.ok(leaf.validToDate.getTime() <= ends);
  app.advance(100 * DAY);
  assert.equal((await issued(app, order)).validToDate.getTime(), ends);
});

test('a CA with less than a day left is not imported', async () => {
  await using app = await startApp();
  assert.throws(() => ownIssuer(app, { issuingDays: 0.9 }), /a certificate ends within a day/);
  assert.throws(() => ownIssuer(app, { rootDays: 0.9 }), /a certificate ends within a day/);
  assert.throws(() => ownIssuer(app, { now: app.now() + 2 * DAY }), /a certificate is not valid yet/);
});

test('a CA whose certificates verifiers would reject is not imported', async () => {
  await using app = await startApp();
  const critical = (id: string, value: Uint8Array) => extension({ id: oid(id), isCritical: true, value });
  // permitted: DNS names under corp.example.org; clientAuth; an unknown critical extension.
  const onlyCorp = sequence([implicit(0, sequence([sequence([implicit(2, ia5String('corp.example.org'))])]))]);
  const table: [string, Lives, RegExp][] = [
    ['names', { issuingExtensions: [critical('2.5.29.30', onlyCorp)] }, /limits the names/],
    [
      'purposes',
      { issuingExtensions: [critical('2.5.29.37', sequence([oid('1.3.6.1.5.5.7.3.2')]))] },
      /limits the purposes/,
    ],
    ['something else', { issuingExtensions: [critical('1.2.3.4', sequence([]))] }, /not known here \(1\.2\.3\.4\)/],
    ['pathlen', { rootPathLength: 0 }, /allows no authority below it/],
    ['keyUsage', { issuingUsage: [0] }, /must be those of authorities/],
    ['keyUsage without lists', { issuingUsage: [5] }, /cRLSign/],
  ];
  for (const [what, lives, words] of table) assert.throws(() => ownIssuer(app, lives), words, what);
  const harmless = extension({ id: oid('1.2.3.4'), isCritical: false, value: sequence([]) });
  assert.equal(ownIssuer(app, { issuingExtensions: [harmless] }).length, 2);
});
