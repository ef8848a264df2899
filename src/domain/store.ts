// What the use cases need from the outside, in their own words. Adapters implement it. Every method may refuse
// with `service_busy` when the store cannot answer, or cannot make durable what it was given.
import type { Accounts, AuditTrail, Credentials } from './access/ports.ts';
import type { CallbackLanes, Callbacks, Deliveries, DeliveryQueue, Outbox } from './callbacks/ports.ts';
import type { CloudKeys, EscrowedKeys, SigningGrants } from './cloud-keys/ports.ts';
import type { Certificates, IdempotencyKeys, Issuers, Orders } from './issuance/ports.ts';
import type { RateLimits } from './rate.ts';
import type {
  BlockedKeys,
  Crls,
  OcspResponders,
  PkiAddresses,
  Revocations,
  RevokedSerials,
} from './revocation/ports.ts';
import type { Proofs, WaitingCertificates } from './validation/ports.ts';

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
  readonly crls: Crls;
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
