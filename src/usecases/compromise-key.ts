// A compromised key: from now on it is refused, and every certificate on it is revoked, whosever it is. The key is
// blocked first, so that what is being signed at this moment is found, or revokes itself when it is issued.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CertificateRef } from '../domain/revocation-ports.ts';
import { type RevocationTools, type RevokeCertificate, revokeCertificate } from './revoke-certificate.ts';

export interface Compromise {
  /** Everything that was signed on it, in every account. */
  readonly certificates: readonly CertificateRef[];
}

/** The fingerprint is the SHA-256 of the SPKI, in hexadecimal. */
export type CompromiseKey = (fingerprint: string) => Promise<Compromise>;
/** Serial numbers of lost signers; `isRevoking` revokes them too. Returns those that were found. */
export type VoidedSerials = (isRevoking: boolean) => Promise<CertificateRef[]>;

const BATCH = 100;
const PAUSE_MS = 500;

const KEY_COMPROMISE = { reason: 'key_compromise', cause: 'key_compromise' } as const;
const OPERATOR = { actor: 'cli', requestId: null } as const;

export function compromiseKey(tools: RevocationTools): CompromiseKey {
  const { store, now } = tools;
  const revoke = revokeCertificate(tools);
  return async (fingerprint) => {
    await store.blockedKeys.add(fingerprint, 'key_compromise', now());
    const found = new Map<string, CertificateRef>();
    await revokeAll(store, revoke, fingerprint, found);
    // A transaction that had asked for the key before it was blocked may have written down a certificate since.
    await sleep(PAUSE_MS);
    await revokeAll(store, revoke, fingerprint, found);
    return { certificates: [...found.values()] };
  };
}

async function revokeAll(
  { certificates }: RevocationTools['store'],
  revoke: RevokeCertificate,
  fingerprint: string,
  found: Map<string, CertificateRef>,
): Promise<void> {
  for (let after: string | undefined; ; ) {
    const page = await certificates.listOnKey(fingerprint, { after, limit: BATCH });
    for (const { state, ...ref } of page) {
      // One that is being signed revokes itself when it is issued: see revoke-on-issuance.ts.
      if (state === 'prepared' || found.has(ref.certificateId)) continue;
      await revoke({ accountId: ref.accountId, ...OPERATOR }, ref.certificateId, KEY_COMPROMISE);
      found.set(ref.certificateId, ref);
    }
    after = page.at(-1)?.certificateId;
    if (page.length < BATCH) return;
  }
}

export function voidedSerials(tools: RevocationTools): VoidedSerials {
  const revoke = revokeCertificate(tools);
  return async (isRevoking) => {
    const found: CertificateRef[] = [];
    for (let after: string | undefined; ; ) {
      const page = await tools.store.certificates.listVoided({ after, limit: BATCH });
      for (const ref of page) {
        if (isRevoking) {
          await revoke({ accountId: ref.accountId, ...OPERATOR }, ref.certificateId, {
            reason: 'cessation_of_operation',
          });
        }
      }
      found.push(...page);
      after = page.at(-1)?.certificateId;
      if (page.length < BATCH) return found;
    }
  };
}
