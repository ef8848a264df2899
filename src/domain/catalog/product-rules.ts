// Consistency rules between the columns of a product. Each names the offending key of the products file and the remedy, and
// says the same as a JSON Schema of what is broken. Built-in products obey them too. Single values are validated in
// products-file.ts.
import { MAX_SHORT_LIVED_DAYS, MIN_PUBLIC_RSA_BITS, type Product } from './products.ts';
import { isPublicTls, MAX_PUBLIC_REUSE_DAYS, MAX_PUBLIC_TLS_DAYS } from './public-rules.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

interface Rule {
  readonly key: string;
  readonly remedy: string;
  isBroken(product: Product): boolean;
  /** Of a row of the file that breaks the rule. */
  readonly broken: JsonSchema;
}

const isSsl = ({ kind }: Product): boolean => kind === 'ssl';
const isPublic = ({ trust }: Product): boolean => trust === 'public';

const row = (properties: JsonSchema): JsonSchema => ({ properties, required: Object.keys(properties) });
const isNot = (value: unknown): JsonSchema => ({ not: { const: value } });
const some = (item: JsonSchema): JsonSchema => ({ contains: item });
const every = (item: JsonSchema): JsonSchema => ({ items: item });
const above = (limit: number): JsonSchema => ({ exclusiveMinimum: limit });
const EMPTY: JsonSchema = { maxItems: 0 };
const FILLED: JsonSchema = { minItems: 1 };
const ofType = (type: string): JsonSchema => row({ type: { const: type } });
const SSL = { kind: { const: 'ssl' } };
const NOT_SSL = { kind: isNot('ssl') };
const PUBLIC = { trust: { const: 'public' } };
const PUBLIC_SSL = { ...SSL, ...PUBLIC };
const SM2 = { keys: some(ofType('sm2')) };
const SM3 = { sign_hashes: some({ const: 'sm3' }) };

const RULES: readonly Rule[] = [
  {
    key: 'key_sources',
    isBroken: ({ keySources }) => keySources.length === 0,
    broken: row({ key_sources: EMPTY }),
    remedy: 'name at least one',
  },
  // Orders of such products are placed by the operator, who must not know the access code of a cloud-held key.
  {
    key: 'key_sources',
    isBroken: (product) => !isSsl(product) && product.keySources.length > 0 && !product.keySources.includes('caller'),
    broken: row({ ...NOT_SSL, key_sources: { ...FILLED, ...every(isNot('caller')) } }),
    remedy:
      'the first certificate of an order is on a key of the caller, a cloud-held one comes with a reissue; add caller',
  },
  {
    key: 'keys',
    isBroken: ({ keys }) => keys.length === 0,
    broken: row({ keys: EMPTY }),
    remedy: 'name at least one',
  },
  {
    key: 'sign_hashes',
    isBroken: ({ signHashes }) => signHashes.length === 0,
    broken: row({ sign_hashes: EMPTY }),
    remedy: 'name at least one',
  },
  {
    key: 'keys',
    isBroken: (product) =>
      isPublic(product) && product.keys.some(({ type, minBits }) => type === 'rsa' && minBits < MIN_PUBLIC_RSA_BITS),
    broken: row({
      ...PUBLIC,
      keys: some(row({ type: { const: 'rsa' }, min_bits: { exclusiveMaximum: MIN_PUBLIC_RSA_BITS } })),
    }),
    remedy: `under public rules RSA starts at ${MIN_PUBLIC_RSA_BITS} bits; raise min_bits`,
  },
  // The service never generates the key of a public web server, and never certifies one without a CSR.
  {
    key: 'csr',
    isBroken: (product) => isPublicTls(product) && product.csr !== 'required',
    broken: row({ ...PUBLIC_SSL, csr: isNot('required') }),
    remedy: 'public ssl always needs a CSR; write required',
  },
  {
    key: 'key_sources',
    isBroken: (product) => isPublicTls(product) && product.keySources.some((source) => source !== 'caller'),
    broken: row({ ...PUBLIC_SSL, key_sources: some(isNot('caller')) }),
    remedy: 'the key of a public web server is never made by the service; write caller only',
  },
  // Otherwise a pending certificate would have to store the access code until its key is generated.
  {
    key: 'key_sources',
    isBroken: (product) =>
      ((isSsl(product) && !isPublic(product)) || product.kind === 'client_auth') &&
      product.keySources.some((source) => source !== 'caller'),
    broken: {
      anyOf: [
        row({ ...SSL, trust: isNot('public'), key_sources: some(isNot('caller')) }),
        row({ kind: { const: 'client_auth' }, key_sources: some(isNot('caller')) }),
      ],
    },
    remedy: 'only signing products have keys held by the service; write caller only',
  },
  {
    key: 'max_validity_days',
    isBroken: (product) => isPublicTls(product) && product.maxValidityDays > MAX_PUBLIC_TLS_DAYS,
    broken: row({ ...PUBLIC_SSL, max_validity_days: above(MAX_PUBLIC_TLS_DAYS) }),
    remedy: `public ssl lives at most ${MAX_PUBLIC_TLS_DAYS} days; write that or less`,
  },
  // Public rules allow it, and Microsoft's root program asks every certificate for a pointer to its status.
  {
    key: 'short_lived',
    isBroken: (product) => isPublic(product) && product.shortLived,
    broken: row({ ...PUBLIC, short_lived: { const: true } }),
    remedy: 'under public trust every certificate says where its status is found; write false',
  },
  {
    key: 'max_validity_days',
    isBroken: ({ shortLived, maxValidityDays }) => shortLived && maxValidityDays > MAX_SHORT_LIVED_DAYS,
    broken: row({ short_lived: { const: true }, max_validity_days: above(MAX_SHORT_LIVED_DAYS) }),
    remedy: `a short-lived certificate lives at most ${MAX_SHORT_LIVED_DAYS} days; write that or less, or leave short_lived out`,
  },
  {
    key: 'reuse_days',
    isBroken: (product) => isPublicTls(product) && product.reuseDays > MAX_PUBLIC_REUSE_DAYS,
    broken: row({ ...PUBLIC_SSL, reuse_days: above(MAX_PUBLIC_REUSE_DAYS) }),
    remedy: `under public rules a proof serves at most ${MAX_PUBLIC_REUSE_DAYS} days; write that or less`,
  },
  {
    key: 'dcv_methods',
    isBroken: (product) => isSsl(product) && product.dcvMethods.length === 0,
    broken: row({ ...SSL, dcv_methods: EMPTY }),
    remedy: 'ssl names must be proven; name at least one',
  },
  {
    key: 'dcv_scopes',
    isBroken: (product) => isSsl(product) && product.dcvScopes.length === 0,
    broken: row({ ...SSL, dcv_scopes: EMPTY }),
    remedy: 'ssl names must be proven; name at least one',
  },
  {
    key: 'dcv_scopes',
    isBroken: ({ dcvMethods, dcvScopes }) => dcvMethods.includes('file') && !dcvScopes.includes('fqdn'),
    broken: row({ dcv_methods: some({ const: 'file' }), dcv_scopes: every(isNot('fqdn')) }),
    remedy: 'a file proves the very name it is fetched from; add fqdn, or leave file out of dcv_methods',
  },
  {
    key: 'allows_wildcard',
    isBroken: ({ allowsWildcard, dcvMethods }) =>
      allowsWildcard && dcvMethods.length > 0 && dcvMethods.every((one) => one === 'file'),
    broken: row({ allows_wildcard: { const: true }, dcv_methods: { ...FILLED, ...every({ const: 'file' }) } }),
    remedy: 'a file never proves a wildcard; write false, or add a DNS method to dcv_methods',
  },
  // Who reaches such a name or address depends on the network: it belongs to no applicant that the public could trust.
  {
    key: 'private_names',
    isBroken: (product) => isPublic(product) && product.privateNames.length > 0,
    broken: row({ ...PUBLIC, private_names: FILLED }),
    remedy: 'internal names and IP addresses are never certified under public rules; write [], or trust private',
  },
  {
    key: 'private_names',
    isBroken: (product) => !isSsl(product) && product.privateNames.length > 0,
    broken: row({ ...NOT_SSL, private_names: FILLED }),
    remedy: 'only ssl certifies names; write []',
  },
  {
    key: 'validation_networks',
    isBroken: (product) => isPublic(product) && product.validationNetworks.length > 0,
    broken: row({ ...PUBLIC, validation_networks: FILLED }),
    remedy: 'under public rules only public addresses are asked; write [], or trust private',
  },
  {
    key: 'validation_networks',
    isBroken: ({ dcvMethods, validationNetworks }) => validationNetworks.length > 0 && !dcvMethods.includes('file'),
    broken: row({ dcv_methods: every(isNot('file')), validation_networks: FILLED }),
    remedy: 'they are for files; write [], or add file to dcv_methods',
  },
  {
    key: 'sign_hashes',
    isBroken: ({ keys, signHashes }) => signHashes.includes('sm3') !== keys.some(({ type }) => type === 'sm2'),
    broken: { oneOf: [row(SM2), row(SM3)] },
    remedy: 'sm2 keys and the digest sm3 go together; name both or neither',
  },
  {
    key: 'keys',
    isBroken: (product) => isPublic(product) && product.keys.some(({ type }) => type === 'sm2' || type === 'ed25519'),
    broken: row({ ...PUBLIC, keys: some(row({ type: { enum: ['sm2', 'ed25519'] } })) }),
    remedy: 'public rules have neither sm2 nor ed25519',
  },
  {
    key: 'form',
    isBroken: ({ form, keys, csr, keySources }) =>
      form === 'dual' &&
      !(keys.every(({ type }) => type === 'sm2') && csr === 'required' && keySources.every((one) => one === 'caller')),
    broken: {
      allOf: [
        row({ form: { const: 'dual' } }),
        {
          not: row({
            keys: every(ofType('sm2')),
            csr: { const: 'required' },
            key_sources: every({ const: 'caller' }),
          }),
        },
      ],
    },
    remedy:
      'dual certificates are on sm2 keys of the caller, with a CSR; write keys [sm2], csr required, key_sources [caller]',
  },
  // The subject of a signing certificate is a text vouched for once. A reissue has no way to prove another one.
  {
    key: 'names_may_change',
    isBroken: (product) => !isSsl(product) && product.namesMayChange !== 'none',
    broken: row({ ...NOT_SSL, names_may_change: isNot('none') }),
    remedy: 'only ssl has names that can be proven; write none',
  },
  {
    key: 'allows_wildcard',
    isBroken: (product) => !isSsl(product) && product.allowsWildcard,
    broken: row({ ...NOT_SSL, allows_wildcard: { const: true } }),
    remedy: 'only ssl has wildcards; write false',
  },
  {
    key: 'dcv_methods',
    isBroken: (product) => !isSsl(product) && product.dcvMethods.length > 0,
    broken: row({ ...NOT_SSL, dcv_methods: FILLED }),
    remedy: 'only ssl has names to prove; write []',
  },
  {
    key: 'dcv_scopes',
    isBroken: (product) => !isSsl(product) && product.dcvScopes.length > 0,
    broken: row({ ...NOT_SSL, dcv_scopes: FILLED }),
    remedy: 'only ssl has names to prove; write []',
  },
];

/** Returns every broken rule. */
export function conflictsOf(product: Product): { key: string; remedy: string }[] {
  return RULES.filter((rule) => rule.isBroken(product)).map(({ key, remedy }) => ({ key, remedy }));
}

export const RULES_AS_SCHEMA: readonly JsonSchema[] = RULES.map(({ key, remedy, broken }) => ({
  description: `${key}: ${remedy}.`,
  not: broken,
}));
