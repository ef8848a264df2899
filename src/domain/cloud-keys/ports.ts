// What the use cases need for keys that the service holds itself: makers and locks, which take long and so may refuse
// with `service_busy`, and the store's side of it.

import type { PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import type { AccountId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { Secret } from '../secret.ts';
import type { CloudKey, KeyKind } from './cloud-key.ts';

export interface MadeKey {
  readonly publicKey: PublicKey;
  /** PKCS#8, DER. Whoever has it wipes it after use. */
  readonly privateKey: Uint8Array;
}

export interface KeyMaker {
  make(kind: KeyKind): Promise<MadeKey>;
  /** The private key of an encryption certificate, readable with the signing key only: SM2EnvelopedKey, DER. */
  envelope(key: MadeKey, recipient: PublicKey): Promise<Uint8Array>;
  /** Locked under the access code, a secret of the service, and bound to the id of the key. */
  lock(privateKey: Uint8Array, pin: Secret, keyId: string): Promise<string>;
  /** Null when the access code is wrong. */
  unlock(locked: string, pin: Secret, keyId: string): Promise<Uint8Array | null>;
  /** Signs a digest that somebody else computed; for SM2, the one that already has the signer's identity in it. */
  sign(privateKey: Uint8Array, publicKey: PublicKey, signHash: SignHash, digest: Uint8Array): Promise<Uint8Array>;
}

/** Escrowed: the service keeps it for ever, so that what was encrypted can be read. */
export interface EscrowedKey extends MadeKey {
  readonly id: string;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly createdAt: number;
}

/** Private keys are sealed before they reach the disk. */
export interface EscrowedKeys {
  insert(key: EscrowedKey): Promise<void>;
  find(accountId: AccountId, id: string): Promise<EscrowedKey | undefined>;
}

/** What a try with an access code found: the key to unlock, or until when nobody may try. */
export type Attempt =
  | { readonly kind: 'allowed'; readonly key: CloudKey }
  | { readonly kind: 'locked'; readonly until: number };

/** What is locked already is sealed besides. Destroyed keys are found by nobody but `list`. */
export interface CloudKeys {
  insert(key: CloudKey): Promise<void>;
  find(accountId: AccountId, id: string): Promise<CloudKey | undefined>;
  /** Nobody else changes it until the transaction ends. */
  findForUpdate(accountId: AccountId, id: string): Promise<CloudKey | undefined>;
  list(accountId: AccountId, page: Page): Promise<CloudKey[]>;
  /** The last ones that are not destroyed, the earlier one first. */
  listLive(accountId: AccountId, limit: number): Promise<CloudKey[]>;
  /**
   * Counts a try as a wrong one, before anything is compared: whoever dies or runs side by side has still tried.
   * Undefined when there is no such key.
   */
  beginAttempt(accountId: AccountId, id: string, now: number): Promise<Attempt | undefined>;
  /** The code was never compared: the try does not count, unless others were made meanwhile. */
  withdrawAttempt(accountId: AccountId, key: CloudKey): Promise<void>;
  /** It was the right code. */
  endAttempt(accountId: AccountId, id: string): Promise<void>;
  /** Grants under the old code end with it. */
  relock(accountId: AccountId, id: string, locked: string, hint: string | null): Promise<void>;
  /** The private key is gone for good. False when there was none. */
  destroy(accountId: AccountId, id: string, at: number): Promise<boolean>;
}

/** The right to sign certain hashes with a key, once, for a short time. */
export interface SigningGrant {
  /** Of the token: the store never sees it. */
  readonly tokenHash: string;
  readonly accountId: AccountId;
  readonly keyId: string;
  /** Base64, in the order of asking. */
  readonly hashes: readonly string[];
  /** The private key, locked under the token. */
  readonly locked: string;
  readonly expiresAt: number;
}

export interface SigningGrants {
  insert(grant: SigningGrant): Promise<void>;
  /** Takes it out: a grant is used once. */
  take(accountId: AccountId, keyId: string, tokenHash: string, now: number): Promise<SigningGrant | undefined>;
  /** Forgets those that have run out. */
  forget(now: number, limit: number): Promise<number>;
}
