// Reads an issuing authority that an operator imports: a chain from its certificate to a root, whose key stays elsewhere,
// and its private key. Rejects everything that would make verifiers refuse its certificates, before it signs the first one.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { canStillSign, type Issuer, type IssuerKeyType, type Purpose } from '../../domain/certificate/authority.ts';
import { permitsDirectoryName } from '../../domain/certificate/name-constraints.ts';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { DerError, DerReader } from '../der/reader.ts';
import { type ReadExtension, readCertificate, signatureAlgorithmOf, spkiOf } from './certificate-reader.ts';
import { limitsOf, policiesFor, purposesWithin, requireReadable, UnusableChain } from './chain-limits.ts';
import { canonicalParts, nameText } from './distinguished-name.ts';
import { readPublicKey, requireCompositeModulus, requireStrongKey } from './public-key.ts';
import { responderProfile } from './responder-profile.ts';

export interface ImportedIssuer {
  /** PEM; the certificates may be in any order. */
  readonly chain: string;
  /** PEM, or PKCS#8 in DER, or one that stays in its token. */
  readonly key: string | Uint8Array | HeldKey;
  readonly purposes: readonly Purpose[];
  /** A dotted OID. */
  readonly policy: string | null;
}

/** A key in a token, which has proved by a signature whose it is. */
export interface HeldKey {
  readonly uri: string;
  isKeyOf(publicKey: KeyObject): boolean;
}

const CURVES: Readonly<Record<string, IssuerKeyType>> = { prime256v1: 'p256', secp384r1: 'p384' };
const MIN_RSA_BITS = 2048;
/** With MD2, MD5 or SHA-1: verifiers refuse them below a root. */
const BROKEN_SIGNATURES: ReadonlySet<string> = new Set([
  ...['1.2.840.113549.1.1.2', '1.2.840.113549.1.1.4', '1.2.840.113549.1.1.5', '1.2.840.10045.4.1'],
]);
/** Deeper than any hierarchy in use; each one is a signature to verify. */
const MAX_CHAIN = 8;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Returns the issuing authority first, and the root last. Throws a Problem. */
export function readImportedIssuer(own: ImportedIssuer, now: number, newId: NewId): readonly [Issuer, ...Issuer[]] {
  try {
    return read(own, now, newId);
  } catch (error) {
    if (error instanceof UnusableChain) throw unusable(error.message);
    if (error instanceof DerError) throw unusable(`a certificate cannot be read (${error.message})`);
    throw error;
  }
}

function read({ chain: text, key, purposes, policy }: ImportedIssuer, now: number, newId: NewId) {
  const given = certificatesIn(text);
  require(given.length > 0, 'the file of the chain has no certificate in PEM');
  require(given.length <= MAX_CHAIN, `the chain has more than ${MAX_CHAIN} certificates`);
  const { isKeyOf, place } = placedKey(key);
  const [issuing, ...above] = ordered(given, isKeyOf, now);
  const chain = [issuing, ...above];
  require(chain.every(({ ca }) => ca), 'all certificates must be those of authorities (basicConstraints CA:TRUE)');
  for (const one of chain) {
    require(one.validFromDate.getTime() <= now, 'a certificate is not valid yet');
    require(canStillSign({ notAfter: one.validToDate.getTime() }, now), 'a certificate ends within a day');
    requireStrength(one);
  }
  requireSoundKey(issuing);
  const der = [issuing.raw, ...above.map(({ raw }) => raw)] as const;
  requireReadable(der);
  requireNamesOfChain(der);
  requireCrlSign(readCertificate(issuing.raw).extensions.get(KEY_USAGE));
  const limits = limitsOf(der);
  const possible = purposesWithin(limits);
  for (const purpose of purposes) {
    require(possible.includes(
      purpose,
    ), `the extended key usage of its chain does not allow ${purpose}; it allows ${possible.join(', ') || 'nothing that is issued here'}`);
    policiesFor(purpose, limits, policy);
  }
  const keyType = keyTypeOf(issuing.publicKey);
  const ids = chain.map(() => newId());
  const [first, ...rest] = chain.map(
    (one, index): Issuer => ({
      ...{ id: ids[index]!, certificate: one.raw, parentId: ids[index + 1] ?? null, createdAt: now },
      // One above it may have another key: its lists are verified with it.
      keyType: knownKeyType(one.publicKey) ?? keyType,
      ...(index === 0
        ? { role: 'issuing', purposes, policy, ...place }
        : {
            ...{ role: index === chain.length - 1 ? 'root' : 'issuing', purposes: [], policy: null },
            ...{ keyPlace: 'elsewhere', privateKey: null },
          }),
    }),
  );
  return [first!, ...rest] as const;
}

interface PlacedKey {
  readonly isKeyOf: (certificate: X509Certificate) => boolean;
  readonly place: Pick<Issuer, 'keyPlace' | 'privateKey' | 'keyUri'>;
}

function placedKey(key: ImportedIssuer['key']): PlacedKey {
  if (typeof key !== 'string' && 'uri' in key) {
    const place = { keyPlace: 'token', privateKey: null, keyUri: key.uri } as const;
    return { place, isKeyOf: ({ publicKey }) => key.isKeyOf(publicKey) };
  }
  const isEncrypted = typeof key === 'string' && key.includes('ENCRYPTED');
  require(!isEncrypted, 'the key is encrypted; decrypt it into a file with openssl pkcs8 -in KEY');
  const privateKey = parse('key', () => openKey(key));
  return {
    isKeyOf: (one) => one.checkPrivateKey(privateKey),
    place: { keyPlace: 'store', privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }) },
  };
}

type Chain = readonly [X509Certificate, ...X509Certificate[]];

/**
 * From the certificate of the key up to one that is signed by itself. Each link is verified. A file may have renewed and
 * cross-signed certificates beside each other: of several chains one counts that is valid now.
 */
function ordered(given: readonly X509Certificate[], isKeyOf: PlacedKey['isKeyOf'], now: number): Chain {
  const chains = given.filter(isKeyOf).flatMap((first) => chainsAbove([first], given));
  const [any] = chains;
  if (!any) throw unusable('the key is not that of a certificate in the chain');
  const whole = chains.filter((chain) => isSelfSigned(chain.at(-1)!));
  require(whole.length > 0, `the chain lacks the certificate that signed ${subjectOf(any.at(-1)!)}, up to a root`);
  const [first, ...others] = whole.filter(({ length }) => length > 1);
  require(first !==
    undefined, 'the certificate is a root itself; bring an authority below it, so that its key can be replaced');
  return [first, ...others].find((chain) => chain.every((one) => isCurrent(one, now))) ?? first;
}

/** Every way up from the last certificate of a chain, to a root or to where the file has no other. */
function chainsAbove(chain: Chain, given: readonly X509Certificate[]): Chain[] {
  const last = chain.at(-1)!;
  const parents = isSelfSigned(last)
    ? []
    : given.filter((one) => !chain.includes(one) && last.checkIssued(one) && last.verify(one.publicKey));
  return parents.length === 0 ? [chain] : parents.flatMap((parent) => chainsAbove([...chain, parent], given));
}

const isCurrent = ({ validFromDate, validToDate }: X509Certificate, now: number): boolean =>
  validFromDate.getTime() <= now && canStillSign({ notAfter: validToDate.getTime() }, now);

/** The signature of a root is not verified by anyone. */
function requireStrength(one: X509Certificate): void {
  const { modulusLength = MIN_RSA_BITS } = one.publicKey.asymmetricKeyDetails ?? {};
  require(modulusLength >= MIN_RSA_BITS, `the key of ${subjectOf(one)} has less than ${MIN_RSA_BITS} bits`);
  const isTrusted = !BROKEN_SIGNATURES.has(signatureAlgorithmOf(one.raw)) || isSelfSigned(one);
  require(isTrusted, `the certificate of ${subjectOf(one)} is signed with SHA-1 or MD5`);
}

/** Who can compute its private half can sign certificates. */
function requireSoundKey(issuing: X509Certificate): void {
  try {
    const key = readPublicKey(spkiOf(issuing.raw));
    requireStrongKey(key);
    requireCompositeModulus(key);
  } catch (error) {
    throw error instanceof Refusal ? unusable(`its key is weak: ${error.facts.reason?.en}`) : error;
  }
}

/**
 * Reads a certificate over the key and name of an issuer that another root has signed, with those above it. Returns DER, the
 * root last. Throws a Problem.
 */
export function readAlternateChain(issuer: Uint8Array, text: string, now: number): readonly Uint8Array[] {
  const own = readCertificate(issuer);
  const given = certificatesIn(text);
  require(given.length <= MAX_CHAIN, `the chain has more than ${MAX_CHAIN} certificates`);
  const first = given.find(
    ({ raw }) =>
      !raw.equals(issuer) &&
      Buffer.compare(spkiOf(raw), spkiOf(issuer)) === 0 &&
      Buffer.compare(readCertificate(raw).subject, own.subject) === 0,
  );
  if (!first) throw unusable('the chain has no other certificate over the key and the name of the issuer');
  const keyId = readCertificate(first.raw).keyId;
  const isFound = keyId === undefined || own.keyId === undefined || Buffer.compare(keyId, own.keyId) === 0;
  require(isFound, 'its subject key identifier differs: verifiers would not find it');
  const whole = chainsAbove([first], given).filter((chain) => isSelfSigned(chain.at(-1)!));
  const chain = whole.find((one) => one.every((each) => isCurrent(each, now))) ?? whole[0];
  require(chain !== undefined, `the chain lacks a certificate above ${subjectOf(first)}, up to a root`);
  require(chain.length > 1, 'the certificate is signed by itself, not by another root');
  for (const one of chain) {
    require(one.ca, 'all certificates must be those of authorities (basicConstraints CA:TRUE)');
    require(one.validFromDate.getTime() <= now, 'a certificate is not valid yet');
    require(canStillSign({ notAfter: one.validToDate.getTime() }, now), 'a certificate ends within a day');
    requireStrength(one);
  }
  return chain.map(({ raw }) => raw);
}

const openKey = (key: string | Uint8Array): KeyObject =>
  createPrivateKey(typeof key === 'string' ? key : { key: Buffer.from(key), format: 'der', type: 'pkcs8' });

/** Whether a chain, PEM, has the certificate of a key. */
export const hasCertificateOf = (chain: string, key: Uint8Array): boolean =>
  certificatesIn(chain).some((one) => one.checkPrivateKey(openKey(key)));

/** Throws a Problem. */
export const certificatesIn = (pem: string): X509Certificate[] =>
  parse('chain', () => (pem.match(CERTIFICATE) ?? []).map((one) => new X509Certificate(one)));

const isSelfSigned = (one: X509Certificate): boolean => one.checkIssued(one) && one.verify(one.publicKey);
const subjectOf = ({ raw }: X509Certificate): string => nameText(readCertificate(raw).subject);

/** What tells authorities apart. */
export function describe(certificate: Uint8Array) {
  const read = new X509Certificate(certificate);
  return {
    ...{ subject: subjectOf(read), key: keyText(read.publicKey) },
    ...{ notAfter: read.validToDate.getTime(), fingerprint: read.fingerprint256 },
    serial: read.serialNumber.toLowerCase(),
  };
}

const CURVE_TEXTS: Readonly<Record<string, string>> = { ...CURVES, secp521r1: 'p521' };

function keyText({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  const { namedCurve, modulusLength } = asymmetricKeyDetails ?? {};
  if (namedCurve !== undefined) return CURVE_TEXTS[namedCurve] ?? namedCurve;
  // node:crypto has no name for keys on SM2.
  const type: string = asymmetricKeyType ?? 'sm2';
  return modulusLength === undefined ? type : `${type} ${modulusLength}`;
}

/** Verifiers hold the authorities of a chain to the constraints above them, too. */
function requireNamesOfChain(chain: readonly [Uint8Array, ...Uint8Array[]]): void {
  for (const [index, one] of chain.entries()) {
    const { names } = limitsOf(chain.slice(index + 1));
    const isInside = permitsDirectoryName(names, canonicalParts(readCertificate(one).subject));
    require(isInside, 'the subject of an authority is outside of the name constraints above it');
  }
  require(responderProfile(chain, null).isPermitted, 'its name constraints permit no subject for its OCSP responder');
}

const KEY_USAGE = '2.5.29.15';
const CRL_SIGN = 0x02;

/** Without the extension any use is allowed; with it, verifiers refuse CRLs unless it has cRLSign. */
function requireCrlSign(usage: ReadExtension | undefined): void {
  const { content } = usage ? new DerReader(usage.value).primitive() : { content: undefined };
  const maySign = !content || ((content[1] ?? 0) & CRL_SIGN) !== 0;
  require(maySign, 'it may not sign CRLs (keyUsage cRLSign), so its certificates could not be revoked');
}

function knownKeyType({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): IssuerKeyType | undefined {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails ?? {};
  return asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS ? 'rsa' : CURVES[namedCurve];
}

/** Throws a Problem. */
export function keyTypeOf(key: KeyObject): IssuerKeyType {
  const keyType = knownKeyType(key);
  if (keyType) return keyType;
  throw unusable(`the key must be on P-256 or P-384, or RSA of at least ${MIN_RSA_BITS} bits`);
}

function parse<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw unusable(`the ${what} cannot be read as PEM`);
  }
}

function require(isTrue: boolean, otherwise: string): asserts isTrue {
  if (!isTrue) throw unusable(otherwise);
}

const unusable = (why: string): Problem =>
  new Problem(
    EXIT.refused,
    `this authority cannot be used: ${why}`,
    'Give a file with the issuing certificate and those above it up to the root, and the PKCS#8 key of the first.',
  );
