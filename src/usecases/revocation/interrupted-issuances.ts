// Interrupted issuances, for the operator: serial numbers whose signer never finished, so that a signature may exist
// somewhere. They can be revoked as a precaution.

import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { Store } from '../../domain/store.ts';
import { byOperator } from '../access/audit.ts';
import { type RevocationTools, revokeCertificate } from './revoke-certificate.ts';

export interface InterruptedIssuances {
  /** Those that are not revoked, in all accounts. */
  list(): Promise<CertificateRef[]>;
  /** Revokes all of them, and returns them. */
  revoke(): Promise<CertificateRef[]>;
}

const BATCH = 100;

export async function listInterrupted({ certificates }: Pick<Store, 'certificates'>): Promise<CertificateRef[]> {
  const found: CertificateRef[] = [];
  for (let after: string | undefined; ; ) {
    const page = await certificates.listVoided({ after, limit: BATCH });
    found.push(...page);
    after = page.at(-1)?.certificateId;
    if (page.length < BATCH) return found;
  }
}

export function interruptedIssuances(tools: RevocationTools): InterruptedIssuances {
  const revokeOne = revokeCertificate(tools);
  const list = () => listInterrupted(tools.store);
  return {
    list,
    async revoke() {
      const found = await list();
      for (const { accountId, certificateId } of found) {
        const by = byOperator(accountId);
        await revokeOne(by, certificateId, { reason: 'cessation_of_operation' });
      }
      return found;
    },
  };
}
