// Reads the parts of a certificate that other structures repeat byte for byte: that is how chains are built.
import { DerError, DerReader } from '../der/reader.ts';

const SUBJECT_KEY_IDENTIFIER = '2.5.29.14';

interface CertificateParts {
  readonly subject: Uint8Array;
  /** The subject key identifier, if the certificate has one. */
  readonly keyId: Uint8Array | undefined;
  /** By dotted OID. */
  readonly extensions: ReadonlyMap<string, ReadExtension>;
}

export function readCertificate(certificate: Uint8Array): CertificateParts {
  const { subject, rest } = readUpToKey(certificate);
  const extensions = readExtensions(rest).byId;
  const value = extensions.get(SUBJECT_KEY_IDENTIFIER)?.value;
  return { subject, keyId: value && new DerReader(value).octetString(), extensions };
}

/** The SubjectPublicKeyInfo, DER; extensions are not read. */
export const spkiOf = (certificate: Uint8Array): Uint8Array => readUpToKey(certificate).spki;

/** The algorithm that the certificate is signed with, a dotted OID. */
export function signatureAlgorithmOf(certificate: Uint8Array): string {
  const outer = new DerReader(certificate).sequence();
  outer.any();
  return outer.sequence().oid();
}

/** The reader stands right before the extensions. */
export function readUpToKey(certificate: Uint8Array) {
  const rest = new DerReader(certificate).sequence().sequence();
  rest.context(0);
  rest.integer();
  rest.any(); // signature algorithm
  const issuer = rest.any();
  rest.any(); // validity
  return { issuer, subject: rest.any(), spki: rest.any(), rest };
}

export interface ReadExtension {
  readonly isCritical: boolean;
  readonly value: Uint8Array;
}

/** Reads the extensions of a TBSCertificate; the reader must stand right before them. */
export function readExtensions(reader: DerReader) {
  const outer = reader.context(3);
  const list = outer?.sequence();
  outer?.end();
  return readExtensionList(list);
}

/** Reads the elements of an Extensions sequence: of a certificate, a CRL, or an entry of one. */
export function readExtensionList(list: DerReader | undefined) {
  const byId = new Map<string, ReadExtension>();
  let count = 0;
  while (list && !list.isAtEnd) {
    const one = list.sequence();
    const id = one.oid();
    const next = one.primitive();
    const isCritical = next.tag === 0x01;
    byId.set(id, { isCritical, value: isCritical ? one.octetString() : next.content });
    one.end();
    count += 1;
  }
  return { byId, hasDuplicates: byId.size !== count };
}

const AUTHORITY_KEY_IDENTIFIER = '2.5.29.35';

/** The key identifier of the issuer and the serial number, hexadecimal; undefined for bytes without them. */
export function certIdOf(certificate: Uint8Array): { issuerKeyId: string; serial: string } | undefined {
  try {
    const whole = new DerReader(certificate);
    const body = whole.sequence().sequence();
    whole.end();
    body.context(0);
    const serial = Buffer.from(body.positive()).toString('hex');
    const value = readCertificate(certificate).extensions.get(AUTHORITY_KEY_IDENTIFIER)?.value;
    // [0] IMPLICIT, primitive.
    const { tag, content } = new DerReader(value ?? new Uint8Array()).sequence().primitive();
    return tag === 0x80 ? { issuerKeyId: Buffer.from(content).toString('hex'), serial } : undefined;
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

/** The subject key identifier, hexadecimal; undefined without one. */
export function keyIdText(certificate: Uint8Array): string | undefined {
  const { keyId } = readCertificate(certificate);
  return keyId && Buffer.from(keyId).toString('hex');
}
