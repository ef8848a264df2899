// The JSON Schema of products files against their loader.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import Schema from 'typebox/schema';
import { PRODUCTS_SCHEMA } from '../../../src/domain/catalog/products-file.ts';
import { PUBLIC_SSL, problemsOf, ROW, SIGNING } from '../../support/product-rows.ts';

/** What a field may be changed to, valid or not, by key. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  aliases: [[], [7, 8], [7, 7], [101], [0], ['7']],
  id: ['101', 'acme', 'Acme', 'a--b', 'ssl-dv', 'a'.repeat(65), 7],
  name: [
    { en: 'A', zh: ' ' },
    { en: 'A' },
    { en: 'A', zh: '字', de: 'A' },
    { en: 'a\n', zh: 'b' },
    { en: '🔒'.repeat(200), zh: 'b' },
  ],
  kind: ['ssl', 'client_auth', 'code_signing', 'document_signing', 'other'],
  trust: ['public', 'private'],
  form: ['single', 'dual', null],
  names_may_change: ['none', 'any', 'other'],
  revocation_grace_hours: [0, 720, 721, 1.5],
  csr: ['required', 'optional', 'forbidden'],
  key_sources: [[], ['caller'], ['sign-cloud-csc'], ['caller', 'caller'], 'caller'],
  keys: [
    ...[
      [],
      [{ type: 'sm2' }],
      [{ type: 'ed25519' }],
      [{ type: 'p256' }, { type: 'sm2' }],
      [{ type: 'rsa', min_bits: 1024, max_bits: 4096 }],
    ],
    [
      { type: 'rsa', min_bits: 2048, max_bits: 4096 },
      { type: 'rsa', min_bits: 3072, max_bits: 4096 },
    ],
    ...[[{ type: 'p256', min_bits: 256 }], [{ type: 'rsa' }], [{ type: 'p256' }, { type: 'p256' }]],
  ],
  sign_hashes: [[], ['sha256'], ['sm3'], ['sha256', 'sm3'], ['md5']],
  allows_wildcard: [true, false, 'true'],
  dcv_methods: [[], ['file'], ['dns'], ['file', 'dns'], ['email']],
  dcv_scopes: [[], ['fqdn'], ['base_domain']],
  private_names: [[], ['internal'], ['ip', 'internal'], ['ip', 'ip'], ['host'], 'ip'],
  validation_networks: [[], ['10.0.0.0/8'], ['fd00::/8', '[::1]:80'], ['::1', '::1'], ['corp'], '::1'],
  max_validity_days: [7, 199, 200, 0, 3651],
  short_lived: [true, false, 'true'],
  term_days: [1, '365'],
  reuse_days: [200, 201],
  other: [1],
};

test('the JSON Schema accepts what the loader accepts, and refuses what it refuses', () => {
  const schema = Schema.Compile(JSON.parse(JSON.stringify(PRODUCTS_SCHEMA)));
  const seen = new Set<boolean>();
  const compare = (change: object) => {
    const file = JSON.parse(JSON.stringify({ products: [{ ...ROW, ...change }] }));
    const isAccepted = problemsOf(file).length === 0;
    seen.add(isAccepted);
    assert.equal(schema.Check(file), isAccepted, `${JSON.stringify(change)}: ${problemsOf(file).join()}`);
  };
  for (const [key, values] of Object.entries(VALUES)) for (const value of values) compare({ [key]: value });
  for (const key of Object.keys(ROW)) compare({ [key]: undefined });
  const change = fc.record(
    Object.fromEntries(Object.entries(VALUES).map(([key, values]) => [key, fc.constantFrom(...values)])),
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.constantFrom({}, SIGNING, PUBLIC_SSL), change, (base, more) => compare({ ...base, ...more })),
    {
      numRuns: 2_000,
    },
  );
  assert.equal(seen.size, 2);
  for (const json of [
    [],
    {},
    { products: 1 },
    { products: [1] },
    { products: [], other: 1 },
    { products: [], $schema: 1 },
  ]) {
    assert.equal(schema.Check(json), problemsOf(json).length === 0, JSON.stringify(json));
  }
});
