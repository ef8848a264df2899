// A public key as the domain sees it: type, size, bytes and fingerprint.

export const KEY_TYPES = ['rsa', 'p256', 'p384', 'p521', 'ed25519', 'sm2'] as const;
export type KeyType = (typeof KEY_TYPES)[number];

export interface PublicKey {
  readonly type: KeyType;
  /** Size of the RSA modulus, or of the curve's field. */
  readonly bits: number;
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Uint8Array;
  /** SHA-256 of the SPKI, in hex: the key's entry in the blocklist. */
  readonly fingerprint: string;
}

/** Placeholder until the key exists; never certified. */
export const NO_KEY: PublicKey = { type: 'rsa', bits: 0, spki: new Uint8Array(), fingerprint: '' };

/** What reading a CSR has found. Each throws `invalid_csr` for what is wrong. */
export interface InspectedCsr {
  publicKey(): PublicKey;
  requireStrong(): void;
}
