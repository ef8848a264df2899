// What the use cases need from the outside, in their own words. Adapters implement it. Every method may refuse
// with `service_busy` when the store cannot answer, or cannot make durable what it was given.
import type { Account, AccountChange } from './access/account.ts';
import type { Caller, Credential } from './access/credential.ts';
import type { CallbackSettings } from './callbacks/callback.ts';
import type { CallbackLanes, Deliveries, DeliveryQueue } from './callbacks/ports.ts';
import type { CloudKeys, EscrowedKeys, SigningGrants } from './cloud-keys/ports.ts';
import type {
  BlockedKeys,
  Certificates,
  IdempotencyKeys,
  Issuers,
  Orders,
  Outbox,
  Proofs,
  WaitingCertificates,
} from './issuance/ports.ts';
import type { OcspResponders, PkiAddresses, RevocationLists, Revocations, RevokedSerials } from './revocation/ports.ts';
import type { Secret } from './secret.ts';

/** Milliseconds since 1970, UTC. */
export type Clock = () => number;

/** Where a list goes on: after the last id already seen. */
export interface Page {
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface Accounts {
  insert(account: Account): Promise<void>;
  find(id: string): Promise<Account | undefined>;
  list(page: Page): Promise<Account[]>;
  /** The account as it is afterwards; undefined when there is none. */
  update(id: string, change: AccountChange): Promise<Account | undefined>;
}

export interface Credentials {
  insert(credential: Credential, secretHash: string): Promise<void>;
  /** The only look-up without an account: it is how the account is found. */
  findForAuthentication(keyId: string): Promise<{ caller: Caller; secretHash: string } | undefined>;
  find(keyId: string): Promise<Credential | undefined>;
  listOf(accountId: string): Promise<Credential[]>;
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
  readonly accountId: string;
  /** A key id, `cli` for the operator's own hand, or `service` for what the service does by itself. */
  readonly actor: string;
  readonly action: AuditAction;
  readonly subject: string;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, string | number | null>>;
}

export interface AuditTrail {
  append(entry: AuditEntry): Promise<void>;
  listOf(accountId: string, page: Page): Promise<AuditEntry[]>;
}

/** Small secrets of the service itself, sealed before they reach the disk. */
export interface SealedSecrets {
  get(name: string): Promise<string | undefined>;
  /** Keeps what is there, and returns what stands after the call: the first writer wins. */
  claim(name: string, value: string): Promise<string>;
}

/** Facts about the store itself, such as whether it belongs to a sandbox. */
export interface Settings {
  get(name: SettingName): Promise<string | undefined>;
  /** Keeps what is there, and returns what stands after the call: the first writer wins. */
  claim(name: SettingName, value: string): Promise<string>;
  put(name: SettingName, value: string): Promise<void>;
}
export type SettingName = 'mode' | 'last_write_probe';

/** Both secrets are sealed before they reach the disk. */
export interface Callbacks {
  find(accountId: string): Promise<CallbackSettings | undefined>;
  /** Nobody else changes them until the transaction ends. */
  findForUpdate(accountId: string): Promise<CallbackSettings | undefined>;
  /**
   * Takes the place of what was saved before, except for the signing secret: the first one stays. Returns the
   * settings as they stand.
   */
  save(settings: CallbackSettings): Promise<CallbackSettings>;
  /** The secret of before signs beside the new one until then. Undefined when nothing was saved. */
  rotateSecret(
    accountId: string,
    secret: Secret,
    times: { readonly now: number; readonly formerUntil: number },
  ): Promise<CallbackSettings | undefined>;
  /** False when nothing was saved. */
  delete(accountId: string): Promise<boolean>;
}

/** A token bucket: so many at once, then one more each time. */
export interface Rate {
  readonly burst: number;
  readonly everyMs: number;
}

export interface RateLimits {
  /** Takes a token, and returns 0; or takes none, and returns how many milliseconds until there is one. */
  take(key: string, rate: Rate, now: number): Promise<number>;
}

export interface Repositories {
  readonly accounts: Accounts;
  readonly credentials: Credentials;
  readonly audit: AuditTrail;
  readonly secrets: SealedSecrets;
  readonly settings: Settings;
  readonly issuers: Issuers;
  readonly orders: Orders;
  readonly certificates: Certificates;
  readonly proofs: Proofs;
  readonly waiting: WaitingCertificates;
  readonly revocations: Revocations;
  readonly revokedSerials: RevokedSerials;
  readonly revocationLists: RevocationLists;
  readonly pkiAddresses: PkiAddresses;
  readonly ocspResponders: OcspResponders;
  readonly outbox: Outbox;
  readonly deliveryQueue: DeliveryQueue;
  readonly callbackLanes: CallbackLanes;
  readonly deliveries: Deliveries;
  readonly callbacks: Callbacks;
  readonly rateLimits: RateLimits;
  readonly escrowedKeys: EscrowedKeys;
  readonly cloudKeys: CloudKeys;
  readonly signingGrants: SigningGrants;
  readonly idempotencyKeys: IdempotencyKeys;
  readonly blockedKeys: BlockedKeys;
}

export interface Store extends Repositories {
  /**
   * All or nothing, durable when the promise resolves. Await nothing in `work` but the repositories it is given:
   * other transactions of the process may wait behind it. A statement that fails fails the whole, whatever catches it.
   * What was read may have changed by the time it is written, unless it was read for update: one engine is serial, the
   * other sees what others commit meanwhile.
   */
  transaction<T>(work: (repositories: Repositories) => Promise<T>): Promise<T>;
}
