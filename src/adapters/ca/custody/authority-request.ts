// Requests (PKCS#10) for issuing authorities that are signed elsewhere: on another machine by a root that was taken
// offline, or by the authority of a company. What the certificate should say is requested as extensions.
import type { IssuerKeyType, Purpose } from '../../../domain/certificate/authority.ts';
import { PURPOSES } from '../../../domain/certificate/authority.ts';
import { pem } from '../../../domain/certificate/pem.ts';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import { DerReader } from '../../der/reader.ts';
import { oid } from '../../der/writer.ts';
import { type ReadExtension, readExtensionList } from '../certificate-reader.ts';
import { readCsr } from '../csr.ts';
import { signedRequest } from '../csr-writer.ts';
import { type IssuerKey, newIssuerKey, openIssuerKey } from '../issuer-key.ts';
import { FROM_REQUEST, requestedExtensions } from '../profiles.ts';
import { EKU } from '../purposes.ts';
import { extension } from '../to-be-signed.ts';

const usagesOf = (purposes: readonly Purpose[]): string[] => [
  ...new Set(purposes.flatMap((purpose) => [...EKU[purpose].required, ...EKU[purpose].optional])),
];

interface Wanted {
  readonly keyType: IssuerKeyType;
  readonly purposes: readonly Purpose[];
  /** Name, DER. */
  readonly subject: Uint8Array;
  /** Where the certificate and the list of the root will be found; undefined if another authority signs. */
  readonly root: { readonly certificate: string; readonly crl: string } | undefined;
}

/** Makes a key, and its request, DER. */
export async function newAuthorityRequest(wanted: Wanted) {
  const privateKey = await newIssuerKey(wanted.keyType, 'issuing');
  return { privateKey, request: await authorityRequest(openIssuerKey(wanted.keyType, privateKey), wanted) };
}

/** The request for a key, DER. */
export const authorityRequest = (key: IssuerKey, { keyType, purposes, subject, root }: Wanted): Promise<Uint8Array> =>
  signedRequest(key, { keyType, subject, extensions: requestedExtensions(usagesOf(purposes), root) });

export const requestPem = (request: Uint8Array): string => pem('CERTIFICATE REQUEST', request);

interface AuthorityRequest {
  readonly der: Uint8Array;
  readonly subject: Uint8Array;
  readonly spki: Uint8Array;
  readonly purposes: readonly Purpose[];
  /** Those extensions that a signer takes over, encoded. */
  readonly taken: readonly Uint8Array[];
}

/** Reads PEM, and verifies the request's own signature. Throws a Problem or a Refusal. */
export function readAuthorityRequest(text: string): AuthorityRequest {
  const { der } = readCsr(text);
  const info = new DerReader(der).sequence().sequence();
  info.integer();
  const [subject, spki] = [info.any(), info.any()];
  const requested = requestedIn(info.context(0));
  const usages = usagesIn(requested.get(FROM_REQUEST.usages));
  const purposes = PURPOSES.filter((purpose) => EKU[purpose].required.every((usage) => usages.includes(usage)));
  const allowed = usagesOf(purposes);
  if (purposes.length === 0 || usages.some((usage) => !allowed.includes(usage))) {
    throw new Problem(
      EXIT.refused,
      'the request does not ask for extended key usages of authorities of this service',
      'Give a request of reseal ca csr, unaltered.',
    );
  }
  const taken = Object.values(FROM_REQUEST).flatMap((id) => {
    const found = requested.get(id);
    return found ? [extension({ id: oid(id), isCritical: false, value: found.value })] : [];
  });
  return { der, subject, spki, purposes, taken };
}

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';

function requestedIn(attributes: DerReader | undefined): ReadonlyMap<string, ReadExtension> {
  while (attributes && !attributes.isAtEnd) {
    const attribute = attributes.sequence();
    if (attribute.oid() === EXTENSION_REQUEST) return readExtensionList(attribute.set().sequence()).byId;
  }
  return new Map();
}

function usagesIn(found: ReadExtension | undefined): string[] {
  const usages: string[] = [];
  const list = found && new DerReader(found.value).sequence();
  while (list && !list.isAtEnd) usages.push(list.oid());
  return usages;
}
