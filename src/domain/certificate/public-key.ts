// A public key as the decisions see it: its type and size, its bytes, and a fingerprint that names it.

export const KEY_TYPES = ['rsa', 'p256', 'p384', 'p521', 'sm2'] as const;
export type KeyType = (typeof KEY_TYPES)[number];

export interface PublicKey {
  readonly type: KeyType;
  /** The modulus of RSA, the field of a curve. */
  readonly bits: number;
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Uint8Array;
  /** SHA-256 of the SPKI, in hex: what a compromised key is listed by. */
  readonly fingerprint: string;
}

/** Stands where there is no key yet, and is never certified. */
export const NO_KEY: PublicKey = { type: 'rsa', bits: 0, spki: new Uint8Array(), fingerprint: '' };
