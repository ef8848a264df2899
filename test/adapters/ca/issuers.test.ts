// Issuers imported and retired while the service runs: selection, maximum validity, and what retired issuers still do.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { openAuthority } from '../../../src/adapters/ca/authority.ts';
import { readPublicKey } from '../../../src/adapters/ca/public-key.ts';
import type { Purpose } from '../../../src/domain/certificate/authority.ts';
import type { KeyType } from '../../../src/domain/certificate/public-key.ts';
import type { SignHash } from '../../../src/domain/certificate/sign-hash.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { caChain, importExternal, readExternal, type Tier } from '../../support/authority.ts';
import { rule } from '../../support/contract.ts';
import { keyPair } from '../../support/csr.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

const pairOf = (app: TestApp, issuing: Tier = {}, root: Tier = {}) => caChain([root, issuing], app.now());

const activeIssuer = (app: TestApp, type: string, purpose: Purpose = 'public-tls') =>
  app.issuance.issuers.find(({ purposes, keyType }) => purposes.includes(purpose) && keyType === type)!;

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
  const rsa = activeIssuer(app, 'rsa');
  const p256 = activeIssuer(app, 'p256');
  const others = app.issuance.issuers.filter(({ id }) => id !== p256.id);
  const tenYears = new X509Certificate(rsa.certificate).validToDate.getTime();
  // One of ours, with the certificate of another: only its end counts.
  const [external] = readExternal(app, pairOf(app, { days: 30 }));
  const brief = { ...p256, certificate: external.certificate };
  const authority = openAuthority([...others, brief], 'http://pki.example.com');
  const chosen = (days: number) => authority.issuerFor('public-tls', 'p256', 'sha256', app.now() + days * DAY);
  assert.deepEqual([chosen(30)?.id, chosen(30)?.notAfter], [brief.id, app.now() + 30 * DAY]);
  assert.deepEqual([chosen(31)?.id, chosen(31)?.notAfter], [rsa.id, tenYears]);
  assert.equal(chosen(100_000)?.id, rsa.id);
  // A chain ends with its root when that expires first.
  const hanging = openAuthority(readExternal(app, pairOf(app, { days: 30 }, { days: 20 })), 'http://pki.example.com');
  assert.equal(hanging.issuerFor('public-tls', 'p256', 'sha256', 0)?.notAfter, app.now() + 20 * DAY);
});

test('an imported authority is not passed over for one of ours, and signs for no other purpose', async () => {
  await using app = await startApp();
  const chain = readExternal(app, pairOf(app, { days: 30 }), { purposes: ['public-tls'] });
  const [own] = chain;
  const endOfNew = () => app.now() + 3_650 * DAY;
  const authority = openAuthority([...app.issuance.issuers, ...chain], 'http://pki.example.com', { endOfNew });
  const idFor = (...[purpose, type, hash]: [Purpose, KeyType, SignHash]) =>
    authority.issuerFor(purpose, type, hash, app.now() + 199 * DAY)?.id;
  assert.equal(idFor('public-tls', 'p256', 'sha256'), own.id);
  assert.equal(idFor('public-tls', 'p384', 'sha256'), own.id, 'also where ours would be preferred');
  assert.equal(idFor('public-tls', 'rsa', 'sha256'), activeIssuer(app, 'rsa').id, 'it signs no RSA keys');
  assert.equal(idFor('private-tls', 'p256', 'sha256'), activeIssuer(app, 'p256', 'private-tls').id);
  assert.deepEqual(authority.unmade(idFor('client-auth', 'p256', 'sha256')!), {
    ...{ purpose: 'client-auth', keyType: 'p256' },
  });
  const alone = openAuthority(chain, 'http://pki.example.com');
  assert.equal(alone.issuerFor('private-tls', 'p256', 'sha256', 0), undefined);
  assert.deepEqual(alone.served('private-tls'), []);
  assert.deepEqual(
    alone.served('public-tls').map(({ keyType, signHash }) => `${keyType}+${signHash}`),
    ['p256+sha256', 'p384+sha256', 'p521+sha256', 'ed25519+sha256'],
  );
});

test('issuers are made when first needed: once, by the first of many requests, and by no dry run', async () => {
  await using app = await startApp();
  const order = await newOrder(app, { product: 'tls-private' });
  const { store } = app.app;
  const codeSigning = () => app.issuance.issuers.filter(({ purposes }) => purposes.includes('code-signing'));
  assert.deepEqual(codeSigning(), []);
  const place = () => newOrder(app, { product: 'code-signing', commonName: 'Jane' }, order.key);
  const placed = await Promise.all(Array.from({ length: 4 }, place));
  const [made, ...more] = codeSigning();
  assert.deepEqual([made?.keyType, more.length], ['p256', 0]);
  assert.equal((await store.issuers.list()).length, app.issuance.issuers.length, 'none was made in vain');
  const root = app.issuance.issuers.find(({ id }) => id === made?.parentId)!;
  assert.deepEqual([root.role, root.keyType], ['root', 'p256']);
  const { subject, keyUsage } = new X509Certificate(made!.certificate);
  assert.deepEqual([subject, keyUsage], ['C=XX\nO=Reseal\nCN=Reseal Code Signing P-256', ['1.3.6.1.5.5.7.3.3']]);
  for (const { id, key, certificateId } of placed) {
    const leaf = new X509Certificate((await certificate(app, { key, id, certificateId }, certificateId)).pem);
    assert.ok(isFrom(leaf, made!));
  }
  const json = body({ csr: csrFor('p384'), common_name: 'Jane', sign_hash: 'sha384' });
  const dry = await reissue(app, placed[0]!, json, '?dry_run=true');
  assert.deepEqual([dry.status, dry.body.data?.plan.issuer_id], [200, ''], dry.text);
  assert.equal(codeSigning().length, 1);
  const bits = new X509Certificate(activeIssuer(app, 'rsa').certificate).publicKey.asymmetricKeyDetails?.modulusLength;
  assert.equal(bits, 3072);
});

test('unknown issuers that are asked about together cost one read of the store between them', async () => {
  await using app = await startApp();
  const { issuers } = app.app.store;
  const { listPublic } = issuers;
  const { promise: isAsked, resolve: release } = Promise.withResolvers<void>();
  let reads = 0;
  issuers.listPublic = async () => {
    reads += 1;
    await isAsked;
    return await listPublic();
  };
  const asked = Array.from({ length: 50 }, (_, index) => app.issuance.authority.chainOf(`unknown ${index}`));
  release();
  assert.deepEqual((await Promise.all(asked)).flat(), []);
  // The first read, and one for all that came after it had begun.
  assert.ok(reads <= 2, `${reads} reads`);
  issuers.listPublic = listPublic;
});

test('a running service takes up a new issuer with its next certificate, and keeps serving the previous one', async () => {
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
      subject: null,
      isShortLived: false,
    },
    ...{ publicKey: readPublicKey(keyPair('p256').spki), signHash: 'sha256', issuerId: before.id },
    ...{ notBefore: app.now(), notAfter: app.now() + DAY },
  });
  const external = readExternal(app, pairOf(app));
  await app.app.store.transaction(({ issuers }) => issuers.adopt(external));
  const [brought] = external;
  assert.equal(activeIssuer(app, 'p256').id, before.id, 'not noticed yet');
  assert.ok(isFrom(await issued(app, order), brought), 'the store refuses what rests on the previous one');
  assert.equal(activeIssuer(app, 'p256').id, brought.id);
  assert.ok(
    app.lines.some((line) => line.event === 'issuers_changed' && line.text.includes(`${brought.id} client-auth`)),
  );
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
  const ends = new X509Certificate(activeIssuer(app, 'p256', 'private-tls').certificate).validToDate.getTime();
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
  const brought = await importExternal(app, pairOf(app));
  const leaf = await issued(app, order, request);
  assert.ok(isFrom(leaf, brought));
  assert.equal(leaf.validToDate.getTime(), app.now() - HOUR + 365 * DAY - 1000);
});

test('a product may allow more years than its issuer has', async () => {
  const product = { ...OWN_PRODUCT, csr: 'optional', max_validity_days: 3650, term_days: 3650 };
  await using app = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(product) });
  const brought = await importExternal(app, pairOf(app, { days: 2_000 }, { days: 2_000 }));
  const order = await newOrder(app, { product: 'own' });
  const leaf = await issued(app, order, body({ csr: csrFor() }));
  // The RSA issuer is valid longer, and is ours.
  assert.ok(isFrom(leaf, brought));
  assert.equal(leaf.validToDate.getTime(), app.now() + 2_000 * DAY);
});
