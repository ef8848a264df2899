// What the issuance use cases work with. The composition root provides it.
import type { AuditAction } from '../../domain/access/ports.ts';
import type { CertificateAuthority, IssuerSlot, Purpose } from '../../domain/certificate/authority.ts';
import type { PreparedCertificate } from '../../domain/certificate/certificate.ts';
import type { InspectedCsr, PublicKey } from '../../domain/certificate/public-key.ts';
import type { KeyMakers } from '../../domain/cloud-keys/ports.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { LintCertificate, LintVerdict } from '../../domain/issuance/lint.ts';
import type { PublishCrls } from '../../domain/revocation/ports.ts';
import type { InBatch } from '../../kernel/concurrency.ts';
import type { Audit } from '../access/audit.ts';
import type { AcquireSlot } from '../access/in-flight.ts';
import type { ValidationTools } from '../validation/check-names.ts';
import type { WaitingLimits } from '../validation/pending-certificates.ts';

export interface IssuanceTools extends ValidationTools, WaitingLimits {
  readonly authority: CertificateAuthority;
  /** Makes an issuer that was chosen and does not exist yet. Resolves once the authority can choose it, or another one. */
  readonly makeIssuer: (slot: IssuerSlot) => Promise<void>;
  /** Takes up what has changed, and tells whether an issuer signs for the purpose no more. */
  readonly isRetired: (issuerId: string, purpose: Purpose) => Promise<boolean>;
  /** Remote ones; infinite where the number that public rules ask for is not enforced. */
  readonly perspectives: number;
  readonly keys: KeyMakers;
  readonly audit: Audit;
  /** Publishes the CRLs on which an issuance has revoked something. Never throws: a later run publishes what failed. */
  readonly publishCrls: PublishCrls;
  readonly readCsr: (text: string) => PublicKey;
  /** Reads a CSR; in a worker thread, if that takes so long that other requests would notice. */
  readonly inspectCsr: (text: string, accountId: AccountId) => InspectedCsr | Promise<InspectedCsr>;
  /** Runs signature checks of concurrent requests back to back. */
  readonly inBatch: InBatch;
  readonly requireStrongKey: (key: PublicKey) => void;
  /** Called for products that require it only. */
  readonly lintCertificate: LintCertificate;
  /** Before the result is stored; for metrics and the log. */
  readonly onLinted: (record: PreparedCertificate, verdict: LintVerdict) => void;
  /** After the commit; for metrics and the log. */
  readonly onIssued: (record: PreparedCertificate, action: AuditAction) => void;
  /** `placement`: also of the operator, in his own process. */
  readonly acquireSlot: AcquireSlot;
}
