// What domain validation needs from the store: proofs of control that may be reused, and certificates waiting for one.
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Finding } from './check-result.ts';

export interface Proof {
  readonly method: string;
  readonly validatedAt: number;
}

export interface Proofs {
  /** Of the names given, those that this account has validated since then. */
  proven(accountId: AccountId, names: readonly string[], since: number): Promise<Map<string, Proof[]>>;
  record(accountId: AccountId, name: string, method: string, at: number): Promise<void>;
}

/** A certificate that is pending, and when somebody looks at its names again. */
export interface Waiting {
  readonly certificateId: CertificateId;
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  readonly dueAt: number;
  readonly tries: number;
  readonly expiresAt: number;
  /** By name, for those that were looked at and not proven. */
  readonly findings: Readonly<Record<string, Finding>>;
}

export interface WaitingCertificates {
  insert(waiting: Waiting): Promise<void>;
  find(accountId: AccountId, certificateId: CertificateId): Promise<Waiting | undefined>;
  /** Those that are due, the longest first; they are due again at `until`, so that nobody else takes them up meanwhile. */
  claim(now: number, until: number, limit: number): Promise<Waiting[]>;
  /**
   * Changes when it is due, and what was seen; nothing when it does not wait any more, or is not due at `seenDueAt`:
   * then somebody else has taken it up, or changed it, meanwhile.
   */
  update(
    waiting: Pick<Waiting, 'certificateId' | 'accountId' | 'dueAt' | 'tries' | 'findings'>,
    seenDueAt?: number,
  ): Promise<void>;
  delete(accountId: AccountId, certificateId: CertificateId): Promise<void>;
}
