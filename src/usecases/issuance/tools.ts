// What the issuance use cases work with. The composition root provides it.
import type { AuditAction } from '../../domain/access/ports.ts';
import type { CertificateAuthority } from '../../domain/certificate/authority.ts';
import type { PreparedCertificate } from '../../domain/certificate/certificate.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import type { KeyMaker } from '../../domain/cloud-keys/ports.ts';
import type { PublishCrls } from '../../domain/revocation/ports.ts';
import type { InBatch } from '../../kernel/concurrency.ts';
import type { Audit } from '../access/audit.ts';
import type { ValidationTools } from '../validation/check-names.ts';

export interface IssuanceTools extends ValidationTools {
  readonly authority: CertificateAuthority;
  readonly keys: KeyMaker;
  readonly audit: Audit;
  /** Publishes the CRLs on which an issuance has revoked something. Never throws: a later run publishes what failed. */
  readonly publishCrls: PublishCrls;
  readonly readCsr: (text: string) => PublicKey;
  /** Runs signature checks of concurrent requests back to back. */
  readonly inBatch: InBatch;
  readonly requireStrongKey: (key: PublicKey) => void;
  /** After the commit; for metrics and the log. */
  readonly onIssued: (record: PreparedCertificate, action: AuditAction) => void;
  /** How long a certificate may wait for validation. */
  readonly pendingMs: number;
}
