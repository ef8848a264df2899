// The gate before a signature, for products that require it: the certificate-to-be is shown to the operator's linters. What
// they said is durable before the serial number is signed. If they object, or do not answer, nothing is signed.
import type { AuditAction } from '../../domain/access/ports.ts';
import type { PreparedCertificate } from '../../domain/certificate/certificate.ts';
import { Refusal } from '../../domain/errors.ts';
import type { LintVerdict } from '../../domain/issuance/lint.ts';
import { SIGNING_LEASE_MS } from '../../domain/issuance/ports.ts';
import { byService } from '../access/audit.ts';
import { discardSigning } from '../lease/void-lost-issuances.ts';
import type { IssuanceTools } from './tools.ts';

/** The linters may take longer than a lease, which is renewed while this process lives. */
const RENEW_MS = SIGNING_LEASE_MS / 3;
const RETRY_AFTER_SECONDS = 30;
const ACTION: AuditAction = 'certificate:lint_refused';

type GateTools = Pick<IssuanceTools, 'store' | 'now' | 'newId' | 'audit' | 'lintCertificate' | 'onLinted'>;

/** Call between writing down and signing. Throws unless every linter passed every half. */
export async function passLintGate(tools: GateTools, record: PreparedCertificate): Promise<void> {
  const verdict = await lintHalves(tools, record);
  tools.onLinted(record, verdict);
  const { id: certificateId, orderId, accountId, preparation } = record;
  const result = { serial: preparation.serial, certificateId, orderId, accountId, at: tools.now(), verdict };
  if (verdict.kind === 'passed') return await tools.store.lintResults.insert(result);
  await tools.store.transaction(async (tx) => {
    await tx.lintResults.insert(result);
    const found = await tx.orders.findForUpdate(accountId, orderId);
    // Its lease was lost, and it is voided already.
    if (found?.signing?.certificateId !== certificateId) return;
    const why = 'a linter did not pass its certificate';
    await discardSigning(tools, tx, { order: found.order, signing: found.signing, why });
    const details = { certificate_id: certificateId, serial_number: preparation.serial, ...told(verdict) };
    await tools.audit(tx, byService(accountId), ACTION, orderId, details);
  });
  throw refusalOf(verdict);
}

async function lintHalves(tools: GateTools, record: PreparedCertificate): Promise<LintVerdict> {
  const { accountId, signHash, toBeSigned, encryption, preparation } = record;
  const { issuerId } = preparation;
  const renewal = setInterval(() => {
    // A renewal that fails loses the lease, which `finish` notices.
    tools.store.signings.renew(record, tools.store.sharedNow() + SIGNING_LEASE_MS).catch(() => {});
  }, RENEW_MS);
  try {
    const verdict = await tools.lintCertificate({ issuerId, signHash, toBeSigned }, accountId);
    if (verdict.kind !== 'passed' || !encryption) return verdict;
    return await tools.lintCertificate({ issuerId, signHash, toBeSigned: encryption.toBeSigned }, accountId);
  } finally {
    clearInterval(renewal);
  }
}

const told = (verdict: Exclude<LintVerdict, { kind: 'passed' }>): { readonly why: string } => ({
  why:
    verdict.kind === 'failed'
      ? verdict.why
      : verdict.findings
          .slice(0, 5)
          .map(({ linter, code }) => `${linter} ${code}`)
          .join(', '),
});

function refusalOf(verdict: Exclude<LintVerdict, { kind: 'passed' }>): Refusal {
  if (verdict.kind === 'refused') {
    const findings = verdict.findings.map(({ linter, severity, code, text }) => ({ linter, severity, code, text }));
    return new Refusal('lint_refused', { details: { findings } });
  }
  return new Refusal('service_busy', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    reason: {
      en: 'The linter that certificates of this product must pass does not answer. Nothing was signed; try again later.',
      zh: '该产品的证书须通过的检查程序没有响应。未签发任何证书，请稍后重试。',
    },
  });
}
