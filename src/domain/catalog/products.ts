// What can be ordered, as data. Every rule that differs between products is a column here, so that no code ever asks
// for a product's name. An operator adds rows by a file (products-file.ts); prices are nobody's business here.

import type { Localized } from '../../kernel/locale.ts';
import type { ProductKind, Trust } from '../certificate/authority.ts';
import { DCV_SCOPES, type DcvMethod, type DcvScope } from '../certificate/order.ts';
import type { KeyType } from '../certificate/public-key.ts';
import { SIGN_HASHES } from '../certificate/sign-hash.ts';
import { Refusal } from '../errors.ts';

export const NAME_CHANGES = ['none', 'add', 'any'] as const;
export type NameChange = (typeof NAME_CHANGES)[number];

export const CSR_RULES = ['required', 'optional', 'forbidden'] as const;
export type CsrRule = (typeof CSR_RULES)[number];

// For key sources, digests and validation methods there are two lists: what a request may name, and what a product may
// offer. A word that is only in the first is known and refused, never half served; moving it to the second is how its
// capability begins, and the compiler then points at what is missing.
export const KEY_SOURCES = ['caller', 'sign-cloud-csc'] as const;
export type KeySource = (typeof KEY_SOURCES)[number];
export const OFFERED_KEY_SOURCES = ['caller', 'sign-cloud-csc'] as const satisfies readonly KeySource[];
export type OfferedKeySource = (typeof OFFERED_KEY_SOURCES)[number];

/** SM3 goes with SM2 keys, and with no others. */
export const OFFERED_SIGN_HASHES = SIGN_HASHES;
export type OfferedSignHash = (typeof OFFERED_SIGN_HASHES)[number];

/** `email` is not among them as long as no mail leaves the service. */
export const OFFERED_DCV_METHODS = ['dns', 'file', 'dns-persist'] as const satisfies readonly DcvMethod[];
export type OfferedDcvMethod = (typeof OFFERED_DCV_METHODS)[number];

/** The limit in force is 200 days; the last second is inclusive and clocks differ. */
export const MAX_PUBLIC_TLS_DAYS = 199;
/** How long a proof of control may serve again under public rules. */
export const MAX_PUBLIC_REUSE_DAYS = 200;
export const MIN_PUBLIC_RSA_BITS = 2048;

/** National cryptography certifies one key for signing and another for encryption. */
export const CERTIFICATE_FORMS = ['single', 'dual'] as const;
export type CertificateForm = (typeof CERTIFICATE_FORMS)[number];

export interface KeyRule {
  readonly type: KeyType;
  /** For a curve both are the size of its field. */
  readonly minBits: number;
  readonly maxBits: number;
}

export interface Product {
  readonly id: string;
  readonly name: Localized;
  /** Only `ssl` has DNS names: they need a common name and proof of control. The others certify a text. */
  readonly kind: ProductKind;
  readonly trust: Trust;
  /** `dual`: a signing certificate on the caller's key, and an encryption certificate on one that we escrow. */
  readonly form: CertificateForm;
  /** What a reissue may do to the names of the current certificate. */
  readonly namesMayChange: NameChange;
  readonly revokesPreviousOnReissue: boolean;
  /** How long after the issuance of the new certificate a reissue revokes. 0 is at once. */
  readonly revocationGraceHours: number;
  /** Whether the customer may put off or cancel a revocation that is scheduled. */
  readonly revocationMayBePutOff: boolean;
  /** What a reissue asks for. The first certificate on a key of the caller needs a CSR whatever stands here. */
  readonly csr: CsrRule;
  readonly keySources: readonly OfferedKeySource[];
  readonly keys: readonly KeyRule[];
  readonly signHashes: readonly OfferedSignHash[];
  readonly allowsWildcard: boolean;
  readonly dcvMethods: readonly OfferedDcvMethod[];
  readonly dcvScopes: readonly DcvScope[];
  readonly maxValidityDays: number;
  /** How long an order is owed certificates. */
  readonly termDays: number;
  /** How long a proof of control may serve again. */
  readonly reuseDays: number;
}

export const CURVE_BITS = { p256: 256, p384: 384, p521: 521, sm2: 256 } as const satisfies Partial<
  Record<KeyType, number>
>;

const curve = (type: keyof typeof CURVE_BITS): KeyRule => ({
  type,
  minBits: CURVE_BITS[type],
  maxBits: CURVE_BITS[type],
});
/** A longer key only costs everyone who verifies it. */
export const MAX_RSA_BITS = 8192;
const RSA: KeyRule = { type: 'rsa', minBits: MIN_PUBLIC_RSA_BITS, maxBits: MAX_RSA_BITS };
const SHA2 = ['sha256', 'sha384', 'sha512'] as const;
const ALL_KEYS = [RSA, curve('p256'), curve('p384'), curve('p521')];

type Terms = Omit<Product, 'id' | 'name'>;

const PUBLIC_SSL: Terms = {
  kind: 'ssl',
  trust: 'public',
  form: 'single',
  namesMayChange: 'any',
  revokesPreviousOnReissue: false,
  revocationGraceHours: 0,
  revocationMayBePutOff: false,
  csr: 'required',
  keySources: ['caller'],
  keys: ALL_KEYS,
  signHashes: SHA2,
  allowsWildcard: true,
  dcvMethods: OFFERED_DCV_METHODS,
  dcvScopes: DCV_SCOPES,
  maxValidityDays: MAX_PUBLIC_TLS_DAYS,
  termDays: 365,
  reuseDays: MAX_PUBLIC_REUSE_DAYS,
};

const PRIVATE_SSL: Terms = {
  ...PUBLIC_SSL,
  trust: 'private',
  csr: 'optional',
  revocationMayBePutOff: true,
  maxValidityDays: 397,
  termDays: 3 * 365,
  reuseDays: 397,
};

const SIGNING: Omit<Terms, 'kind' | 'csr'> = {
  ...PRIVATE_SSL,
  namesMayChange: 'none',
  allowsWildcard: false,
  dcvMethods: [],
  dcvScopes: [],
  reuseDays: 0,
  keySources: OFFERED_KEY_SOURCES,
  keys: [...ALL_KEYS, curve('sm2')],
  signHashes: OFFERED_SIGN_HASHES,
};

export const PRODUCTS: readonly Product[] = [
  { ...PUBLIC_SSL, id: 'ssl-dv', name: { en: 'DV SSL, names free to change', zh: 'DV SSL（域名可变更）' } },
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv-add',
    name: { en: 'DV SSL, names can be added', zh: 'DV SSL（域名可增加）' },
    namesMayChange: 'add',
  },
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv-fixed',
    name: { en: 'DV SSL, names fixed', zh: 'DV SSL（域名不可变更）' },
    namesMayChange: 'none',
  },
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv-replace',
    name: { en: 'DV SSL, one valid certificate at a time', zh: 'DV SSL（重签即吊销上一张证书）' },
    revokesPreviousOnReissue: true,
  },
  { ...PRIVATE_SSL, id: 'tls-private', name: { en: 'TLS of private trust', zh: '私有信任 TLS' } },
  {
    ...PRIVATE_SSL,
    id: 'ssl-sm2-dual',
    name: { en: 'SM2 dual certificates for TLS', zh: '国密 SM2 双证书 SSL' },
    form: 'dual',
    csr: 'required',
    keys: [curve('sm2')],
    signHashes: ['sm3'],
  },
  {
    ...SIGNING,
    id: 'code-signing',
    name: { en: 'Code signing of private trust', zh: '私有信任代码签名' },
    kind: 'code_signing',
    csr: 'required',
  },
  {
    ...SIGNING,
    id: 'document-signing',
    name: { en: 'Document signing of private trust', zh: '私有信任文档签名' },
    kind: 'document_signing',
    csr: 'optional',
  },
];

export type Catalog = ReadonlyMap<string, Product>;

/** Throws `product_not_found` when the operator no longer offers the product of an order. */
export function productOf(products: Catalog, productId: string): Product {
  const product = products.get(productId);
  if (product) return product;
  throw new Refusal('product_not_found', {
    reason: {
      en: `The product of this order, ${productId}, is not offered any more. Ask the operator to bring it back.`,
      zh: `该订单的产品 ${productId} 已不再提供，请联系运营方恢复。`,
    },
  });
}
