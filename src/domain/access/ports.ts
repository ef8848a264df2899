// Ports: what authentication, account management and the audit log need from the store.
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { Account, AccountChange } from './account.ts';
import type { Caller, Credential } from './credential.ts';
import type { AccountUsage, QuotaChange } from './quota.ts';

export interface Accounts {
  /** A new account is not suspended, has the default quotas and nothing stored. */
  insert(account: Omit<Account, 'suspendedAt' | keyof AccountUsage>): Promise<void>;
  find(id: AccountId): Promise<Account | undefined>;
  /** Locks the account against others that do the same, until the transaction ends. */
  findForUpdate(id: AccountId): Promise<Account | undefined>;
  list(page: Page): Promise<Account[]>;
  /** Returns the updated account; undefined if there is none. */
  update(id: AccountId, change: AccountChange): Promise<Account | undefined>;
  /** Idempotent: suspending again keeps the earlier time. Undefined if there is no such account. */
  suspend(id: AccountId, at: number): Promise<Account | undefined>;
  resume(id: AccountId): Promise<Account | undefined>;
  setQuotas(id: AccountId, change: QuotaChange): Promise<Account | undefined>;
  /** For what is stored without a certificate, which `countStored` does not see. */
  addStored(id: AccountId, bytes: number): Promise<void>;
  /**
   * Adds to their accounts the stored bytes of certificates that were not counted yet, at most `limit`, with ids before
   * that one. Call in a transaction. Returns how many it counted.
   */
  countStored(before: CertificateId, limit: number): Promise<number>;
}

export interface Credentials {
  insert(credential: Credential, secretHash: string): Promise<void>;
  /** The only lookup that is not scoped to an account, because it determines the account. */
  findForAuthentication(keyId: string): Promise<{ caller: Caller; secretHash: string } | undefined>;
  find(keyId: string): Promise<Credential | undefined>;
  listOf(accountId: AccountId): Promise<Credential[]>;
  /** Idempotent: disabling again keeps the earlier time. */
  disable(keyId: string, at: number): Promise<Credential | undefined>;
  /** Never extends the lifetime: keeps an earlier expiry. */
  expire(keyId: string, at: number): Promise<Credential | undefined>;
  /** Records the last use. Never moves it back. */
  touch(keyId: string, at: number): Promise<void>;
}

/** Stands for a key in the signing API, for a short time. */
export interface AccessToken {
  /** The store never sees the token itself. */
  readonly tokenHash: string;
  readonly keyId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface AccessTokens {
  /** Deletes the oldest tokens of the key beyond `most`, this one included. Call in a transaction. */
  insert(token: AccessToken, most: number): Promise<void>;
  /** Not scoped to an account, because it determines the account. Undefined if the token is unknown or has expired. */
  findCaller(tokenHash: string, now: number): Promise<Caller | undefined>;
  /** Of all keys of the account. */
  deleteOf(accountId: AccountId): Promise<void>;
  /** False if the key has no such token. */
  delete(keyId: string, tokenHash: string): Promise<boolean>;
  /** Returns the number of rows deleted, at most `limit`. */
  deleteExpired(now: number, limit: number): Promise<number>;
}

export type AuditAction =
  | 'address:changed'
  | 'account:created'
  | 'account:changed'
  | 'account:suspended'
  | 'account:resumed'
  | 'account:quota_changed'
  | 'key:created'
  | 'key:disabled'
  | 'key:rotated'
  | 'access-token:issued'
  | 'access-token:revoked'
  | 'console:link_made'
  | 'console:signed_in'
  | 'console:signed_out'
  | 'console:session_ended'
  | 'operator:created'
  | 'operator:disabled'
  | 'key:reported'
  | 'order:placed'
  | 'order:reissued'
  | 'order:canceled'
  | 'certificate:revoked'
  | 'revocation:changed'
  | 'revocation:canceled'
  | 'name:validated'
  | 'name:relinquished'
  | 'order:dcv_method_changed'
  | 'order:lapsed'
  | 'certificate:issued'
  | 'certificate:lint_refused'
  | 'callback:tested'
  | 'callback:saved'
  | 'callback:deleted'
  | 'callback:rotated'
  | 'callback:resent'
  | 'callback:resumed'
  | 'cloud-key:authorized'
  | 'cloud-key:refused'
  | 'cloud-key:signed'
  | 'cloud-key:changed'
  | 'cloud-key:destroyed'
  | 'acme-binding:created'
  | 'acme-binding:disabled'
  | 'acme-account:created'
  | 'acme-account:changed'
  | 'acme-account:key_changed'
  | 'acme-account:deactivated'
  | 'acme-account:disabled'
  | CeremonyAction;

/** Acts on the authority itself, of no single account. Their rows are never deleted. */
export const CEREMONY_ACTIONS = [
  'authority:imported',
  'blocklist:imported',
  'authority:requested',
  'authority:installed',
  'authority:rotated',
  'authority:revoked',
  'authority:cross_signed',
  'root:exported',
  'root:key_removed',
  'root:crl_requested',
  'root:crl_installed',
] as const;
type CeremonyAction = (typeof CEREMONY_ACTIONS)[number];

/** Who did what to which subject. Written in the transaction of the change. Never holds a secret. */
export interface AuditEntry {
  readonly id: string;
  readonly at: number;
  /** Null for acts that concern no single account. */
  readonly accountId: AccountId | null;
  /** As in Actor. */
  readonly actor: string;
  readonly action: AuditAction;
  readonly subject: string;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, string | number | null>>;
}

/** What a row is about: the order with all of its certificates, or one certificate. The ids must be those of the store. */
export type AuditSubject = { readonly orderId: OrderId } | { readonly certificateId: CertificateId };

export interface AuditFilter {
  readonly accountId?: AccountId | undefined;
  readonly about?: AuditSubject | undefined;
  readonly requestId?: string | undefined;
  /** A key id, an operator's name or user name, `cli` or `service`. */
  readonly actor?: string | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

export interface AuditTrail {
  append(entry: AuditEntry): Promise<void>;
  /** Oldest first. */
  listOf(accountId: AccountId, page: Page): Promise<AuditEntry[]>;
  /**
   * Newest first. Reads a bounded number of rows: with a selective filter, a page that is not full may have `nextAfter`.
   */
  search(filter: AuditFilter, page: Page): Promise<{ entries: AuditEntry[]; nextAfter: string | null }>;
  /** Rows of ceremonies, the newest first. */
  ceremonies(limit: number): Promise<AuditEntry[]>;
  /** Deletes rows written before that time, except those of ceremonies. Returns how many. */
  deleteBefore(before: number, limit: number): Promise<number>;
}
