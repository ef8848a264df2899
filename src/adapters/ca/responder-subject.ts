// The subject of an authority's OCSP responder. Verifiers hold it to the name constraints of the chain, as that of any other
// certificate, and an authority may be limited to names that its own is not among.
import { permitsDirectoryName } from '../../domain/certificate/name-constraints.ts';
import { sequence } from '../der/writer.ts';
import { readCertificate } from './certificate-reader.ts';
import { limitsOf, permittedDirectoryNames } from './chain-limits.ts';
import { canonicalParts, partsOfName, partsWithoutCommonName } from './distinguished-name.ts';
import { nameParts } from './to-be-signed.ts';

const COMMON_NAME = nameParts({ commonName: 'OCSP Responder' });

/**
 * Country and organization are those of the authority, or else those that its constraints permit. `chain`: DER, the
 * authority first. `isPermitted` is false if the constraints leave no subject.
 */
export function responderSubject(chain: readonly [Uint8Array, ...Uint8Array[]]): {
  readonly subject: Uint8Array;
  readonly isPermitted: boolean;
} {
  const { names } = limitsOf(chain);
  const own = sequence([...partsWithoutCommonName(readCertificate(chain[0]).subject), ...COMMON_NAME]);
  const others = permittedDirectoryNames(chain).map((name) => sequence([...partsOfName(name), ...COMMON_NAME]));
  const subject = [own, ...others].find((one) => permitsDirectoryName(names, canonicalParts(one)));
  return { subject: subject ?? own, isPermitted: subject !== undefined };
}
