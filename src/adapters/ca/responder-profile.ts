// Subject and policies of an authority's OCSP responder. Verifiers hold it to the limits of the chain as any other
// certificate, and an authority may be limited to names that its own is not among.
import { permitsDirectoryName } from '../../domain/certificate/name-constraints.ts';
import { sequence } from '../der/writer.ts';
import { readCertificate } from './certificate-reader.ts';
import { limitsOf, permittedDirectoryNames, requiredPolicies } from './chain-limits.ts';
import { canonicalParts, partsOfName, partsWithoutCommonName } from './distinguished-name.ts';
import { nameParts } from './to-be-signed.ts';

const COMMON_NAME = nameParts({ commonName: 'OCSP Responder' });

export interface ResponderProfile {
  /** Country and organization are those of the authority, or else those that its constraints permit. DER. */
  readonly subject: Uint8Array;
  /** Dotted OIDs; empty unless the chain requires one. */
  readonly policies: readonly string[];
}

/** `chain`: DER, the authority first. `chosen`: the operator's policy. `isPermitted`: the constraints leave it a subject. */
export function responderProfile(
  chain: readonly [Uint8Array, ...Uint8Array[]],
  chosen: string | null,
): ResponderProfile & { readonly isPermitted: boolean } {
  const limits = limitsOf(chain);
  const own = sequence([...partsWithoutCommonName(readCertificate(chain[0]).subject), ...COMMON_NAME]);
  const others = permittedDirectoryNames(chain).map((name) => sequence([...partsOfName(name), ...COMMON_NAME]));
  const subject = [own, ...others].find((one) => permitsDirectoryName(limits.names, canonicalParts(one)));
  return { subject: subject ?? own, isPermitted: subject !== undefined, policies: requiredPolicies(limits, chosen) };
}
