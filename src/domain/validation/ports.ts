// Store ports of domain validation: reusable proofs of control, and the queue of certificates that wait for one.
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { NameFinding } from './check-result.ts';

export interface Proof {
  readonly method: string;
  readonly validatedAt: number;
}

export interface Proofs {
  /** Returns the proofs, by name, that this account has recorded since then. */
  proven(accountId: AccountId, names: readonly string[], since: number): Promise<Map<string, Proof[]>>;
  record(accountId: AccountId, name: string, method: string, at: number): Promise<void>;
  /** Deletes the proofs of the name by these methods. */
  forget(accountId: AccountId, name: string, methods: readonly string[]): Promise<void>;
}

/** A pending certificate, and when its names are checked next. */
export interface WaitingCertificate {
  readonly certificateId: CertificateId;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly dueAt: number;
  readonly tries: number;
  readonly expiresAt: number;
  /** By name, for names whose last check failed. */
  readonly findings: Readonly<Record<string, NameFinding>>;
}

export interface WaitingCertificates {
  insert(waiting: WaitingCertificate): Promise<void>;
  find(accountId: AccountId, certificateId: CertificateId): Promise<WaitingCertificate | undefined>;
  /** How many of the account wait, for validation or over ACME for their CSR; `most` at most. */
  count(accountId: AccountId, most: number): Promise<number>;
  /**
   * Leases due certificates, the longest due first, of any account but `except`, whose share is used up. Their new `dueAt`
   * is the end of the lease.
   */
  claim(now: number, leaseUntil: number, limit: number, except?: readonly AccountId[]): Promise<WaitingCertificate[]>;
  /** Compare-and-set: no-op if the certificate no longer waits, or if `dueAt` is not `seenDueAt` (the lease was lost). */
  update(
    waiting: Pick<WaitingCertificate, 'certificateId' | 'accountId' | 'dueAt' | 'tries' | 'findings'>,
    seenDueAt?: number,
  ): Promise<void>;
  /** Makes every waiting certificate of the account due, whatever its backoff. */
  makeDue(accountId: AccountId, now: number): Promise<void>;
  /** Makes certificates due whose next check a clock that was ahead has set. Returns how many. */
  repair(now: number): Promise<number>;
  delete(accountId: AccountId, certificateId: CertificateId): Promise<void>;
}
