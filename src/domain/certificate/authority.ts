// What the use cases ask of a certificate authority. Its promise: what `prepare` returns is complete and was looked
// over; `sign` is called once for it, after it is durable, and never again for the same serial number.
import type { KeyType, PublicKey } from './public-key.ts';
import type { SignHash } from './sign-hash.ts';

export const PRODUCT_KINDS = ['ssl', 'code_signing', 'document_signing'] as const;
export type ProductKind = (typeof PRODUCT_KINDS)[number];
export const TRUSTS = ['public', 'private'] as const;
export type Trust = (typeof TRUSTS)[number];

/** `single` is the ordinary one; a dual certificate has one of each of the others. */
export const CERTIFICATE_ROLES = ['single', 'signing', 'encryption'] as const;
export type CertificateRole = (typeof CERTIFICATE_ROLES)[number];

export interface CertificateContent {
  readonly role: CertificateRole;
  readonly kind: ProductKind;
  readonly trust: Trust;
  readonly commonName: string | null;
  readonly names: readonly string[];
  readonly publicKey: PublicKey;
  readonly signHash: SignHash;
  readonly issuerId: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly maxDays: number;
}

export interface Prepared {
  /** Hexadecimal, lower case. */
  readonly serial: string;
  readonly toBeSigned: Uint8Array;
}

export interface ChosenIssuer {
  readonly id: string;
  /** The last moment at which it and everything above it are valid: no certificate of it may end later. */
  readonly notAfter: number;
}

/** With less left an issuer signs nothing new: what it gave would be over before it is installed. */
export const SHORTEST_LIFE_MS = 86_400_000;
export const canStillSign = ({ notAfter }: Pick<ChosenIssuer, 'notAfter'>, now: number): boolean =>
  notAfter >= now + SHORTEST_LIFE_MS;

export interface CertificateAuthority {
  /**
   * The issuer that certifies such a key with such a digest: the preferred one that lives until then, or else the one
   * that lives longest. Undefined when no issuer does that, however long it lives.
   */
  readonly issuerFor: (keyType: KeyType, signHash: SignHash, until: number) => ChosenIssuer | undefined;
  /** Everything issuerFor has an answer to. */
  readonly served: readonly { readonly keyType: KeyType; readonly signHash: SignHash }[];
  /** Throws an Error, not a Refusal, when the result is not what was decided: that is a bug of ours. */
  prepare(content: CertificateContent): Prepared;
  /** The whole certificate, DER. */
  sign(issuerId: string, signHash: SignHash, toBeSigned: Uint8Array): Promise<Uint8Array>;
  /** The issuer's certificate and those above it, the root last; DER. */
  chainOf(issuerId: string): readonly Uint8Array[];
}

export const ISSUER_KEY_TYPES = ['p256', 'p384', 'rsa', 'sm2'] as const;
export type IssuerKeyType = (typeof ISSUER_KEY_TYPES)[number];

export interface Issuer {
  readonly id: string;
  readonly role: 'root' | 'issuing';
  readonly keyType: IssuerKeyType;
  /** A retired issuer signs nothing new; its certificate is still served, and its certificates still revoked. */
  readonly state: 'active' | 'retired';
  readonly parentId: string | null;
  /** DER. */
  readonly certificate: Uint8Array;
  /** PKCS#8, DER; sealed at rest. Null for a root whose key is kept elsewhere. */
  readonly privateKey: Uint8Array | null;
  readonly createdAt: number;
}

/** What may be known of an issuer while its private key stays sealed. */
export interface PublicIssuer extends Omit<Issuer, 'privateKey'> {
  readonly hasKey: boolean;
}
