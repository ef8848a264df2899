// A compromised key: from now on it is refused, and every certificate on it is revoked, whosever it is. The key is
// blocked first, so that what is being signed at this moment is found, or revokes itself when it is issued.

import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { ListRef } from '../../domain/revocation/revocation.ts';
import { type RevocationTools, recordRevocation, revokeCertificate } from './revoke-certificate.ts';

export interface Compromise {
  /** Everything that was signed on it, in every account. */
  readonly certificates: readonly CertificateRef[];
}

/** The fingerprint is the SHA-256 of the SPKI, in hexadecimal. */
export type CompromiseKey = (fingerprint: string) => Promise<Compromise>;
/** Serial numbers of lost signers; `isRevoking` revokes them too. Returns those that were found. */
export type VoidedSerials = (isRevoking: boolean) => Promise<CertificateRef[]>;

const BATCH = 100;

const KEY_COMPROMISE = { reason: 'key_compromise', cause: 'key_compromise' } as const;
const OPERATOR = { actor: 'cli', requestId: null } as const;

export function compromiseKey(tools: RevocationTools): CompromiseKey {
  const { store, now, publishLists } = tools;
  const record = recordRevocation(tools);
  return async (fingerprint) => {
    await store.blockedKeys.add(fingerprint, 'key_compromise', now());
    const revoked: CertificateRef[] = [];
    const failures: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.certificates.listOnKey(fingerprint, { after, limit: BATCH });
      const lists: ListRef[] = [];
      for (const { state, ...ref } of page) {
        try {
          if (state === 'prepared' && (await isBeingSigned(store, ref))) continue;
          lists.push(...(await record({ accountId: ref.accountId, ...OPERATOR }, ref.certificateId, KEY_COMPROMISE)));
          revoked.push(ref);
        } catch (error) {
          // One that fails keeps no other from being revoked.
          failures.push(error);
        }
      }
      await publishLists(lists);
      after = page.at(-1)?.certificateId;
      if (page.length < BATCH) break;
    }
    if (failures.length > 0) throw failures[0];
    return { certificates: revoked };
  };
}

/**
 * Whoever finishes a signature changes the order first and asks for the key then. So with the lock of the order, it has
 * either been issued, or will find the key blocked and revoke itself: see revoke-on-issuance.ts.
 */
const isBeingSigned = (store: RevocationTools['store'], { accountId, orderId, certificateId }: CertificateRef) =>
  store.transaction(async (tx) => {
    await tx.orders.findForUpdate(accountId, orderId);
    return (await tx.certificates.find(accountId, certificateId))?.state === 'prepared';
  });

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
