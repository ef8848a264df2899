// What authentication, account management and the audit log need from the store.
import type { AccountId } from '../ids.ts';
import type { Page } from '../page.ts';
import type { Account, AccountChange } from './account.ts';
import type { Caller, Credential } from './credential.ts';

export interface Accounts {
  insert(account: Account): Promise<void>;
  find(id: AccountId): Promise<Account | undefined>;
  list(page: Page): Promise<Account[]>;
  /** The account as it is afterwards; undefined when there is none. */
  update(id: AccountId, change: AccountChange): Promise<Account | undefined>;
}

export interface Credentials {
  insert(credential: Credential, secretHash: string): Promise<void>;
  /** The only look-up without an account: it is how the account is found. */
  findForAuthentication(keyId: string): Promise<{ caller: Caller; secretHash: string } | undefined>;
  find(keyId: string): Promise<Credential | undefined>;
  listOf(accountId: AccountId): Promise<Credential[]>;
  /** The first time counts: disabling twice keeps the earlier moment. */
  disable(keyId: string, at: number): Promise<Credential | undefined>;
  /** Only ever brings the end nearer. */
  expire(keyId: string, at: number): Promise<Credential | undefined>;
  /** Only ever moves forward. */
  touch(keyId: string, at: number): Promise<void>;
}

export type AuditAction =
  | 'account:created'
  | 'account:changed'
  | 'key:created'
  | 'key:disabled'
  | 'key:rotated'
  | 'order:placed'
  | 'order:reissued'
  | 'order:canceled'
  | 'certificate:revoked'
  | 'revocation:changed'
  | 'revocation:canceled'
  | 'name:validated'
  | 'order:dcv_method_changed'
  | 'order:lapsed'
  | 'certificate:issued'
  | 'callback:tested'
  | 'callback:saved'
  | 'callback:deleted'
  | 'callback:rotated'
  | 'callback:resent'
  | 'cloud-key:authorized'
  | 'cloud-key:refused'
  | 'cloud-key:signed'
  | 'cloud-key:changed'
  | 'cloud-key:destroyed';

/** What was done, by whom, to what. Written in the transaction that does it. Never holds a secret. */
export interface AuditEntry {
  readonly id: string;
  readonly at: number;
  readonly accountId: AccountId;
  /** A key id, `cli` for the operator's own hand, or `service` for what the service does by itself. */
  readonly actor: string;
  readonly action: AuditAction;
  readonly subject: string;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, string | number | null>>;
}

export interface AuditTrail {
  append(entry: AuditEntry): Promise<void>;
  listOf(accountId: AccountId, page: Page): Promise<AuditEntry[]>;
}
