// The store as use cases see it: the repositories of all capabilities, and transactions over them. Every method may throw
// `service_busy` when the store cannot answer, or cannot make a write durable.
import type { AccessTokens, Accounts, AuditTrail, Credentials } from './access/ports.ts';
import type { AcmeOrders, Authorizations } from './acme/order-ports.ts';
import type { AcmeAccounts, AcmeBindings, UsedNonces } from './acme/ports.ts';
import type { CallbackLanes, Callbacks, Deliveries, DeliveryQueue, ExpiryNotices, Outbox } from './callbacks/ports.ts';
import type { Clock } from './clock.ts';
import type { CloudKeys, EscrowedKeys, SigningGrants } from './cloud-keys/ports.ts';
import type { LoginLinks, Operators, Sessions } from './console/ports.ts';
import type { AlternateChains, PendingIssuers, TakenBackups } from './issuance/custody.ts';
import type { Inventory } from './issuance/inventory.ts';
import type { LintResults } from './issuance/lint.ts';
import type { Certificates, IdempotencyKeys, Issuers, Orders, PlacementKeys, Signings } from './issuance/ports.ts';
import type { RateLimits } from './rate.ts';
import type {
  BlockedKeys,
  Crls,
  OcspResponders,
  PkiAddresses,
  Revocations,
  RevokedSerials,
} from './revocation/ports.ts';
import type { AllAccounts, FactsReader, Finder } from './support/ports.ts';
import type { Proofs, WaitingCertificates } from './validation/ports.ts';

/** Small secrets of the service itself, sealed at rest. */
export interface SealedSecrets {
  get(name: string): Promise<string | undefined>;
  /** The first writer wins: keeps an existing value, and returns the value that is stored after the call. */
  claim(name: string, value: string): Promise<string>;
}

/** Facts about the store itself, such as whether it belongs to a sandbox. */
export interface Settings {
  get(name: SettingName): Promise<string | undefined>;
  /** The first writer wins: keeps an existing value, and returns the value that is stored after the call. */
  claim(name: SettingName, value: string): Promise<string>;
  put(name: SettingName, value: string): Promise<void>;
}
/** `last_backup_at`: in milliseconds, written by the backup. `addresses`: in certificates and DNS records, as JSON (ADR 0040). `stored_through`: the last certificate in `stored_bytes`. */
export type SettingName = 'mode' | 'last_write_probe' | 'last_backup_at' | 'addresses' | 'stored_through';

export interface Repositories {
  /**
   * The time by which leases, next attempts, rates and locks are set and judged: on PostgreSQL the database's, so that
   * instances whose clocks differ agree on them. Facts are dated by the machine's own clock.
   */
  readonly sharedNow: Clock;
  readonly accounts: Accounts;
  readonly credentials: Credentials;
  readonly accessTokens: AccessTokens;
  readonly audit: AuditTrail;
  readonly operators: Operators;
  readonly loginLinks: LoginLinks;
  readonly sessions: Sessions;
  readonly secrets: SealedSecrets;
  readonly settings: Settings;
  readonly issuers: Issuers;
  readonly pendingIssuers: PendingIssuers;
  readonly alternateChains: AlternateChains;
  readonly takenBackups: TakenBackups;
  readonly orders: Orders;
  readonly certificates: Certificates;
  readonly inventory: Inventory;
  readonly signings: Signings;
  readonly lintResults: LintResults;
  readonly proofs: Proofs;
  readonly waiting: WaitingCertificates;
  readonly acmeOrders: AcmeOrders;
  readonly authorizations: Authorizations;
  readonly revocations: Revocations;
  readonly revokedSerials: RevokedSerials;
  readonly crls: Crls;
  readonly pkiAddresses: PkiAddresses;
  readonly ocspResponders: OcspResponders;
  readonly outbox: Outbox;
  readonly deliveryQueue: DeliveryQueue;
  readonly callbackLanes: CallbackLanes;
  readonly deliveries: Deliveries;
  readonly expiryNotices: ExpiryNotices;
  readonly callbacks: Callbacks;
  readonly rateLimits: RateLimits;
  readonly escrowedKeys: EscrowedKeys;
  readonly cloudKeys: CloudKeys;
  readonly signingGrants: SigningGrants;
  readonly idempotencyKeys: IdempotencyKeys;
  readonly placementKeys: PlacementKeys;
  readonly blockedKeys: BlockedKeys;
  readonly acmeBindings: AcmeBindings;
  readonly acmeAccounts: AcmeAccounts;
  readonly usedNonces: UsedNonces;
  readonly finder: Finder;
  readonly facts: FactsReader;
  readonly allAccounts: AllAccounts;
}

export interface Store extends Repositories {
  /**
   * Atomic, and durable when the promise resolves. Await only the given repositories in `work`: other transactions of
   * the process may wait behind it. A failed statement fails the transaction, even if its error is caught. SQLite is
   * serializable; PostgreSQL is read committed, so read for update what must not change before it is written.
   */
  transaction<T>(work: (repositories: Repositories) => Promise<T>): Promise<T>;
}
