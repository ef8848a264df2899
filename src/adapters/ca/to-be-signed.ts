// Encodes TBSCertificate and Certificate (RFC 5280, 4.1). Which extensions a certificate has is decided in profiles.ts.
import { hash } from 'node:crypto';
import type { IssuerKeyType } from '../../domain/certificate/authority.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import type { SubjectFields } from '../../domain/certificate/subject.ts';
import { DerPrepender } from '../der/prepend.ts';
import {
  boolean,
  explicit,
  integer,
  NULL,
  octetString,
  oid,
  printableString,
  sequence,
  setOf,
  TAG,
  time,
  utf8String,
} from '../der/writer.ts';

const VERSION_3 = explicit(0, integer(2));
const COMMON_NAME = oid('2.5.4.3');
const ORGANIZATION = oid('2.5.4.10');
const ORGANIZATIONAL_UNIT = oid('2.5.4.11');
const COUNTRY = oid('2.5.4.6');

/** RSA identifiers have NULL parameters, ECDSA none. */
const ecdsa = (dotted: string): Uint8Array => sequence([oid(dotted)]);
const rsa = (dotted: string): Uint8Array => sequence([oid(dotted), NULL]);

/** By issuer key. Each curve has one digest (Baseline Requirements, 7.1.3.2); RSA takes any. */
export const SIGNATURE_ALGORITHMS: Readonly<Record<IssuerKeyType, Partial<Record<SignHash, Uint8Array>>>> = {
  p256: { sha256: ecdsa('1.2.840.10045.4.3.2') },
  p384: { sha384: ecdsa('1.2.840.10045.4.3.3') },
  rsa: {
    sha256: rsa('1.2.840.113549.1.1.11'),
    sha384: rsa('1.2.840.113549.1.1.12'),
    sha512: rsa('1.2.840.113549.1.1.13'),
  },
  sm2: { sm3: ecdsa('1.2.156.10197.1.501') },
};

/** What each key type signs issuer certificates, CRLs and OCSP responses with. */
export const DEFAULT_HASH = {
  p256: 'sha256',
  p384: 'sha384',
  rsa: 'sha256',
  sm2: 'sm3',
} as const satisfies Record<IssuerKeyType, SignHash>;

/** AlgorithmIdentifier, DER. Throws when the key type does not sign with the digest. */
export function signatureAlgorithm(keyType: IssuerKeyType, signHash: SignHash): Uint8Array {
  const algorithm = SIGNATURE_ALGORITHMS[keyType][signHash];
  if (!algorithm) throw new Error(`an issuer on ${keyType} does not sign with ${signHash}`);
  return algorithm;
}

export const defaultAlgorithm = (keyType: IssuerKeyType): Uint8Array =>
  signatureAlgorithm(keyType, DEFAULT_HASH[keyType]);

interface Extension {
  readonly id: Uint8Array;
  readonly isCritical: boolean;
  readonly value: Uint8Array;
}

interface ToBeSigned {
  readonly serial: Uint8Array;
  readonly algorithm: Uint8Array;
  readonly issuer: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly subject: Uint8Array;
  readonly spki: Uint8Array;
  /** Encoded by `extension`. */
  readonly extensions: readonly Uint8Array[];
}

/** More than most certificates. One at a time is encoded, without interruption. */
const writer = new DerPrepender(2_048);
/** [3] EXPLICIT. */
const CONTEXT_3 = 0xa3;
const NO_UNUSED_BITS = Uint8Array.of(0);

/** In one pass, from the end: every certificate is built while a customer waits. */
export function toBeSigned(content: ToBeSigned): Uint8Array {
  writer.begin();
  for (let index = content.extensions.length - 1; index >= 0; index -= 1) writer.put(content.extensions[index]!);
  writer.wrap(TAG.sequence, 0);
  writer.wrap(CONTEXT_3, 0);
  writer.put(content.spki);
  writer.put(content.subject);
  const behind = writer.length;
  writer.put(time(new Date(content.notAfter)));
  writer.put(time(new Date(content.notBefore)));
  writer.wrap(TAG.sequence, behind);
  writer.put(content.issuer);
  writer.put(content.algorithm);
  writer.put(integer(content.serial));
  writer.put(VERSION_3);
  writer.wrap(TAG.sequence, 0);
  return writer.copy();
}

export function signedCertificate(toBeSigned: Uint8Array, algorithm: Uint8Array, signature: Uint8Array): Uint8Array {
  writer.begin();
  writer.put(signature);
  writer.put(NO_UNUSED_BITS);
  writer.wrap(TAG.bitString, 0);
  writer.put(algorithm);
  writer.put(toBeSigned);
  writer.wrap(TAG.sequence, 0);
  return writer.copy();
}

/** `critical` is DEFAULT FALSE, and DER omits defaults. */
export const extension = ({ id, isCritical, value }: Extension): Uint8Array =>
  sequence(isCritical ? [id, boolean(true), octetString(value)] : [id, octetString(value)]);

interface NameParts extends Partial<SubjectFields> {
  readonly commonName?: string;
}

export const distinguishedName = (parts: NameParts): Uint8Array => sequence(nameParts(parts));

/** Relative distinguished names, from the top. */
export const nameParts = ({ country, organization, organizationalUnit, commonName }: NameParts): Uint8Array[] => [
  ...attribute(COUNTRY, country),
  ...attribute(ORGANIZATION, organization),
  ...attribute(ORGANIZATIONAL_UNIT, organizationalUnit),
  ...attribute(COMMON_NAME, commonName),
];

/** PrintableString where possible, for old verifiers; UTF8String otherwise. */
function attribute(type: Uint8Array, text: string | null | undefined): Uint8Array[] {
  if (text === null || text === undefined) return [];
  const isPrintable = /^[A-Za-z0-9 '()+,\-./:=?]+$/.test(text);
  return [setOf([sequence([type, isPrintable ? printableString(text) : utf8String(text)])])];
}

/** RFC 7093, 2 (1): the leftmost 160 bits of the SHA-256 of the SPKI's BIT STRING. */
export const keyIdentifier = (keyBits: Uint8Array): Uint8Array => hash('sha256', keyBits, 'buffer').subarray(0, 20);
