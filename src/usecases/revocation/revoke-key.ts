// Revokes what is on a compromised key. No certificate slips through: one that is written down later finds the key
// blocked; one that is being signed is marked, and revoked as soon as it is issued; one that was issued before the mark
// is found here. Signers that do not finish are waited for once, for all certificates together; what was taken from them
// and is on the key is found by another pass.
//
// The operator's report counts in all accounts. That of an account counts in the account alone, because a CSR is no
// secret: one account could otherwise revoke the certificates of another. The operator is told of the others.
import type { Actor } from '../../domain/access/credential.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { CertificateRef } from '../../domain/revocation/ports.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import { auditLog, byOperator } from '../access/audit.ts';
import { briefPatience } from '../lease/order-lock.ts';
import {
  type RevocationTools,
  type RevokeCertificate,
  recordRevocation,
  revokeCertificate,
} from './revoke-certificate.ts';

/** `fingerprint` is the SHA-256 of the SPKI, in hexadecimal. Returns the certificates on the key, in all accounts. */
export type RevokeKey = (fingerprint: string) => Promise<CertificateRef[]>;

const BATCH = 100;
const KEY_COMPROMISE = { reason: 'key_compromise', cause: 'key_compromise' } as const;

export function revokeKey(tools: RevocationTools): RevokeKey {
  const { store, now } = tools;
  return async (fingerprint) => {
    await store.blockedKeys.add(fingerprint, 'key_compromise', now());
    await store.signings.reportKey(fingerprint, null);
    return await revokeOn(tools, fingerprint, ({ accountId }) => byOperator(accountId));
  };
}

/** Revokes one certificate. With the reason `key_compromise`, also the account's others on the same key. */
export function revokeOnRequest(tools: RevocationTools): RevokeCertificate {
  const revoke = revokeCertificate(tools);
  const audit = auditLog(tools);
  const { store } = tools;
  return async (by, certificateId, request) => {
    await revoke(by, certificateId, request);
    if (request.reason !== 'key_compromise') return;
    for (const fingerprint of await keysOf(tools, by, certificateId)) {
      await store.signings.reportKey(fingerprint, by.accountId);
      const others: CertificateRef[] = [];
      await revokeOn(tools, fingerprint, (ref) => {
        if (ref.accountId === by.accountId) return by;
        others.push(ref);
        return null;
      });
      if (others.length === 0) continue;
      const details = { reported_by: by.accountId, certificates_of_others: others.length };
      await audit(store, { ...by, accountId: null }, 'key:reported', fingerprint, details);
    }
  };
}

/** The key of the certificate, and that of its encryption half. Blocked by now, so that the list below is complete. */
async function keysOf({ store }: RevocationTools, { accountId }: Actor, id: CertificateId): Promise<string[]> {
  const found = await store.certificates.find(accountId, id);
  if (!found || !('encryption' in found)) return [];
  const half = found.encryption && (await store.escrowedKeys.find(accountId, found.encryption.escrowedKeyId));
  return [found.publicKey.fingerprint, ...(half ? [half.publicKey.fingerprint] : [])];
}

/** `actorFor` answers null for a certificate that is not to be revoked. */
async function revokeOn(
  tools: RevocationTools,
  fingerprint: string,
  actorFor: (ref: CertificateRef) => Actor | null,
): Promise<CertificateRef[]> {
  const record = recordRevocation(tools);
  const patience = briefPatience();
  const tried = new Set<string>();
  const revoked: CertificateRef[] = [];
  const failures: unknown[] = [];
  for (let [after, isNew]: [string | undefined, boolean] = [undefined, false]; ; ) {
    const page = await tools.store.certificates.listOnKey(fingerprint, { after, limit: BATCH });
    const crls: CrlRef[] = [];
    for (const ref of page.filter(({ certificateId }) => !tried.has(certificateId))) {
      isNew = true;
      tried.add(ref.certificateId);
      try {
        const by = actorFor(ref);
        if (!by) continue;
        crls.push(...(await record(by, ref.certificateId, KEY_COMPROMISE, patience)));
        revoked.push(ref);
      } catch (error) {
        // A failure must not keep the other certificates from being revoked.
        failures.push(error);
      }
    }
    await tools.publishCrls(crls);
    after = page.at(-1)?.certificateId;
    if (page.length === BATCH) continue;
    if (!isNew) break;
    [after, isNew] = [undefined, false];
  }
  if (failures.length > 0) throw failures[0];
  return revoked;
}
