// Rows of a products file, and what its loader says of them.
import assert from 'node:assert/strict';
import { ProductsError, parseProducts } from '../../src/domain/catalog/products-file.ts';

export const ROW = {
  id: 'acme-tls',
  aliases: [7001],
  name: { en: 'Acme TLS', zh: 'Acme TLS 证书' },
  kind: 'ssl',
  trust: 'private',
  names_may_change: 'add',
  revokes_previous_on_reissue: true,
  revocation_grace_hours: 72,
  revocation_may_be_put_off: true,
  csr: 'optional',
  key_sources: ['caller'],
  keys: [{ type: 'rsa', min_bits: 3072, max_bits: 4096 }, { type: 'p384' }],
  sign_hashes: ['sha384', 'sha512'],
  allows_wildcard: true,
  dcv_methods: ['dns', 'dns-persist'],
  dcv_scopes: ['fqdn'],
  max_validity_days: 90,
  term_days: 730,
  reuse_days: 30,
};
export const SIGNING = {
  kind: 'code_signing',
  names_may_change: 'none',
  allows_wildcard: false,
  dcv_methods: [],
  dcv_scopes: [],
};
export const PUBLIC_SSL = { trust: 'public', csr: 'required' };

export function problemsOf(json: unknown): readonly string[] {
  try {
    parseProducts(json);
  } catch (error) {
    assert.ok(error instanceof ProductsError, String(error));
    assert.ok(error.problems.length > 0 && error.problems.every((problem) => error.message.includes(problem)));
    return error.problems;
  }
  return [];
}
