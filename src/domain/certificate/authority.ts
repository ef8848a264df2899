// The certificate authority as use cases see it. `prepare` returns complete, linted bytes; call `sign` once for them,
// after they are durable, and never again for the same serial number.
import { DAY_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';
import { Refusal } from '../errors.ts';
import type { NameConstraints } from './name-constraints.ts';
import type { KeyType, PublicKey } from './public-key.ts';
import type { SignHash } from './sign-hash.ts';
import type { SubjectFields } from './subject.ts';

export const PRODUCT_KINDS = ['ssl', 'client_auth', 'code_signing', 'document_signing'] as const;
export type ProductKind = (typeof PRODUCT_KINDS)[number];
export const TRUSTS = ['public', 'private'] as const;
export type Trust = (typeof TRUSTS)[number];

/** What an issuer signs for. One issuing authority per purpose and key type: none can be used for another's. */
export const PURPOSES = ['public-tls', 'private-tls', 'client-auth', 'code-signing', 'document-signing'] as const;
export type Purpose = (typeof PURPOSES)[number];

const PURPOSE_OF: Readonly<Record<ProductKind, Readonly<Record<Trust, Purpose>>>> = {
  ssl: { public: 'public-tls', private: 'private-tls' },
  client_auth: { public: 'client-auth', private: 'client-auth' },
  code_signing: { public: 'code-signing', private: 'code-signing' },
  document_signing: { public: 'document-signing', private: 'document-signing' },
};
export const purposeOf = ({ kind, trust }: { readonly kind: ProductKind; readonly trust: Trust }): Purpose =>
  PURPOSE_OF[kind][trust];

/** A dual certificate has a `signing` and an `encryption` half; every other certificate is `single`. */
export const CERTIFICATE_ROLES = ['single', 'signing', 'encryption'] as const;
export type CertificateRole = (typeof CERTIFICATE_ROLES)[number];

export interface CertificateContent {
  readonly role: CertificateRole;
  readonly kind: ProductKind;
  readonly trust: Trust;
  readonly commonName: string | null;
  readonly names: readonly string[];
  /** Of a certificate without names. */
  readonly subject: SubjectFields | null;
  readonly publicKey: PublicKey;
  readonly signHash: SignHash;
  readonly issuerId: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly maxDays: number;
  /** Says nothing about where its status is found. */
  readonly isShortLived: boolean;
}

export interface PreparedBytes {
  /** Hexadecimal, lower case. */
  readonly serial: string;
  readonly toBeSigned: Uint8Array;
}

export interface ChosenIssuer {
  readonly id: string;
  /** Nothing that it signs may begin before. */
  readonly notBefore: number;
  /** The earliest notAfter in its chain: no certificate it signs may outlive it. */
  readonly notAfter: number;
  /** Of every authority in its chain that has any. */
  readonly nameConstraints: readonly NameConstraints[];
}

/** An issuer with less left signs nothing new: the certificate would expire before it is installed. */
const MIN_ISSUER_LIFE_MS = DAY_MS;
export const canStillSign = ({ notAfter }: Pick<ChosenIssuer, 'notAfter'>, now: number): boolean =>
  notAfter >= now + MIN_ISSUER_LIFE_MS;

/** The key of an issuer is in a token that does not answer, or does not sign. */
export class NotSigned extends Refusal {
  /** True: there is no signature, and there will be none. False: one may exist somewhere, so the serial number is used up. */
  readonly isCertain: boolean;

  constructor(isCertain: boolean, retryAfterSeconds: number, cause?: unknown) {
    super('service_busy', { retryAfterSeconds, cause, reason: TOKEN_REASON });
    this.isCertain = isCertain;
  }
}

const TOKEN_REASON: Localized = {
  en: 'The key of the issuing authority is in a token that does not answer. Nothing was issued; try again later.',
  zh: '签发机构的密钥所在的硬件令牌没有响应。未签发任何证书，请稍后重试。',
};

export interface CertificateAuthority {
  /**
   * The issuer that signs this key type with this digest: the preferred one valid until then, else the one valid
   * longest. Undefined when no issuer supports the combination. It may be one that is made when first needed: `unmade`.
   */
  readonly issuerFor: (
    purpose: Purpose,
    keyType: KeyType,
    signHash: SignHash,
    until: number,
  ) => ChosenIssuer | undefined;
  /** Every combination for which issuerFor finds an issuer. */
  readonly served: (purpose: Purpose) => readonly { readonly keyType: KeyType; readonly signHash: SignHash }[];
  /** What has to be made before an issuer that was chosen can sign; undefined for one that exists. */
  readonly unmade: (issuerId: string) => IssuerSlot | undefined;
  /**
   * Throws an Error, not a Refusal, when the bytes fail the lint: that is a bug of the service. Throws NotSigned while the
   * issuer's key cannot be used, so that nothing is written down that could not be signed.
   */
  prepare(content: CertificateContent): PreparedBytes;
  /** Returns the signed certificate, DER. Throws NotSigned if the key cannot be used now. */
  sign(issuerId: string, signHash: SignHash, toBeSigned: Uint8Array): Promise<Uint8Array>;
  /** The issuer's chain, itself first and the root last; DER. Empty for none. Another process may just have made it. */
  chainOf(issuerId: string): Promise<readonly Uint8Array[]>;
}

export const ISSUER_KEY_TYPES = ['p256', 'p384', 'rsa', 'sm2'] as const;
export type IssuerKeyType = (typeof ISSUER_KEY_TYPES)[number];

/** At most one issuer has it. */
export interface IssuerSlot {
  readonly purpose: Purpose;
  readonly keyType: IssuerKeyType;
}

/** Where the private key of an issuer is. */
export const KEY_PLACES = {
  /** Sealed in the store. */
  store: { isHere: true },
  /** In a token (PKCS#11), which it never leaves; the store has where. */
  token: { isHere: true },
  /** It was here, and was taken away: the issuer is ours, and its key signs on another machine. */
  offline: { isHere: false },
  /** It was never here: that of an authority above an imported one. */
  elsewhere: { isHere: false },
} as const satisfies Record<string, { readonly isHere: boolean }>;
export type KeyPlace = keyof typeof KEY_PLACES;

/** Whether this service can sign with the key. */
export const isKeyHere = ({ keyPlace }: { readonly keyPlace: KeyPlace }): boolean => KEY_PLACES[keyPlace].isHere;

export interface Issuer {
  readonly id: string;
  /** An `issuing` one without a key here stands between an imported authority and its root. */
  readonly role: 'root' | 'issuing';
  readonly keyType: IssuerKeyType;
  /** Empty for a retired one: it signs no certificates. It is still served, and still signs CRLs and OCSP responders. */
  readonly purposes: readonly Purpose[];
  /** The certificate policy that the operator chose for what it signs, if its chain leaves a choice; a dotted OID. */
  readonly policy: string | null;
  readonly parentId: string | null;
  /** DER. */
  readonly certificate: Uint8Array;
  readonly keyPlace: KeyPlace;
  /** PKCS#8, DER; sealed at rest. Null unless the key is in the store. */
  readonly privateKey: Uint8Array | null;
  /** Of a key in a token, and only of such a one: where it is (key-uri.ts). Sealed at rest, so that it cannot be changed. */
  readonly keyUri?: string;
  readonly createdAt: number;
}

/** An issuer without its private key, which stays sealed. */
export type PublicIssuer = Omit<Issuer, 'privateKey' | 'keyUri'>;

type Link = Pick<PublicIssuer, 'id' | 'parentId' | 'role' | 'purposes' | 'keyPlace'>;

/** A root that was made here, wherever its key is now. */
export const isOwnRoot = ({ role, keyPlace }: Pick<PublicIssuer, 'role' | 'keyPlace'>): boolean =>
  role === 'root' && keyPlace !== 'elsewhere';

/** A root of ours stays active, because issuers are made below it. */
export const isActive = (one: Link, all: readonly Link[]): boolean =>
  one.purposes.length > 0 || isOwnRoot(one) || all.some((other) => other.parentId === one.id && isActive(other, all));
