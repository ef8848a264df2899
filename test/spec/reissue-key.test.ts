// The CSR, its key, and the digest: what is taken from them, what is refused, and what the certificate says.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { checkPrimeSync, generatePrimeSync, hash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import 'reflect-metadata';
import * as peculiar from '@peculiar/x509';
import { oid, sequence, setOf, utf8String } from '../../src/adapters/ca/der.ts';
import { NOON, newFolder, startApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import * as make from '../support/csr.ts';
import { csr, HASHES, KEY_KINDS, keyPair, newKeyPair, pem } from '../support/csr.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue } from '../support/orders.ts';
import * as wrong from '../support/wrong-csrs.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());

const HAN = /\p{Script=Han}/u;
const [CSR, CSR_FROM, SIGN_HASH] = ['certificate.csr', 'certificate.csr_from', 'certificate.sign_hash'];
const PUBLIC = ['ssl-dv', 'ssl-dv-add', 'ssl-dv-fixed', 'ssl-dv-replace'];
const CONSENT = { i_know_will_revoke_last_cert: true };
const TABLES = ['certificate_order', 'certificate', 'revocation', 'outbox', 'idempotency_key', 'audit'];
const rows = () => TABLES.map((table) => db.prepare(`select * from ${table} order by 1, 2, 3`).all());

async function requireRefused(order: PlacedOrder, json: unknown, code: string, field: string, what = '') {
  const before = rows();
  const english = await reissue(app, order, json);
  const chinese = await reissue(app, order, json, '', { 'accept-language': 'zh-CN' });
  for (const answer of [english, chinese]) {
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.field],
      [400, code, field],
      `${what} ${answer.text}`,
    );
  }
  assert.match(chinese.body.message, HAN);
  assert.doesNotMatch(english.body.message, HAN);
  assert.deepEqual(rows(), before, 'a refusal writes nothing');
  return english.body;
}

async function requireIssued(order: PlacedOrder, json: unknown, what = '') {
  const answer = await reissue(app, order, json);
  assert.equal(answer.status, 200, `${what} ${answer.text}`);
  const found = await certificate(app, order, answer.body.data.certificate.id);
  assert.equal(found.status, 'issued');
  return found;
}

const spkiIn = (found: { pem: string }) =>
  new Uint8Array(new X509Certificate(found.pem).publicKey.export({ format: 'der', type: 'spki' }));
const signing = (product: string) => newOrder(app, { product, commonName: 'Example Ltd' });
const SIGNING_BODY = (change = {}) => body({ common_name: undefined, ...change });

rule('reissue 1', 'without `certificate`, or with a `certificate` that lacks `sign_hash`, is refused', async () => {
  for (const product of [...PUBLIC, 'tls-private', 'code-signing', 'document-signing']) {
    const order = await newOrder(app, { product });
    await requireRefused(order, CONSENT, 'invalid_parameters', 'certificate');
    const lacking = body({ sign_hash: undefined }, CONSENT);
    assert.equal('sign_hash' in JSON.parse(JSON.stringify(lacking)).certificate, false);
    await requireRefused(order, lacking, 'invalid_parameters', SIGN_HASH);
    await requireRefused(order, { certificate: {} }, 'invalid_parameters', SIGN_HASH);
  }
});

/** Products of our own, for rules that none of the built-in ones has. */
const ROW = {
  ...{ name: { en: 'Own', zh: '自有' }, kind: 'ssl', trust: 'private', names_may_change: 'any' },
  ...{ revokes_previous_on_reissue: false, revocation_may_be_put_off: true, csr: 'forbidden', key_sources: ['caller'] },
  ...{ keys: [{ type: 'p256' }], sign_hashes: ['sha256'], allows_wildcard: true, dcv_methods: ['dns'] },
  ...{ dcv_scopes: ['fqdn'], max_validity_days: 30, term_days: 365, reuse_days: 200 },
};
function productsFile(...products: object[]): string {
  const file = join(newFolder(), 'products.json');
  writeFileSync(file, JSON.stringify({ products }));
  return file;
}

rule(
  'reissue 3',
  'Whether `certificate.csr` must be sent follows from `csr_from` and from the rules of the product',
  async () => {
    for (const product of [...PUBLIC, 'code-signing']) {
      const order = await newOrder(app, { product });
      for (const csr of [undefined, '']) {
        await requireRefused(order, body({ csr }, CONSENT), 'invalid_parameters', CSR, product);
        await requireRefused(order, body({ csr, csr_from: '' }, CONSENT), 'invalid_parameters', CSR, product);
      }
      await requireIssued(order, body({}, CONSENT), product);
    }
    for (const product of ['tls-private', 'document-signing']) {
      const order = await newOrder(app, { product });
      for (const csr of [undefined, '', csrFor('p384')]) await requireIssued(order, body({ csr }), product);
    }
    // With another source than the caller the csr is not what is asked for; no product offers that source yet.
    const order = await newOrder(app);
    for (const csr of [undefined, csrFor()]) {
      const json = body({ csr, csr_from: 'sign-cloud-csc' }, { sign_key_pin: '123456' });
      await requireRefused(order, json, 'invalid_parameters', CSR_FROM);
    }
  },
);

rule('reissue 20', 'is `invalid_parameters` naming the field, and so is a `csr` that the product forbids', async () => {
  const order = await newOrder(app);
  await requireRefused(order, {}, 'invalid_parameters', 'certificate');
  for (const field of ['sign_hash', 'common_name', 'csr']) {
    await requireRefused(order, body({ [field]: undefined }), 'invalid_parameters', `certificate.${field}`);
  }
  await using own = await startApp({ RESEAL_PRODUCTS_FILE: productsFile({ ...ROW, id: 'keeps-key' }) });
  const keeping = await newOrder(own, { product: 'keeps-key' });
  const refused = await reissue(own, keeping, body());
  assert.deepEqual([refused.status, refused.body.code, refused.body.field], [400, 'invalid_parameters', CSR]);
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
      const { message, field } = await requireRefused(
        order,
        body(change),
        'invalid_parameters',
        `certificate.${Object.keys(change)[0]}`,
      );
      return { message, field };
    };
    assert.deepEqual(await missing({ common_name: '' }), await missing({ common_name: undefined }));
    assert.deepEqual(await missing({ sign_hash: '' }), await missing({ sign_hash: undefined }));
    assert.deepEqual(await missing({ csr: '' }), await missing({ csr: undefined }));
    const own = await newOrder(app, { product: 'tls-private' });
    const { csr: kept, ...again } = await requireIssued(own, body({ csr: '' }));
    assert.equal(kept, null);
    assert.deepEqual(spkiIn(again), keyPair('p256').spki);
    const text = await signing('document-signing');
    assert.equal((await requireIssued(text, SIGNING_BODY({ common_name: '' }))).common_name, 'Example Ltd');
  },
);

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
    // Known, and no issuer serves it yet: another answer than that to a word nobody knows.
    for (const spelling of ['sm3', 'SM3', 'sm-3', 'SM-3']) {
      const { details } = await requireRefused(order, body({ sign_hash: spelling }), 'invalid_parameters', SIGN_HASH);
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
      const answer = await requireRefused(order, body({ sign_hash: other }), 'invalid_parameters', SIGN_HASH, other);
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
      const { message } = await requireRefused(order, body({ sign_hash: digest }), 'invalid_parameters', SIGN_HASH);
      assert.match(message, /is not safe/, digest);
      const chinese = await reissue(app, order, body({ sign_hash: digest }), '', { 'accept-language': 'zh' });
      assert.match(chinese.body.message, /不再安全/);
    }
  },
);

const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0;

/** Three opinions on one certificate: Node, @peculiar/x509 and, where it is installed, OpenSSL. */
async function requireSound(found: { pem: string; ica_pem: string }, digest: string, what: string): Promise<void> {
  const leaf = new X509Certificate(found.pem);
  const chain = found.ica_pem.match(/-----BEGIN.*?-----END CERTIFICATE-----\n/gs) ?? [];
  const [issuing, root] = chain.map((one) => new X509Certificate(one));
  assert.ok(issuing && root && chain.length === 2, what);
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
  // The digest under the request is another matter.
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
  const { details, message } = await requireRefused(order, json, 'invalid_parameters', SIGN_HASH);
  assert.ok(details.served.length > 0);
  for (const { key_type, sign_hash } of details.served) {
    assert.ok(message.includes(`${key_type}+${sign_hash}`));
    const kind = key_type === 'rsa' ? 'rsa2048' : key_type;
    await requireIssued(order, body({ csr: csrFor(kind), sign_hash }), `${key_type} ${sign_hash}`);
  }
  // A product that offers less says so.
  const row = { ...ROW, id: 'narrow', csr: 'optional' };
  await using own = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(row) });
  const narrow = await newOrder(own, { product: 'narrow' });
  const refused = await reissue(own, narrow, body({ sign_hash: 'sha384' }));
  assert.deepEqual([refused.status, refused.body.code, refused.body.field], [400, 'invalid_parameters', SIGN_HASH]);
  assert.deepEqual(refused.body.details.served, [{ key_type: 'p256', sign_hash: 'sha256' }]);
});

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
    const { message } = await requireRefused(order, body({ csr_from: from }), 'invalid_parameters', CSR_FROM, from);
    assert.ok(message.length < 300);
  }
});

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
  for (const parts of Object.values(wrong.RIGHT)) await requireIssued(order, body({ csr: pem(csr(parts)) }));
});

rule('reissue 19', 'must verify with an algorithm that fits its key and uses neither SHA-1 nor MD5', async () => {
  const order = await newOrder(app);
  for (const table of [wrong.BAD_SIGNATURES, wrong.BROKEN_HASHES, wrong.BAD_ALGORITHMS]) {
    for (const [what, parts] of Object.entries(table)) {
      await requireRefused(order, body({ csr: pem(csr(parts)) }), 'invalid_csr', CSR, what);
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
    for (const text of texts) await requireRefused(order, body({ csr: text }), 'invalid_csr', CSR, text.slice(0, 50));
    for (const table of [wrong.BAD_FORMS, wrong.BAD_SUBJECTS]) {
      for (const [what, parts] of Object.entries(table)) {
        await requireRefused(order, body({ csr: pem(csr(parts)) }), 'invalid_csr', CSR, what);
      }
    }
    await requireRefused(
      order,
      body({ csr: pem(csr(wrong.BAD_SIGNATURES['the key of another'])) }),
      'invalid_csr',
      CSR,
    );
    await using own = await startApp({ RESEAL_PRODUCTS_FILE: productsFile({ ...ROW, id: 'narrow', csr: 'optional' }) });
    const answer = await reissue(own, await newOrder(own, { product: 'narrow' }), body({ csr: csrFor('p384') }));
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, 'invalid_csr', CSR]);
  },
);

const prime = (bits: number) => generatePrimeSync(bits, { bigint: true });

rule(
  'certificate 4',
  'RSA of at least 2048 bits, or on P-256, P-384 or P-521, and not known to be weak or compromised',
  async () => {
    const order = await newOrder(app);
    for (const kind of KEY_KINDS) await requireIssued(order, body({ csr: csrFor(kind) }), kind);
    const refused = (csr: string, what: string) => requireRefused(order, body({ csr }), 'invalid_csr', CSR, what);
    for (const table of [wrong.BAD_KEYS, wrong.BAD_EXPONENTS]) {
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
    for (const product of PUBLIC) {
      const other = await newOrder(app, { product });
      await requireRefused(other, body({ csr: text }, CONSENT), 'invalid_csr', CSR, product);
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
      assert.deepEqual(spkiIn(again), keyPair('rsa2048').spki, 'of the last one, not of the first');
      assert.equal(again.csr, null);
    }
  }
  // What was listed since is not certified again.
  const order = await newOrder(app, { product: 'tls-private' });
  const key = newKeyPair('p256');
  await requireIssued(order, body({ csr: pem(csr({ key })) }));
  await app.app.store.blockedKeys.add(hash('sha256', key.spki), 'test', NOON);
  await requireRefused(order, body({ csr: undefined }), 'invalid_csr', CSR);
});

rule('reissue 22', 'Every public-trust TLS product requires a CSR', async () => {
  const products = [...app.issuance.products.values()].filter(
    ({ kind, trust }) => kind === 'ssl' && trust === 'public',
  );
  assert.deepEqual(
    products.map(({ id }) => id),
    PUBLIC,
  );
  for (const { id } of products) {
    const order = await newOrder(app, { product: id });
    await requireRefused(order, body({ csr: undefined }, CONSENT), 'invalid_parameters', CSR, id);
  }
  for (const rule of ['optional', 'forbidden']) {
    const file = productsFile({ ...ROW, id: 'own', trust: 'public', csr: rule });
    await assert.rejects(startApp({ RESEAL_PRODUCTS_FILE: file }), /public ssl always needs a CSR/);
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
