// Ports of ACME: keys and signatures, and what is stored of bindings, accounts and nonces.

import type { Account } from '../access/account.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import type { AccountId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { Secret } from '../secret.ts';
import type { AcmeAccount, AcmeAccountStatus, BoundAccount } from './account.ts';
import type { Binding } from './binding.ts';
import type { Jwk } from './jwk.ts';
import type { Jws, MacAlgorithm } from './jws.ts';
import type { Nonce } from './nonce.ts';

/** The key that an account is known by. */
export interface AccountKey {
  /** RFC 7638, with SHA-256. */
  readonly thumbprint: string;
  readonly publicKey: PublicKey;
}

export interface JwsKeys {
  /** Throws `badPublicKey` for a key that is no point of its curve, too short, or weak. */
  read(jwk: Jwk): AccountKey;
  /** Throws `badSignatureAlgorithm` unless the header names the one algorithm of the key, `malformed` for a wrong signature. */
  verify(jws: Jws, spki: Uint8Array): void;
  hasMac(jws: Jws, alg: MacAlgorithm, key: Secret): boolean;
}

export interface AcmeBindings {
  insert(binding: Binding, key: Secret): Promise<void>;
  /** With the MAC key; not scoped to an account, because it determines the account. */
  findWithKey(id: string): Promise<{ binding: Binding; tenant: Account; key: Secret } | undefined>;
  listOf(accountId: AccountId, page: Page): Promise<Binding[]>;
  /** Idempotent: disabling again keeps the earlier time. */
  disable(id: string, at: number): Promise<Binding | undefined>;
  /** Marks it as used. False if it serves one ACME account only and has it, or was disabled meanwhile. */
  claim(id: string, at: number): Promise<boolean>;
}

export interface AcmeAccounts {
  /** False if the key has an account. */
  insert(account: AcmeAccount): Promise<boolean>;
  /** Not scoped to an account, because it determines the account. */
  find(id: string): Promise<BoundAccount | undefined>;
  findByKey(thumbprint: string): Promise<BoundAccount | undefined>;
  setContacts(id: string, contacts: readonly string[]): Promise<void>;
  /** False if the account has another key meanwhile, has ended, or the new key has an account. */
  changeKey(account: AcmeAccount, to: AccountKey): Promise<boolean>;
  /** Undefined if there is no such account. One that has ended keeps its status. */
  end(id: string, status: Exclude<AcmeAccountStatus, 'valid'>): Promise<AcmeAccount | undefined>;
  /** Of a binding, counted up to `limit`. */
  count(bindingId: string, limit: number): Promise<number>;
  listOf(accountId: AccountId, page: Page): Promise<AcmeAccount[]>;
}

export interface UsedNonces {
  /** False if it was spent before, by any instance. */
  spend(nonce: Nonce): Promise<boolean>;
  /** Returns the number of rows deleted, at most `limit`. */
  deleteExpired(now: number, limit: number): Promise<number>;
}
