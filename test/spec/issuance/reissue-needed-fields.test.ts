// Required fields of a reissue, by product and key source, and fields that are allowed but ignored.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { keyPair } from '../../support/csr.ts';
import { body, certificate, csrFor, newOrder, reissue, show, spkiIn } from '../../support/orders.ts';
import { OWN_PRODUCT, PUBLIC_TLS, productsFile } from '../../support/products.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const { app, db, requireBad, requireAnswered, requireIssued } = await startWatchedApp();

const [CSR, CSR_FROM, SIGN_HASH] = ['certificate.csr', 'certificate.csr_from', 'certificate.sign_hash'];
const CONSENT = { i_know_will_revoke_last_cert: true };

rule('reissue 1', 'without `certificate`, or with a `certificate` that lacks `sign_hash`, is refused', async () => {
  for (const product of [...PUBLIC_TLS, 'tls-private', 'code-signing', 'document-signing']) {
    const order = await newOrder(app, { product });
    await requireBad(order, CONSENT, 'certificate');
    const lacking = body({ sign_hash: undefined }, CONSENT);
    assert.equal('sign_hash' in JSON.parse(JSON.stringify(lacking)).certificate, false);
    await requireBad(order, lacking, SIGN_HASH);
    await requireBad(order, { certificate: {} }, SIGN_HASH);
  }
});

rule(
  'reissue 3',
  'Whether `certificate.csr` must be sent follows from `csr_from` and from the rules of the product',
  async () => {
    for (const product of [...PUBLIC_TLS, 'code-signing']) {
      const order = await newOrder(app, { product });
      for (const csr of [undefined, '']) {
        await requireBad(order, body({ csr }, CONSENT), CSR, 'invalid_parameters', product);
        await requireBad(order, body({ csr, csr_from: '' }, CONSENT), CSR, 'invalid_parameters', product);
      }
      await requireIssued(order, body({}, CONSENT), product);
    }
    for (const product of ['tls-private', 'document-signing']) {
      const order = await newOrder(app, { product });
      for (const csr of [undefined, '', csrFor('p384')]) await requireIssued(order, body({ csr }), product);
    }
    // With another source than the caller, no csr is required; no product offers that source yet.
    const order = await newOrder(app);
    for (const csr of [undefined, csrFor()]) {
      const json = body({ csr, csr_from: 'sign-cloud-csc' }, { sign_key_pin: '123456' });
      await requireBad(order, json, CSR_FROM);
    }
  },
);

rule('reissue 22', 'Every public-trust TLS product requires a CSR', async () => {
  const products = [...app.issuance.products.values()].filter(
    ({ kind, trust }) => kind === 'ssl' && trust === 'public',
  );
  assert.deepEqual(
    products.map(({ id }) => id),
    PUBLIC_TLS,
  );
  for (const { id } of products) {
    const order = await newOrder(app, { product: id });
    await requireBad(order, body({ csr: undefined }, CONSENT), CSR, 'invalid_parameters', id);
  }
  for (const rule of ['optional', 'forbidden']) {
    const file = productsFile({ ...OWN_PRODUCT, trust: 'public', csr: rule });
    await assert.rejects(startApp({ RESEAL_PRODUCTS_FILE: file }), /public ssl always needs a CSR/);
  }
});

rule('reissue 20', 'is `invalid_parameters` naming the field, and so is a `csr` that the product forbids', async () => {
  const order = await newOrder(app);
  await requireBad(order, {}, 'certificate');
  for (const field of ['sign_hash', 'common_name', 'csr']) {
    await requireBad(order, body({ [field]: undefined }), `certificate.${field}`);
  }
  await using own = await startApp({ RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, id: 'keeps-key' }) });
  const keeping = await newOrder(own, { product: 'keeps-key' });
  const refused = await reissue(own, keeping, body());
  requireError(refused, [400, 'invalid_parameters', CSR]);
  const answer = await reissue(own, keeping, body({ csr: undefined }));
  assert.equal(answer.status, 200);
  const [before, now] = await Promise.all(
    [keeping.certificateId, answer.body.data.certificate.id].map((id) => certificate(own, keeping, id)),
  );
  assert.deepEqual(spkiIn(now), spkiIn(before));
});

rule(
  'reissue 11',
  'An empty `common_name` or `sign_hash` counts as missing, and an empty `csr` as left out',
  async () => {
    const order = await newOrder(app);
    const missing = async (change: Record<string, unknown>) => {
      const { message, field } = await requireBad(order, body(change), `certificate.${Object.keys(change)[0]}`);
      return { message, field };
    };
    assert.deepEqual(await missing({ common_name: '' }), await missing({ common_name: undefined }));
    assert.deepEqual(await missing({ sign_hash: '' }), await missing({ sign_hash: undefined }));
    assert.deepEqual(await missing({ csr: '' }), await missing({ csr: undefined }));
    const own = await newOrder(app, { product: 'tls-private' });
    const { csr: kept, ...again } = await requireIssued(own, body({ csr: '' }));
    assert.equal(kept, null);
    assert.deepEqual(spkiIn(again), keyPair('p256').spki);
    const text = await newOrder(app, { product: 'document-signing', commonName: 'Example Ltd' });
    assert.equal((await requireIssued(text, body({ common_name: '' }))).common_name, 'Example Ltd');
  },
);

rule('reissue 16', 'A `csr_from` other than empty and `sign-cloud-csc` is `invalid_parameters`', async () => {
  const order = await newOrder(app);
  for (const from of [
    'caller',
    'Sign-Cloud-CSC',
    'sign-cloud-csc ',
    ' ',
    'sign_cloud_csc',
    'csc',
    'toString',
    'x'.repeat(10_000),
  ]) {
    const { message } = await requireBad(order, body({ csr_from: from }), CSR_FROM, 'invalid_parameters', from);
    assert.ok(message.length < 300);
  }
});

rule('reissue 7', 'have an effect only if `csr_from` is `sign-cloud-csc`', async () => {
  const order = await newOrder(app);
  const csr = csrFor();
  const facts = async (top: Record<string, unknown>) => {
    const found = await requireIssued(order, body({ csr }, top));
    const { subject, subjectAltName, keyUsage } = new X509Certificate(found.pem);
    const { common_name, dns_names, not_before, not_after } = found;
    const shown = [found.csr, common_name, dns_names, not_before, not_after];
    return [...shown, subject, subjectAltName, keyUsage, spkiIn(found)];
  };
  const plain = await facts({});
  for (const top of [
    { sign_key_pin: '123456' },
    { sign_key_pin: '', sign_key_pin_tip: '' },
    { sign_key_pin: '123456', sign_key_pin_tip: 'it is 123456' },
    { sign_key_pin_tip: 'x'.repeat(10_000) },
  ]) {
    assert.deepEqual(await facts(top), plain);
  }
});

rule('reissue 23', 'sent without being used is neither stored nor logged', async () => {
  const order = await newOrder(app);
  const [pin, tip] = ['unused-pin-5Kq9zR', 'unused-tip-7Wm2xT'];
  const top = { sign_key_pin: pin, sign_key_pin_tip: tip };
  await requireIssued(order, body({}, top));
  const answers = [
    await reissue(app, order, body({ dns_names: ['www.example.com', 'b.example.com'] }, top), '?dry_run=true'),
    await reissue(app, order, body({}, top), '', { 'Idempotency-Key': 'with-pin' }),
    await reissue(app, order, body({ sign_hash: 'md5' }, top)),
    await reissue(app, order, body({}, { ...top, sign_key_pin: [pin] })),
    await reissue(app, order, body({ csr_from: pin }, top)),
    await reissue(app, order, body({ dns_names: ['www.example.com', 'b.example.com'] }, top)),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 400, 400, 400, 200],
  );
  const tables = db.prepare("select name from sqlite_master where type = 'table'").all();
  const stored = JSON.stringify(tables.map(({ name }) => db.prepare(`select * from ${String(name)}`).all()));
  for (const secret of [pin, tip]) {
    assert.ok(!stored.includes(secret), 'stored');
    assert.ok(!app.output.includes(secret), 'logged');
    for (const { text } of answers) assert.ok(!text.includes(secret), 'answered');
  }
});

rule('reissue 10', 'A field that nothing activates is checked for its type and otherwise ignored', async () => {
  const order = await newOrder(app);
  const before = await show(app, order);
  const inactive = [
    { persist_until: -5 },
    { persist_until: 1 },
    { persist_until: Number.MAX_SAFE_INTEGER },
    { persist_until: 1e300 },
    { persist_policy: 'zone' },
    { persist_policy: '' },
    { dcv_method: 'dns', persist_until: -5, persist_policy: 'zone' },
    { sign_key_pin: '' },
    { sign_key_pin: 'x', sign_key_pin_tip: 'x' },
    { i_know_remove_domain_will_revoke_before_cert: true },
    { i_know_will_revoke_last_cert: true },
  ];
  for (const top of inactive) await requireAnswered(order, body({}, top));
  await requireAnswered(order, body({ un_modify_key: true }));
  const { certificate_id, certificate: current } = before;
  // Values to publish belong to a certificate.
  const { dcv_val, dcv_vals } = before;
  assert.deepEqual({ ...(await show(app, order)), certificate_id, certificate: current, dcv_val, dcv_vals }, before);
  const wrongTypes = [{ persist_until: '5' }, { persist_policy: 5 }, { sign_key_pin: 5 }, { sign_key_pin_tip: null }];
  for (const top of wrongTypes) await requireBad(order, body({}, top), Object.keys(top)[0]);
  await requireBad(order, body({ un_modify_key: 'no' }), 'certificate.un_modify_key');
});
