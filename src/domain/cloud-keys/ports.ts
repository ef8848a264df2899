// Ports for keys that the service holds: key operations, which are slow and may refuse with `service_busy`, and the
// repositories.
import type { PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { Secret } from '../secret.ts';
import type { CloudKey, KeyKind } from './cloud-key.ts';

export interface KeyPair {
  readonly publicKey: PublicKey;
  /** PKCS#8, DER. The owner wipes it after use. */
  readonly privateKey: Uint8Array;
}

export interface KeyMaker {
  make(kind: KeyKind): Promise<KeyPair>;
  /** SM2EnvelopedKey, DER: the private encryption key, encrypted to the signing key of the recipient. */
  envelope(key: KeyPair, recipient: PublicKey): Promise<Uint8Array>;
  /** Encrypts under the access code and a secret of the service, bound to the id of the key. */
  wrap(privateKey: Uint8Array, pin: Secret, keyId: string): Promise<string>;
  /** Returns the private key, which the caller wipes; null if the access code is wrong. */
  unwrap(wrappedKey: string, pin: Secret, keyId: string): Promise<Uint8Array | null>;
  /** Signs a digest that the client computed. For SM2 the digest already covers Z, the signer's identity. */
  sign(privateKey: Uint8Array, publicKey: PublicKey, signHash: SignHash, digest: Uint8Array): Promise<Uint8Array>;
}

/** The key operations of an account: accounts take turns. */
export type KeyMakers = (accountId: AccountId) => KeyMaker;

/** Kept forever, so that data encrypted to the certificate stays readable. */
export interface EscrowedKey extends KeyPair {
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly createdAt: number;
}

/** Private keys are sealed at rest. */
export interface EscrowedKeys {
  insert(key: EscrowedKey): Promise<void>;
  find(accountId: AccountId, id: string): Promise<EscrowedKey | undefined>;
}

/** `lockedUntil` and `wrongCodes` are as they were before this attempt was counted. */
export interface AllowedPinAttempt extends Pick<CloudKey, 'wrongCodes' | 'lockedUntil'> {
  readonly kind: 'allowed';
  readonly wrappedKey: string;
}

export type PinAttempt = AllowedPinAttempt | { readonly kind: 'locked'; readonly until: number };

/** Pages from the newest key to the oldest. */
export interface LivePage {
  readonly before?: string | undefined;
  readonly limit: number;
}

/** Wrapped keys are sealed at rest as well. Only `list` returns destroyed keys. */
export interface CloudKeys {
  insert(key: CloudKey): Promise<void>;
  find(accountId: AccountId, id: string): Promise<CloudKey | undefined>;
  /** Holds the row lock until the transaction ends. */
  findForUpdate(accountId: AccountId, id: string): Promise<CloudKey | undefined>;
  list(accountId: AccountId, page: Page): Promise<CloudKey[]>;
  /** The newest `limit` keys that are not destroyed, of those older than the key `before`; oldest first. */
  listLive(accountId: AccountId, page: LivePage): Promise<CloudKey[]>;
  /**
   * Counts a wrong code before the code is compared, so that neither a crash nor concurrency buys a free attempt.
   * Undefined if there is no such key.
   */
  beginAttempt(accountId: AccountId, id: string, now: number): Promise<PinAttempt | undefined>;
  /** Uncounts an attempt whose code was never compared, unless another attempt began meanwhile. */
  withdrawAttempt(accountId: AccountId, id: string, attempt: AllowedPinAttempt): Promise<void>;
  /** Resets count and lockout after a right code. */
  resetAttempts(accountId: AccountId, id: string): Promise<void>;
  /** Replaces wrapped key and hint, and deletes all grants made under the old code. */
  rewrap(accountId: AccountId, id: string, wrappedKey: string, hint: string | null): Promise<void>;
  /** Erases the private key. False if there was none. */
  destroy(accountId: AccountId, id: string, at: number): Promise<boolean>;
}

/** Single-use authorization to sign certain hashes with a key, valid for a short time. */
export interface SigningGrant {
  /** The store never sees the token itself. */
  readonly tokenHash: string;
  readonly accountId: AccountId;
  readonly keyId: string;
  /** Base64, in the order requested. */
  readonly hashes: readonly string[];
  /** The private key, wrapped under the token. */
  readonly wrappedKey: string;
  readonly expiresAt: number;
  /** It was given under; null if by a version that did not record it. */
  readonly certificateId: CertificateId | null;
}

export interface SigningGrants {
  insert(grant: SigningGrant): Promise<void>;
  /** Deletes and returns the grant, so that it is used at most once. Undefined if unknown or expired. */
  take(accountId: AccountId, keyId: string, tokenHash: string, now: number): Promise<SigningGrant | undefined>;
  /** Returns the number of rows deleted, at most `limit`. */
  deleteExpired(now: number, limit: number): Promise<number>;
}
