// Finds the certificate that a client names by its issuer's key and its serial number.
import { type CertId, parseCertId } from '../../domain/acme/cert-id.ts';
import type { IssuedCertificate } from '../../domain/certificate/certificate.ts';
import type { AcmeOrderTools } from './tools.ts';

type FindCertificate = (certId: CertId) => Promise<IssuedCertificate | undefined>;

/** In any account: callers judge whose it is. */
export function findCertificate({ store, issuersWithKey }: Pick<AcmeOrderTools, 'store' | 'issuersWithKey'>) {
  const find: FindCertificate = async ({ issuerKeyId, serial }) => {
    for (const issuerId of await issuersWithKey(issuerKeyId)) {
      const owner = await store.revokedSerials.ownerOf(issuerId, serial);
      const found = owner && (await store.certificates.find(owner.accountId, owner.certificateId));
      // Not the encryption half of a dual one, which has another number.
      if (found?.state === 'issued' && found.preparation.serial === serial) return found;
    }
    return undefined;
  };
  return {
    find,
    findByText: async (text: string): Promise<IssuedCertificate | undefined> => {
      const certId = parseCertId(text);
      return certId && (await find(certId));
    },
  };
}
