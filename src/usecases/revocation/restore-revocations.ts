// Restores revocations from published CRLs into a store that is older than they are: a restored backup must not make a
// revoked certificate valid again. A certificate that the store has is revoked as usual, dated as the CRL says. A serial
// number that it does not have was issued after the backup; it stays listed, and revoked in OCSP, until its issuer expires,
// which no certificate outlives. Revokes only what an issuer of the store has signed as revoked, so it is safe at any time.
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { CertificateRef, CrlEntry, ReadCrl } from '../../domain/revocation/ports.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import type { Store } from '../../domain/store.ts';
import { byOperator } from '../access/audit.ts';
import type { LockTools } from '../lease/order-lock.ts';
import { recordRevocation } from './revoke-certificate.ts';

type Listed = CrlEntry & CrlRef;

export interface RestoredRevocations {
  /** Certificates that the store has and that were revoked again, or for a graver reason. */
  readonly revoked: readonly (Listed & { readonly certificateId: CertificateId })[];
  /** Serial numbers without a certificate, listed until that time. */
  readonly withoutCertificate: readonly (Listed & { readonly listedUntil: number })[];
}

/** Entries per look-up, below the maximum number of parameters of a statement. */
const BATCH = 500;
/** Voiding a lost issuance may hand its serial number to another row, which is then found at the next try. */
const MAX_TRIES = 3;

export function restoreRevocations(tools: LockTools) {
  const { store } = tools;
  // Publishing is up to the service: restoring needs no issuer's key.
  const record = recordRevocation({ ...tools, publishCrls: async () => {} });

  /** False when the serial number has no certificate that can be revoked. */
  async function revokeOwner(entry: Listed): Promise<CertificateId | undefined> {
    const { issuerId, serial, reason, revokedAt } = entry;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const owner: CertificateRef | undefined = await store.revokedSerials.ownerOf(issuerId, serial);
      if (!owner) return undefined;
      try {
        await record(byOperator(owner.accountId), owner.certificateId, { reason, revokedAt });
        return owner.certificateId;
      } catch (error) {
        if (!(error instanceof Refusal && error.code === 'revocation_state_conflict')) throw error;
      }
    }
    return undefined;
  }

  return async (crl: ReadCrl): Promise<RestoredRevocations> => {
    const revoked: RestoredRevocations['revoked'][number][] = [];
    const withoutCertificate: RestoredRevocations['withoutCertificate'][number][] = [];
    for (let from = 0; from < crl.entries.length; from += BATCH) {
      const batch = crl.entries.slice(from, from + BATCH);
      const reasons = await store.revokedSerials.reasonsOf(crl.issuerId, batch);
      for (const entry of batch) {
        const known = reasons.get(entry.serial);
        const isGraver = known !== undefined && known !== entry.reason && entry.reason === 'key_compromise';
        if (known !== undefined && !isGraver) continue;
        const certificateId = await revokeOwner(entry);
        if (certificateId !== undefined) revoked.push({ ...entry, certificateId });
        else {
          await list(store, entry, crl.issuerNotAfter, known !== undefined);
          withoutCertificate.push({ ...entry, listedUntil: crl.issuerNotAfter });
        }
      }
    }
    await adopt(store, crl);
    return { revoked, withoutCertificate };
  };
}

/** Records a serial number without its certificate. */
async function list({ revokedSerials }: Store, entry: Listed, notAfter: number, isKnown: boolean): Promise<void> {
  if (isKnown) await revokedSerials.changeReasonOf(entry);
  else await revokedSerials.insert({ ...entry, certificateId: null, notAfter });
}

/** Continues from the CRL that the world has seen: the next one has a higher number, and it is served until then. */
async function adopt({ crls }: Store, crl: ReadCrl): Promise<void> {
  const { issuerId, shard, number, thisUpdate, nextUpdate, addresses, entries, der } = crl;
  if (shard === null) return;
  const earlier = await crls.head({ issuerId, shard });
  await crls.adopt({
    ...{ issuerId, shard, number, thisUpdate, nextUpdate, der },
    entries: entries.length,
    expiredBefore: earlier?.expiredBefore ?? 0,
    addresses: addresses.join(' '),
  });
}
