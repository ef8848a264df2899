// Custody of issuers' keys, as use cases see it: keys whose certificate is still to come, certificates of other roots over
// the same keys, and the backups that hold what was in the store then.
import type { IssuerKeyType, Purpose } from '../certificate/authority.ts';

/** A key that was made here and whose request is signed elsewhere. */
export interface PendingIssuer {
  readonly id: string;
  readonly keyType: IssuerKeyType;
  readonly purposes: readonly Purpose[];
  /** PKCS#10, DER. */
  readonly request: Uint8Array;
  /** PKCS#8, DER; sealed at rest. */
  readonly privateKey: Uint8Array;
  readonly createdAt: number;
}

export interface PendingIssuers {
  insert(pending: PendingIssuer): Promise<void>;
  list(): Promise<PendingIssuer[]>;
  count(): Promise<number>;
  /** False if it was gone. */
  delete(id: string): Promise<boolean>;
}

/** More than an operator asks for at once; bounds the table. */
export const MAX_PENDING_ISSUERS = 32;

/** Another way up from an issuer: a certificate over the same key and name that another root has signed. */
export interface AlternateChain {
  readonly issuerId: string;
  /** SHA-256 of the first certificate, hexadecimal. */
  readonly fingerprint: string;
  /** DER; over the issuer's key first, the root last. */
  readonly certificates: readonly Uint8Array[];
  readonly createdAt: number;
}

export interface AlternateChains {
  /** Keeps the one that is there already. */
  insert(chain: AlternateChain): Promise<void>;
  of(issuerId: string): Promise<AlternateChain[]>;
}

/** Bounds the roots that sign one issuer. */
export const MAX_ALTERNATES = 8;

export interface TakenBackup {
  /** Of its manifest. */
  readonly digest: string;
  readonly takenAt: number;
  /** As it was named; it may have been moved since. */
  readonly file: string;
}

export interface TakenBackups {
  /** Keeps the newest ones, a bounded number. */
  insert(backup: TakenBackup): Promise<void>;
  /** Those that were taken at that time or later, the oldest first. */
  since(at: number): Promise<TakenBackup[]>;
}
