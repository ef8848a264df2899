// Revokes a compromised key: adds it to the blocklist, then revokes every certificate on it, in all accounts. No certificate
// slips through: one that is written down later finds the key blocked; one that is being signed is marked, and revoked as
// soon as it is issued; one that was issued before the mark is found here. Signers that do not finish are waited for once,
// for all certificates together; what was taken from them and is on the key is found by another pass.

import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import { byOperator } from '../access/audit.ts';
import { briefPatience } from '../lease/order-lock.ts';
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
    await store.signings.reportKey(fingerprint);
    const patience = briefPatience();
    const tried = new Set<string>();
    const revoked: CertificateRef[] = [];
    const failures: unknown[] = [];
    for (let [after, isNew]: [string | undefined, boolean] = [undefined, false]; ; ) {
      const page = await store.certificates.listOnKey(fingerprint, { after, limit: BATCH });
      const crls: CrlRef[] = [];
      for (const ref of page.filter(({ certificateId }) => !tried.has(certificateId))) {
        isNew = true;
        tried.add(ref.certificateId);
        try {
          const by = byOperator(ref.accountId);
          crls.push(...(await record(by, ref.certificateId, KEY_COMPROMISE, patience)));
          revoked.push(ref);
        } catch (error) {
          // A failure must not keep the other certificates from being revoked.
          failures.push(error);
        }
      }
      await publishCrls(crls);
      after = page.at(-1)?.certificateId;
      if (page.length === BATCH) continue;
      if (!isNew) break;
      [after, isNew] = [undefined, false];
    }
    if (failures.length > 0) throw failures[0];
    return revoked;
  };
}
