import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { conflictsOf } from '../../../src/domain/catalog/product-rules.ts';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { asInFile, parseProducts } from '../../../src/domain/catalog/products-file.ts';
import { PUBLIC_SSL, problemsOf, ROW, SIGNING } from '../../support/product-rows.ts';

const problemsWith = (change: object): readonly string[] => problemsOf({ products: [{ ...ROW, ...change }] });

test('the built-in products have unique ids and obey the general rules', () => {
  assert.equal(new Set(PRODUCTS.map(({ id }) => id)).size, PRODUCTS.length);
  for (const product of PRODUCTS) assert.deepEqual(conflictsOf(product), [], product.id);
});

test('the built-in products cover every case of a reissue', () => {
  const has = (...tests: ((product: (typeof PRODUCTS)[number]) => boolean)[]): void =>
    assert.ok(
      PRODUCTS.some((product) => tests.every((holds) => holds(product))),
      String(tests),
    );
  const isPublicSsl = ({ kind, trust }: (typeof PRODUCTS)[number]): boolean => kind === 'ssl' && trust === 'public';
  for (const change of ['any', 'add', 'none']) has(isPublicSsl, ({ namesMayChange }) => namesMayChange === change);
  has(isPublicSsl, ({ revokesPreviousOnReissue }) => revokesPreviousOnReissue);
  has(({ kind, trust, csr }) => kind === 'ssl' && trust === 'private' && csr === 'optional');
  for (const wanted of ['client_auth', 'code_signing', 'document_signing']) has(({ kind }) => kind === wanted);
});

test('a row of the file becomes a product', () => {
  assert.deepEqual(parseProducts({ products: [] }), []);
  const [product] = parseProducts(JSON.parse(JSON.stringify({ products: [ROW] })));
  assert.deepEqual(product, {
    id: 'acme-tls',
    aliases: [7001],
    name: { en: 'Acme TLS', zh: 'Acme TLS 证书' },
    kind: 'ssl',
    trust: 'private',
    form: 'single',
    namesMayChange: 'add',
    revokesPreviousOnReissue: true,
    revocationGraceHours: 72,
    revocationMayBePutOff: true,
    csr: 'optional',
    keySources: ['caller'],
    keys: [
      { type: 'rsa', minBits: 3072, maxBits: 4096 },
      { type: 'p384', minBits: 384, maxBits: 384 },
    ],
    signHashes: ['sha384', 'sha512'],
    allowsWildcard: true,
    privateNames: [],
    dcvMethods: ['dns', 'dns-persist'],
    dcvScopes: ['fqdn'],
    validationNetworks: [],
    maxValidityDays: 90,
    shortLived: false,
    requiresLint: false,
    termDays: 730,
    reuseDays: 30,
  });
});

test('an omitted grace period is zero, aliases may be omitted, and no other field may be', () => {
  const { revocation_grace_hours: _, aliases: __, ...without } = ROW;
  const [product] = parseProducts({ products: [without] });
  assert.deepEqual([product?.revocationGraceHours, product?.aliases], [0, []]);
  for (const key of Object.keys(without)) {
    const row = Object.fromEntries(Object.entries(ROW).filter(([one]) => one !== key));
    const [problem = '', ...others] = problemsOf({ products: [row] });
    assert.deepEqual(others, [], key);
    assert.ok(problem.startsWith(`products[0].${key}: it is missing; `), problem);
  }
});

test('every built-in product can be written as a row', () => {
  const snake = (text: string): string => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  for (const product of PRODUCTS) {
    const row = Object.fromEntries(Object.entries(product).map(([key, value]) => [snake(key), value]));
    row.id = `my-${product.id}`;
    row.aliases = product.aliases.map((alias) => alias + 1_000);
    row.keys = product.keys.map(({ type, minBits, maxBits }) =>
      type === 'rsa' ? { type, min_bits: minBits, max_bits: maxBits } : { type },
    );
    assert.deepEqual(parseProducts({ products: [row] }), [{ ...product, id: row.id, aliases: row.aliases }]);
  }
});

const SM2 = { keys: [{ type: 'sm2' }], sign_hashes: ['sm3'] };
const DUAL = { ...SM2, form: 'dual', csr: 'required' };

test('a problem is reported with its path and its remedy', () => {
  const table: readonly (readonly [change: object, problem: RegExp])[] = [
    [{ id: 'Acme' }, /^products\[0\]\.id: use lower-case letters, .* \(it is "Acme"\)\.$/],
    [{ id: 'a--b' }, /\.id: use/],
    [{ id: '' }, /\.id: use/],
    [{ id: 'a'.repeat(65) }, /\.id: use/],
    [{ id: 7 }, /\.id: use/],
    [{ id: '../etc' }, /\.id: use/],
    [{ id: 'ssl-dv' }, /\.id: ssl-dv is taken already; choose another/],
    [{ aliases: 7 }, /\.aliases: write a list/],
    [{ aliases: ['7'] }, /\.aliases\[0\]: write a whole number from 1 to 999999999 \(it is "7"\)/],
    [{ aliases: [0] }, /\.aliases\[0\]: write a whole number/],
    [{ aliases: [7, 7] }, /\.aliases: list each one once/],
    [{ aliases: [7, 101] }, /\.aliases\[1\]: 101 is taken already; choose another/],
    [{ id: '101' }, /\.id: 101 is taken already; choose another/],
    [{ id: '7', aliases: [7] }, /\.aliases\[0\]: 7 is taken already; choose another/],
    [{ ...SIGNING, key_sources: ['sign-cloud-csc'] }, /\.key_sources: the first certificate .*; add caller\.$/],
    [{ name: 'Acme' }, /\.name: write an object with en, zh \(it is "Acme"\)/],
    [{ name: { en: 'A' } }, /\.name\.zh: it is missing; write 1 to 200/],
    [{ name: { en: 'A', zh: ' ' } }, /\.name\.zh: write 1 to 200 printable/],
    [{ name: { en: 'A\nB', zh: 'x' } }, /\.name\.en: write 1 to 200 printable/],
    [{ name: { en: 'A', zh: 'x', de: 'y' } }, /\.name\.de: there is no such key/],
    [{ kind: 'email' }, /\.kind: choose one of ssl, client_auth, code_signing, document_signing \(it is "email"\)/],
    [{ kind: null }, /\.kind: choose one of .* \(it is null\)/],
    [{ trust: true }, /\.trust: choose one of public, private/],
    [{ names_may_change: 'remove' }, /\.names_may_change: choose one of none, add, any/],
    [{ revokes_previous_on_reissue: 'true' }, /\.revokes_previous_on_reissue: write true or false \(it is "true"\)/],
    [{ revocation_grace_hours: -1 }, /\.revocation_grace_hours: write a whole number from 0 to 720/],
    [{ revocation_grace_hours: null }, /\.revocation_grace_hours: write a whole number .* null/],
    [{ csr: 'yes' }, /\.csr: choose one of required, optional, forbidden/],
    [{ key_sources: [] }, /\.key_sources: name at least one/],
    [{ ...PUBLIC_SSL, key_sources: ['sign-cloud-csc'] }, /\.key_sources: the key of a public web server is never made/],
    [{ key_sources: ['hsm'] }, /\.key_sources\[0\]: choose one of caller, sign-cloud-csc \(it is "hsm"\)/],
    [{ key_sources: 'caller' }, /\.key_sources: write a list/],
    [{ key_sources: ['caller', 'caller'] }, /\.key_sources: list each one once/],
    [{ keys: [] }, /\.keys: name at least one/],
    [{ keys: ['p256'] }, /\.keys\[0\]: write an object with type/],
    [{ keys: [{ type: 'dsa' }] }, /\.keys\[0\]\.type: choose one of rsa, p256, p384, .*, sm2 \(it is "dsa"\)/],
    [{ keys: [{ type: 'sm2' }] }, /\.sign_hashes: sm2 keys and the digest sm3 go together/],
    [{ form: 'dual' }, /\.form: dual certificates are on sm2 keys of the caller/],
    [{ form: 'double' }, /\.form: choose one of single, dual/],
    [{ short_lived: true, max_validity_days: 8 }, /\.max_validity_days: a short-lived certificate/],
    [{ ...SIGNING, kind: 'client_auth', key_sources: ['caller', 'sign-cloud-csc'] }, /only signing products/],
    [{ ...PUBLIC_SSL, short_lived: true, max_validity_days: 7 }, /\.short_lived: under public trust/],
    [{ ...PUBLIC_SSL, keys: [{ type: 'ed25519' }] }, /neither sm2 nor ed25519/],
    [{ ...SIGNING, ...SM2, trust: 'public' }, /\.keys: public rules have neither sm2 nor ed25519/],
    [{ keys: [{ type: 'p256', min_bits: 256 }] }, /\.keys\[0\]\.min_bits: there is no such key/],
    [{ keys: [{ type: 'rsa', max_bits: 4096 }] }, /\.keys\[0\]\.min_bits: it is missing/],
    [{ keys: [{ type: 'rsa', min_bits: 512, max_bits: 4096 }] }, /\.min_bits: write a whole number from 1024 to 8192/],
    [{ keys: [{ type: 'rsa', min_bits: 4096, max_bits: 2048 }] }, /\.max_bits: write a whole number from 4096 to 8192/],
    [{ keys: [{ type: 'p256' }, { type: 'p256' }] }, /\.keys: list each one once/],
    [{ sign_hashes: [] }, /\.sign_hashes: name at least one/],
    [{ sign_hashes: ['sm3'] }, /\.sign_hashes: sm2 keys and the digest sm3 go together/],
    [{ sign_hashes: ['sha1'] }, /\.sign_hashes\[0\]: choose one of sha256, sha384, sha512/],
    [{ sign_hashes: ['SHA-256'] }, /\.sign_hashes\[0\]: choose one of/],
    [{ allows_wildcard: 1 }, /\.allows_wildcard: write true or false/],
    [{ dcv_methods: ['email'] }, /\.dcv_methods\[0\]: this version cannot serve it yet/],
    [{ dcv_methods: ['http'] }, /\.dcv_methods\[0\]: choose one of dns, file, dns-persist/],
    [{ dcv_methods: [] }, /\.dcv_methods: ssl names must be proven/],
    [{ dcv_methods: ['file'] }, /\.allows_wildcard: a file never proves a wildcard/],
    [{ dcv_scopes: ['zone'] }, /\.dcv_scopes\[0\]: choose one of fqdn, base_domain/],
    [{ dcv_scopes: [] }, /\.dcv_scopes: ssl names must be proven/],
    [{ max_validity_days: 0 }, /\.max_validity_days: write a whole number from 1 to 3650/],
    [{ max_validity_days: 1.5 }, /\.max_validity_days: write/],
    [{ max_validity_days: '90' }, /\.max_validity_days: write .* "90"/],
    [{ term_days: 3651 }, /\.term_days: write a whole number from 1 to 3650/],
    [{ reuse_days: [] }, /\.reuse_days: write .* \(it is a list\)/],
    [{ reuse_days: {} }, /\.reuse_days: write .* \(it is an object\)/],
    [{ max_validity: 90 }, /\.max_validity: there is no such key; remove it, or spell it as one of id, /],
    [{ trust: 'public' }, /\.csr: public ssl always needs a CSR/],
    [{ ...PUBLIC_SSL, csr: 'forbidden' }, /\.csr: public ssl always needs a CSR/],
    [{ ...PUBLIC_SSL, max_validity_days: 200 }, /\.max_validity_days: public ssl lives at most 199 days/],
    [{ ...PUBLIC_SSL, reuse_days: 201 }, /\.reuse_days: under public rules a proof serves at most 200 days/],
    [
      { ...PUBLIC_SSL, keys: [{ type: 'rsa', min_bits: 1024, max_bits: 4096 }] },
      /\.keys: under public rules RSA starts at 2048 bits/,
    ],
    [{ ...SIGNING, names_may_change: 'any' }, /\.names_may_change: only ssl has names/],
    [{ ...SIGNING, allows_wildcard: true }, /\.allows_wildcard: only ssl has wildcards/],
    [{ ...SIGNING, dcv_methods: ['dns'] }, /\.dcv_methods: only ssl has names to prove/],
    [{ ...SIGNING, dcv_scopes: ['fqdn'] }, /\.dcv_scopes: only ssl has names to prove/],
  ];
  for (const [change, expected] of table) {
    const problems = problemsWith(change);
    assert.equal(problems.length, 1, `${JSON.stringify(change)}: ${problems.join('\n')}`);
    assert.match(problems[0] ?? '', expected);
  }
  for (const change of [
    PUBLIC_SSL,
    SIGNING,
    DUAL,
    { ...SIGNING, ...SM2 },
    { ...SIGNING, csr: 'forbidden' },
    { ...SIGNING, trust: 'public' },
  ]) {
    assert.deepEqual(problemsWith(change), [], JSON.stringify(change));
  }
});

test('all problems of all rows are reported at once', () => {
  const products = [
    { ...ROW, kind: 'x', trust: 'y', extra: 1 },
    { ...ROW, id: 'ssl-dv', aliases: [], term_days: 0 },
    'no row',
    { ...ROW, id: 'twice', aliases: [] },
    { ...ROW, id: 'twice', aliases: [] },
  ];
  const places = problemsOf({ products }).map((problem) => problem.split(':')[0]);
  assert.deepEqual(places.sort(), [
    'products[0].extra',
    'products[0].kind',
    'products[0].trust',
    'products[1].id',
    'products[1].term_days',
    'products[2]',
    'products[4].id',
  ]);
});

test('files that are not product files', () => {
  for (const json of [undefined, null, 7, 'x', true, [], [ROW]]) {
    assert.match(
      problemsOf(json)[0] ?? '',
      /^file: .*write an object with products|^file: it is missing/,
      String(json),
    );
  }
  assert.match(problemsOf({})[0] ?? '', /^products: it is missing; write a list/);
  assert.match(problemsOf({ products: ROW })[0] ?? '', /^products: write a list: \[ … \] \(it is an object\)/);
  assert.match(problemsOf({ products: [], product: 1 })[0] ?? '', /^file\.product: there is no such key/);
  assert.match(problemsOf(JSON.parse('{"products":[],"__proto__":{}}'))[0] ?? '', /^file\.__proto__: there is no such/);
});

test('any file yields products or a list of problems', () => {
  const keys = Object.keys(ROW);
  fc.assert(
    fc.property(fc.constantFrom(...keys), fc.jsonValue(), fc.jsonValue(), (key, value, file) => {
      problemsWith({ [key]: value });
      assert.ok(problemsOf(file).length > 0);
      const [product] =
        problemsWith({ [key]: value }).length === 0 ? parseProducts({ products: [{ ...ROW, [key]: value }] }) : [];
      if (product) assert.deepEqual(conflictsOf(product), []);
    }),
    { numRuns: 500 },
  );
});

test('a built-in product as in a file is read as itself', () => {
  for (const product of PRODUCTS) {
    const row = JSON.parse(JSON.stringify({ ...asInFile(product), id: 'copy', aliases: [] }));
    assert.deepEqual(parseProducts({ products: [row] }), [{ ...product, id: 'copy', aliases: [] }], product.id);
  }
});
