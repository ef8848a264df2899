// Custom products, for rules that no built-in product exercises, and the publicly trusted built-in ones.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './app.ts';

export const PUBLIC_TLS = ['ssl-dv', 'ssl-dv-add', 'ssl-dv-fixed', 'ssl-dv-replace'];

/** A row of a products file: restrictive in every field, and without a CSR. */
export const OWN_PRODUCT = {
  ...{ id: 'own', name: { en: 'Own', zh: '自有' }, kind: 'ssl', trust: 'private', names_may_change: 'any' },
  ...{ revokes_previous_on_reissue: false, revocation_may_be_put_off: true, csr: 'forbidden', key_sources: ['caller'] },
  ...{ keys: [{ type: 'p256' }], sign_hashes: ['sha256'], allows_wildcard: true, dcv_methods: ['dns'] },
  ...{ dcv_scopes: ['fqdn'], max_validity_days: 30, term_days: 365, reuse_days: 200 },
};

export function productsFile(...products: object[]): string {
  const file = join(newFolder(), 'products.json');
  writeFileSync(file, JSON.stringify({ products }));
  return file;
}
