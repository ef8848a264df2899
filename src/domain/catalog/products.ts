// The product catalog as data. Every rule that differs between products is a column here, so that no code branches on a
// product's name. Operators add rows with a file (products-file.ts). Prices are out of scope.

import type { Localized } from '../../kernel/locale.ts';
import type { ProductKind, Trust } from '../certificate/authority.ts';
import { PRIVATE_NAMES, type PrivateName } from '../certificate/names.ts';
import { DCV_SCOPES, type DcvMethod, type DcvScope } from '../certificate/order.ts';
import type { KeyType } from '../certificate/public-key.ts';
import { SIGN_HASHES } from '../certificate/sign-hash.ts';
import type { AddressRule } from '../egress/addresses.ts';
import { invalid, Refusal } from '../errors.ts';
import { MAX_PUBLIC_REUSE_DAYS, MAX_PUBLIC_TLS_DAYS } from './public-rules.ts';

export const NAME_CHANGES = ['none', 'add', 'any'] as const;
export type NameChange = (typeof NAME_CHANGES)[number];

export const CSR_RULES = ['required', 'optional', 'forbidden'] as const;
export type CsrRule = (typeof CSR_RULES)[number];

// Key sources, digests and validation methods have two lists: values that a request may name, and values that a product
// may offer. A value only in the first is recognized and rejected. To implement one, move it to the second; the
// compiler then reports what is missing.
export const KEY_SOURCES = ['caller', 'sign-cloud-csc'] as const;
export type KeySource = (typeof KEY_SOURCES)[number];
export const OFFERED_KEY_SOURCES = ['caller', 'sign-cloud-csc'] as const satisfies readonly KeySource[];
export type OfferedKeySource = (typeof OFFERED_KEY_SOURCES)[number];

/** SM3 is for SM2 keys only. */
export const OFFERED_SIGN_HASHES = SIGN_HASHES;
export type OfferedSignHash = (typeof OFFERED_SIGN_HASHES)[number];

/** Without `email`: the service sends no mail. */
export const OFFERED_DCV_METHODS = ['dns', 'file', 'dns-persist'] as const satisfies readonly DcvMethod[];
export type OfferedDcvMethod = (typeof OFFERED_DCV_METHODS)[number];

export const MIN_PUBLIC_RSA_BITS = 2048;

/** As public rules have it, which let such a certificate do without pointers to its status. */
export const MAX_SHORT_LIVED_DAYS = 7;

/** `dual`: Chinese national cryptography (GM/T) certifies a signing key and an encryption key separately. */
export const CERTIFICATE_FORMS = ['single', 'dual'] as const;
export type CertificateForm = (typeof CERTIFICATE_FORMS)[number];

export interface KeyRule {
  readonly type: KeyType;
  /** For a curve, min and max are its field size. */
  readonly minBits: number;
  readonly maxBits: number;
}

export interface Product {
  readonly id: string;
  /** Numbers that stand for the id in requests, for clients that know products by number. */
  readonly aliases: readonly number[];
  readonly name: Localized;
  /** Only `ssl` certifies DNS names, which need a common name and proof of control. Other kinds certify a holder, by a free text. */
  readonly kind: ProductKind;
  readonly trust: Trust;
  /** `dual`: a signing certificate on the caller's key, and an encryption certificate on a key that we escrow. */
  readonly form: CertificateForm;
  /** What a reissue may do to the names of the current certificate. */
  readonly namesMayChange: NameChange;
  readonly revokesPreviousOnReissue: boolean;
  /** Delay between the issuance of a reissued certificate and the revocation of the previous one. 0 is immediately. */
  readonly revocationGraceHours: number;
  /** Whether the customer may defer or cancel a scheduled revocation. */
  readonly revocationMayBePutOff: boolean;
  /** Applies to reissues. The first certificate on a caller's key always needs a CSR. */
  readonly csr: CsrRule;
  readonly keySources: readonly OfferedKeySource[];
  readonly keys: readonly KeyRule[];
  /** The first one is the default of a new order. */
  readonly signHashes: readonly OfferedSignHash[];
  readonly allowsWildcard: boolean;
  /** Names that it certifies besides those of the public DNS. */
  readonly privateNames: readonly PrivateName[];
  readonly dcvMethods: readonly OfferedDcvMethod[];
  readonly dcvScopes: readonly DcvScope[];
  /** Networks that are not public, on which files are fetched. */
  readonly validationNetworks: readonly AddressRule[];
  /** The rules of the day may be stricter (public-rules.ts). */
  readonly maxValidityDays: number;
  /** Certificates say nothing about where their status is found, because they expire before it would be looked up. */
  readonly shortLived: boolean;
  /** Every certificate is shown to the operator's linters before it is signed, and signed only if they pass it. */
  readonly requiresLint: boolean;
  /** The order's term: how long it may be reissued. */
  readonly termDays: number;
  /** How long a proof of control may be reused. The rules of the day may be stricter. */
  readonly reuseDays: number;
}

export const CURVE_BITS = { p256: 256, p384: 384, p521: 521, ed25519: 255, sm2: 256 } as const satisfies Partial<
  Record<KeyType, number>
>;

const curve = (type: keyof typeof CURVE_BITS): KeyRule => ({
  type,
  minBits: CURVE_BITS[type],
  maxBits: CURVE_BITS[type],
});
/** Longer keys add verification cost and no security. */
export const MAX_RSA_BITS = 8192;
const RSA: KeyRule = { type: 'rsa', minBits: MIN_PUBLIC_RSA_BITS, maxBits: MAX_RSA_BITS };
const SHA2 = ['sha256', 'sha384', 'sha512'] as const;
const ALL_KEYS = [RSA, curve('p256'), curve('p384'), curve('p521')];

type Terms = Omit<Product, 'id' | 'aliases' | 'name'>;

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
  privateNames: [],
  dcvMethods: OFFERED_DCV_METHODS,
  dcvScopes: DCV_SCOPES,
  validationNetworks: [],
  maxValidityDays: MAX_PUBLIC_TLS_DAYS,
  shortLived: false,
  requiresLint: false,
  termDays: 365,
  reuseDays: MAX_PUBLIC_REUSE_DAYS,
};

const PRIVATE_SSL: Terms = {
  ...PUBLIC_SSL,
  trust: 'private',
  csr: 'optional',
  keys: [...ALL_KEYS, curve('ed25519')],
  revocationMayBePutOff: true,
  privateNames: PRIVATE_NAMES,
  maxValidityDays: 397,
  termDays: 3 * 365,
  reuseDays: 397,
};

const SIGNING: Omit<Terms, 'kind' | 'csr'> = {
  ...PRIVATE_SSL,
  namesMayChange: 'none',
  allowsWildcard: false,
  privateNames: [],
  dcvMethods: [],
  dcvScopes: [],
  reuseDays: 0,
  keySources: OFFERED_KEY_SOURCES,
  keys: [...ALL_KEYS, curve('sm2')],
  signHashes: OFFERED_SIGN_HASHES,
};

export const PRODUCTS: readonly Product[] = [
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv',
    aliases: [101],
    name: { en: 'DV SSL, names free to change', zh: 'DV SSL（域名可变更）' },
  },
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv-add',
    aliases: [102],
    name: { en: 'DV SSL, names can be added', zh: 'DV SSL（域名可增加）' },
    namesMayChange: 'add',
  },
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv-fixed',
    aliases: [103],
    name: { en: 'DV SSL, names fixed', zh: 'DV SSL（域名不可变更）' },
    namesMayChange: 'none',
  },
  {
    ...PUBLIC_SSL,
    id: 'ssl-dv-replace',
    aliases: [104],
    name: { en: 'DV SSL, one valid certificate at a time', zh: 'DV SSL（重签即吊销上一张证书）' },
    revokesPreviousOnReissue: true,
  },
  { ...PRIVATE_SSL, id: 'tls-private', aliases: [105], name: { en: 'TLS of private trust', zh: '私有信任 TLS' } },
  {
    ...PRIVATE_SSL,
    id: 'ssl-sm2-dual',
    aliases: [106],
    name: { en: 'SM2 dual certificates for TLS', zh: '国密 SM2 双证书 SSL' },
    form: 'dual',
    csr: 'required',
    keys: [curve('sm2')],
    signHashes: ['sm3'],
  },
  {
    ...SIGNING,
    id: 'code-signing',
    aliases: [107],
    name: { en: 'Code signing of private trust', zh: '私有信任代码签名' },
    kind: 'code_signing',
    csr: 'required',
  },
  {
    ...SIGNING,
    id: 'document-signing',
    aliases: [108],
    name: { en: 'Document signing of private trust', zh: '私有信任文档签名' },
    kind: 'document_signing',
    csr: 'optional',
  },
  {
    ...SIGNING,
    id: 'client-auth',
    aliases: [109],
    name: { en: 'TLS client authentication of private trust', zh: '私有信任 TLS 客户端认证' },
    kind: 'client_auth',
    csr: 'optional',
    keySources: ['caller'],
    keys: PRIVATE_SSL.keys,
    signHashes: SHA2,
  },
];

export type Catalog = ReadonlyMap<string, Product>;

/** The product that a request names, by its id or by one of its numbers. */
export const findProduct = (products: Catalog, name: string): Product | undefined =>
  products.get(name) ?? [...products.values()].find(({ aliases }) => aliases.some((alias) => String(alias) === name));

/**
 * The product that an order names, by name or by number. Refuses two that differ: one of them is a mistake, and the wrong
 * product would be issued. A number that no product has is a price of the client's own, and means nothing here.
 */
export function requestedProduct(products: Catalog, name: string, number?: number): Product | undefined {
  const [named, numbered] = [findProduct(products, name), number ? findProduct(products, String(number)) : undefined];
  if (!named || !numbered || named === numbered) return named ?? numbered;
  throw invalid(
    'pay_product_id',
    `pay_product_id ${number} is ${numbered.id}, and the path names ${named.id}. Send the number of the product in the path, or leave it out.`,
    `pay_product_id ${number} 对应产品 ${numbered.id}，而路径中的产品为 ${named.id}。请发送路径中产品的编号，或不发送。`,
  );
}

const MAX_NAMED = 20;

/** Names the products there are. */
export function productNotFound(products: Catalog, said: Localized): Refusal {
  const ids = [...products.keys()];
  const named = ids.slice(0, MAX_NAMED).join(', ') + (ids.length > MAX_NAMED ? ', …' : '');
  return new Refusal('product_not_found', {
    reason: { en: `${said.en} There are: ${named}.`, zh: `${said.zh}现有产品：${named}。` },
    details: { products: ids },
  });
}

/** Throws `product_not_found` if the operator no longer offers the product. */
export function productOf(products: Catalog, productId: string): Product {
  const product = products.get(productId);
  if (product) return product;
  throw productNotFound(products, {
    en: `The product of this order, ${productId}, is not offered any more. Ask the operator to bring it back.`,
    zh: `该订单的产品 ${productId} 已不再提供，请联系运营方恢复。`,
  });
}
