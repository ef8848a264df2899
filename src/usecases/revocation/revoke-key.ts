// Revokes a compromised key: adds it to the blocklist, then revokes every certificate on it, in all accounts. The key is
// blocked first, so that a certificate being signed meanwhile is found here or revokes itself when it is issued.

import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import { byOperator } from '../access/audit.ts';
import { type RevocationTools, recordRevocation } from './revoke-certificate.ts';

/** `fingerprint` is the SHA-256 of the SPKI, in hexadecimal. Returns the certificates on the key, in all accounts. */
export type RevokeKey = (fingerprint: string) => Promise<CertificateRef[]>;

const BATCH = 100;
const KEY_COMPROMISE = { reason: 'key_compromise', cause: 'key_compromise' } as const;

export function revokeKey(tools: RevocationTools): RevokeKey {
  const { store, now, publishCrls } = tools;
  const record = recordRevocation(tools);
  return async (fingerprint) => {
    await store.blockedKeys.add(fingerprint, 'key_compromise', now());
    const revoked: CertificateRef[] = [];
    const failures: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.certificates.listOnKey(fingerprint, { after, limit: BATCH });
      const crls: CrlRef[] = [];
      for (const { state, ...ref } of page) {
        try {
          if (state === 'prepared' && (await isBeingSigned(store, ref))) continue;
          const by = byOperator(ref.accountId);
          crls.push(...(await record(by, ref.certificateId, KEY_COMPROMISE)));
          revoked.push(ref);
        } catch (error) {
          // A failure must not keep the other certificates from being revoked.
          failures.push(error);
        }
      }
      await publishCrls(crls);
      after = page.at(-1)?.certificateId;
      if (page.length < BATCH) break;
    }
    if (failures.length > 0) throw failures[0];
    return revoked;
  };
}

/**
 * Rereads the state under the order lock. The signer saves the order before it reads the blocklist, so a certificate that
 * is still prepared here will find its key blocked and revoke itself: see revoke-on-issuance.ts.
 */
const isBeingSigned = (store: RevocationTools['store'], { accountId, orderId, certificateId }: CertificateRef) =>
  store.transaction(async (tx) => {
    await tx.orders.findForUpdate(accountId, orderId);
    return (await tx.certificates.find(accountId, certificateId))?.state === 'prepared';
  });
