// Certificate profiles: the extensions of each kind of certificate. Constant extensions are encoded once.

import type { CertificateRole, Purpose } from '../../domain/certificate/authority.ts';
import { parseAddress } from '../../domain/egress/addresses.ts';
import { DerReader } from '../der/reader.ts';
import { boolean, ia5String, implicit, integer, NULL, namedBits, octetString, oid, sequence } from '../der/writer.ts';
import { ANY_POLICY, EKU } from './purposes.ts';
import { extension, keyIdentifier } from './to-be-signed.ts';

const ID = {
  subjectKeyIdentifier: oid('2.5.29.14'),
  keyUsage: oid('2.5.29.15'),
  subjectAltName: oid('2.5.29.17'),
  basicConstraints: oid('2.5.29.19'),
  crlDistributionPoints: oid('2.5.29.31'),
  certificatePolicies: oid('2.5.29.32'),
  authorityKeyIdentifier: oid('2.5.29.35'),
  extendedKeyUsage: oid('2.5.29.37'),
  noRevocationAvailable: oid('2.5.29.56'),
  authorityInfoAccess: oid('1.3.6.1.5.5.7.1.1'),
} as const;

/** Bit numbers of KeyUsage. */
const USAGE = {
  digitalSignature: 0,
  nonRepudiation: 1,
  keyEncipherment: 2,
  dataEncipherment: 3,
  keyAgreement: 4,
  keyCertSign: 5,
  cRLSign: 6,
} as const;

const OCSP_SIGNING = '1.3.6.1.5.5.7.3.9';
const OCSP_NO_CHECK = oid('1.3.6.1.5.5.7.48.1.5');
const OCSP = oid('1.3.6.1.5.5.7.48.1');
const CA_ISSUERS = oid('1.3.6.1.5.5.7.48.2');

const keyUsage = (...bits: number[]) => extension({ id: ID.keyUsage, isCritical: true, value: namedBits(bits) });
const extendedKeyUsage = (ids: readonly string[]) =>
  extension({ id: ID.extendedKeyUsage, isCritical: false, value: sequence(ids.map(oid)) });
const certificatePolicies = (ids: readonly string[]) =>
  extension({ id: ID.certificatePolicies, isCritical: false, value: sequence(ids.map((id) => sequence([oid(id)]))) });

/** The extensions that say what a certificate is for. */
export const purposeExtensions = (usages: readonly string[], policies: readonly string[]): Uint8Array[] => [
  extendedKeyUsage(usages),
  ...(policies.length > 0 ? [certificatePolicies(policies)] : []),
];

/** RSA key exchange before TLS 1.3 needs keyEncipherment. */
const TLS_USAGE = {
  rsa: keyUsage(USAGE.digitalSignature, USAGE.keyEncipherment),
  ec: keyUsage(USAGE.digitalSignature),
};
const SIGN_USAGE = { rsa: keyUsage(USAGE.digitalSignature), ec: keyUsage(USAGE.digitalSignature) };
const NON_REPUDIATION_USAGE = keyUsage(USAGE.digitalSignature, USAGE.nonRepudiation);

const USAGES: Readonly<Record<Purpose, Record<'rsa' | 'ec', Uint8Array>>> = {
  'public-tls': TLS_USAGE,
  'private-tls': TLS_USAGE,
  'client-auth': SIGN_USAGE,
  'code-signing': SIGN_USAGE,
  'document-signing': { rsa: NON_REPUDIATION_USAGE, ec: NON_REPUDIATION_USAGE },
};

/** The halves of a dual certificate differ in key usage only. */
const DUAL_USAGES: Readonly<Record<Exclude<CertificateRole, 'single'>, Uint8Array>> = {
  signing: NON_REPUDIATION_USAGE,
  encryption: keyUsage(USAGE.keyEncipherment, USAGE.dataEncipherment, USAGE.keyAgreement),
};

interface StatusUrls {
  readonly issuerCertificate: string;
  readonly crl: string;
  readonly ocsp: string;
}

interface LeafProfile {
  readonly role: CertificateRole;
  readonly purpose: Purpose;
  /** From `purposeExtensions`. */
  readonly purposeExtensions: readonly Uint8Array[];
  readonly isRsa: boolean;
  readonly names: readonly string[];
  /** With an empty subject the subject alternative names must be critical. */
  readonly hasSubject: boolean;
  readonly isShortLived: boolean;
  readonly spki: Uint8Array;
  readonly issuer: IssuerExtensions;
}

/** Extensions that depend on the issuer only, encoded. */
export interface IssuerExtensions {
  readonly authorityKeyIdentifier: Uint8Array;
  readonly crlDistributionPoint: Uint8Array;
  readonly authorityInfoAccess: Uint8Array;
  /** Without the OCSP responder, for certificates that say nothing about their status. */
  readonly issuerAccess: Uint8Array;
}

export const issuerExtensions = (keyId: Uint8Array, urls: StatusUrls): IssuerExtensions => ({
  authorityKeyIdentifier: authorityKeyIdentifier(keyId),
  crlDistributionPoint: crlDistributionPoint(urls.crl),
  authorityInfoAccess: authorityInfoAccess([
    accessDescription(OCSP, urls.ocsp),
    accessDescription(CA_ISSUERS, urls.issuerCertificate),
  ]),
  issuerAccess: authorityInfoAccess([accessDescription(CA_ISSUERS, urls.issuerCertificate)]),
});

/** RFC 9608: verifiers need not look for a status. */
const NO_REVOCATION = extension({ id: ID.noRevocationAvailable, isCritical: false, value: NULL });

export function leafExtensions(profile: LeafProfile): Uint8Array[] {
  const { purpose, names, issuer } = profile;
  return [
    profile.role === 'single' ? USAGES[purpose][profile.isRsa ? 'rsa' : 'ec'] : DUAL_USAGES[profile.role],
    ...profile.purposeExtensions,
    issuer.authorityKeyIdentifier,
    subjectKeyIdentifier(profile.spki),
    ...(names.length > 0 ? [subjectAltName(names, !profile.hasSubject)] : []),
    ...(profile.isShortLived
      ? [issuer.issuerAccess, NO_REVOCATION]
      : [issuer.crlDistributionPoint, issuer.authorityInfoAccess]),
  ];
}

const CA_USAGE = keyUsage(USAGE.digitalSignature, USAGE.keyCertSign, USAGE.cRLSign);
const basicConstraints = (...parts: Uint8Array[]) =>
  extension({ id: ID.basicConstraints, isCritical: true, value: sequence(parts) });
const IS_CA = basicConstraints(boolean(true));
/** pathLenConstraint 0: it signs leaf certificates only. */
const IS_LAST_CA = basicConstraints(boolean(true), integer(0));

export const rootExtensions = (spki: Uint8Array): Uint8Array[] => [
  IS_CA,
  CA_USAGE,
  authorityKeyIdentifier(keyIdOf(spki)),
  subjectKeyIdentifier(spki),
];

export const issuingExtensions = (
  spki: Uint8Array,
  purpose: Purpose,
  root: { keyId: Uint8Array; certificate: string; crl: string },
): Uint8Array[] => [
  IS_LAST_CA,
  CA_USAGE,
  ...purposeExtensions([...EKU[purpose].required, ...EKU[purpose].optional], [ANY_POLICY]),
  authorityKeyIdentifier(root.keyId),
  subjectKeyIdentifier(spki),
  crlDistributionPoint(root.crl),
  authorityInfoAccess([accessDescription(CA_ISSUERS, root.certificate)]),
];

/** What a request for an authority asks its signer for. Where the root is known, so is where its list will be. */
export const requestedExtensions = (
  usages: readonly string[],
  root: { readonly certificate: string; readonly crl: string } | undefined,
): Uint8Array[] => [
  IS_LAST_CA,
  CA_USAGE,
  extendedKeyUsage(usages),
  ...(root
    ? [crlDistributionPoint(root.crl), authorityInfoAccess([accessDescription(CA_ISSUERS, root.certificate)])]
    : []),
];

/** Extensions that a signer takes over from a request, by dotted OID. */
export const FROM_REQUEST = { usages: '2.5.29.37', crl: '2.5.29.31', access: '1.3.6.1.5.5.7.1.1' } as const;

/** Of an authority that is signed by its request: `taken` are those of FROM_REQUEST that it had, encoded. */
export const subordinateExtensions = (
  spki: Uint8Array,
  issuerKeyId: Uint8Array,
  taken: readonly Uint8Array[],
): Uint8Array[] => [
  IS_LAST_CA,
  CA_USAGE,
  certificatePolicies([ANY_POLICY]),
  authorityKeyIdentifier(issuerKeyId),
  subjectKeyIdentifier(spki),
  ...taken,
];

/** Delegated OCSP responder. id-pkix-ocsp-nocheck: verifiers do not check it, so it is short-lived (RFC 6960, 4.2.2.2.1). */
export const responderExtensions = (
  spki: Uint8Array,
  issuerKeyId: Uint8Array,
  policies: readonly string[],
): Uint8Array[] => [
  keyUsage(USAGE.digitalSignature),
  ...purposeExtensions([OCSP_SIGNING], policies),
  extension({ id: OCSP_NO_CHECK, isCritical: false, value: NULL }),
  authorityKeyIdentifier(issuerKeyId),
  subjectKeyIdentifier(spki),
];

export const keyIdOf = (spki: Uint8Array): Uint8Array => keyIdentifier(keyBitsOf(spki));

export function keyBitsOf(spki: Uint8Array): Uint8Array {
  const reader = new DerReader(spki).sequence();
  reader.any();
  return reader.bitString();
}

const subjectKeyIdentifier = (spki: Uint8Array) =>
  extension({ id: ID.subjectKeyIdentifier, isCritical: false, value: octetString(keyIdOf(spki)) });

export const authorityKeyIdentifier = (keyId: Uint8Array) =>
  extension({ id: ID.authorityKeyIdentifier, isCritical: false, value: sequence([implicit(0, octetString(keyId))]) });

const subjectAltName = (names: readonly string[], isCritical: boolean) =>
  extension({ id: ID.subjectAltName, isCritical, value: sequence(names.map(generalName)) });

/** dNSName or iPAddress. */
function generalName(name: string): Uint8Array {
  const address = parseAddress(name);
  return address ? implicit(7, octetString(address)) : implicit(2, ia5String(name));
}

const uri = (address: string) => implicit(6, ia5String(address));

/** [0] DistributionPointName { [0] fullName }. */
export const distributionPoint = (addresses: readonly string[]): Uint8Array =>
  implicit(0, sequence([implicit(0, sequence(addresses.map(uri)))]));

const crlDistributionPoint = (address: string) =>
  extension({
    id: ID.crlDistributionPoints,
    isCritical: false,
    value: sequence([sequence([distributionPoint([address])])]),
  });

const accessDescription = (method: Uint8Array, address: string) => sequence([method, uri(address)]);
const authorityInfoAccess = (descriptions: readonly Uint8Array[]) =>
  extension({ id: ID.authorityInfoAccess, isCritical: false, value: sequence(descriptions) });
