// Consistency rules between the columns of a product. Each names the offending key of the products file and the remedy.
// Built-in products obey them too. Single values are validated in products-file.ts.
import { MIN_PUBLIC_RSA_BITS, type Product } from './products.ts';
import { isPublicTls, MAX_PUBLIC_REUSE_DAYS, MAX_PUBLIC_TLS_DAYS } from './public-rules.ts';

type Rule = readonly [key: string, isBroken: (product: Product) => boolean, remedy: string];

const isSsl = ({ kind }: Product): boolean => kind === 'ssl';
const isPublic = ({ trust }: Product): boolean => trust === 'public';

const RULES: readonly Rule[] = [
  ['key_sources', ({ keySources }) => keySources.length === 0, 'name at least one'],
  // Orders of such products are placed by the operator, who must not know the access code of a cloud-held key.
  [
    'key_sources',
    (product) => !isSsl(product) && product.keySources.length > 0 && !product.keySources.includes('caller'),
    'the first certificate of an order is on a key of the caller, a cloud-held one comes with a reissue; add caller',
  ],
  ['keys', ({ keys }) => keys.length === 0, 'name at least one'],
  ['sign_hashes', ({ signHashes }) => signHashes.length === 0, 'name at least one'],
  [
    'keys',
    (product) =>
      isPublic(product) && product.keys.some(({ type, minBits }) => type === 'rsa' && minBits < MIN_PUBLIC_RSA_BITS),
    `under public rules RSA starts at ${MIN_PUBLIC_RSA_BITS} bits; raise min_bits`,
  ],
  // The service never generates the key of a public web server, and never certifies one without a CSR.
  [
    'csr',
    (product) => isPublicTls(product) && product.csr !== 'required',
    'public ssl always needs a CSR; write required',
  ],
  [
    'key_sources',
    (product) => isPublicTls(product) && product.keySources.some((source) => source !== 'caller'),
    'the key of a public web server is never made by the service; write caller only',
  ],
  // Otherwise a pending certificate would have to store the access code until its key is generated.
  [
    'key_sources',
    (product) => isSsl(product) && !isPublic(product) && product.keySources.some((source) => source !== 'caller'),
    'only signing products have keys held by the service; write caller only',
  ],
  [
    'max_validity_days',
    (product) => isPublicTls(product) && product.maxValidityDays > MAX_PUBLIC_TLS_DAYS,
    `public ssl lives at most ${MAX_PUBLIC_TLS_DAYS} days; write that or less`,
  ],
  [
    'reuse_days',
    (product) => isPublicTls(product) && product.reuseDays > MAX_PUBLIC_REUSE_DAYS,
    `under public rules a proof serves at most ${MAX_PUBLIC_REUSE_DAYS} days; write that or less`,
  ],
  [
    'dcv_methods',
    (product) => isSsl(product) && product.dcvMethods.length === 0,
    'ssl names must be proven; name at least one',
  ],
  [
    'dcv_scopes',
    (product) => isSsl(product) && product.dcvScopes.length === 0,
    'ssl names must be proven; name at least one',
  ],
  [
    'dcv_scopes',
    ({ dcvMethods, dcvScopes }) => dcvMethods.includes('file') && !dcvScopes.includes('fqdn'),
    'a file proves the very name it is fetched from; add fqdn, or leave file out of dcv_methods',
  ],
  [
    'allows_wildcard',
    ({ allowsWildcard, dcvMethods }) =>
      allowsWildcard && dcvMethods.length > 0 && dcvMethods.every((one) => one === 'file'),
    'a file never proves a wildcard; write false, or add a DNS method to dcv_methods',
  ],
  [
    'sign_hashes',
    ({ keys, signHashes }) => signHashes.includes('sm3') !== keys.some(({ type }) => type === 'sm2'),
    'sm2 keys and the digest sm3 go together; name both or neither',
  ],
  [
    'keys',
    (product) => isPublic(product) && product.keys.some(({ type }) => type === 'sm2'),
    'public rules have no sm2',
  ],
  [
    'form',
    ({ form, keys, csr, keySources }) =>
      form === 'dual' &&
      !(keys.every(({ type }) => type === 'sm2') && csr === 'required' && keySources.every((one) => one === 'caller')),
    'dual certificates are on sm2 keys of the caller, with a CSR; write keys [sm2], csr required, key_sources [caller]',
  ],
  // The subject of a signing certificate is a text vouched for once. A reissue has no way to prove another one.
  [
    'names_may_change',
    (product) => !isSsl(product) && product.namesMayChange !== 'none',
    'only ssl has names that can be proven; write none',
  ],
  ['allows_wildcard', (product) => !isSsl(product) && product.allowsWildcard, 'only ssl has wildcards; write false'],
  [
    'dcv_methods',
    (product) => !isSsl(product) && product.dcvMethods.length > 0,
    'only ssl has names to prove; write []',
  ],
  ['dcv_scopes', (product) => !isSsl(product) && product.dcvScopes.length > 0, 'only ssl has names to prove; write []'],
];

/** Returns every broken rule. */
export function conflictsOf(product: Product): { key: string; remedy: string }[] {
  return RULES.filter(([, isBroken]) => isBroken(product)).map(([key, , remedy]) => ({ key, remedy }));
}
