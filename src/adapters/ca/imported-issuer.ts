// Reads an issuing authority that an operator imports: its certificate and key, and the root above it, whose key stays
// elsewhere. Rejects everything that would make verifiers refuse its certificates, before it signs the first one.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { canStillSign, type Issuer, type IssuerKeyType } from '../../domain/certificate/authority.ts';
import type { NewId } from '../../domain/ids.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { DerReader } from '../der/reader.ts';
import { type ReadExtension, readCertificate } from './certificate-reader.ts';

export interface ImportedIssuer {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly root: string;
}

const CURVES: Readonly<Record<string, IssuerKeyType>> = { prime256v1: 'p256', secp384r1: 'p384' };
const MIN_RSA_BITS = 2048;

export function readImportedIssuer(
  { certificate, key, root }: ImportedIssuer,
  now: number,
  newId: NewId,
): [root: Issuer, issuing: Issuer] {
  const issuing = parse('certificate', () => new X509Certificate(certificate));
  const above = parse('root', () => new X509Certificate(root));
  const privateKey = parse('key', () => createPrivateKey(key));
  require(issuing.ca && above.ca, 'both certificates must be those of authorities (basicConstraints CA:TRUE)');
  require(issuing.checkPrivateKey(privateKey), 'the key is not that of the certificate');
  require(above.verify(above.publicKey), 'the root is not signed by itself');
  require(issuing.checkIssued(above) && issuing.verify(above.publicKey), 'the certificate was not issued by the root');
  for (const one of [issuing, above]) {
    require(one.validFromDate.getTime() <= now, 'a certificate is not valid yet');
    require(canStillSign({ notAfter: one.validToDate.getTime() }, now), 'a certificate ends within a day');
  }
  const { extensions } = readCertificate(issuing.raw);
  requireUnconstrained(extensions, 0);
  requireCrlSign(extensions.get(KEY_USAGE));
  requireUnconstrained(readCertificate(above.raw).extensions, 1);
  const keyType = keyTypeOf(privateKey);
  const rootId = newId();
  const common = { keyType, state: 'active', createdAt: now } as const;
  return [
    { ...common, id: rootId, role: 'root', parentId: null, certificate: above.raw, privateKey: null },
    {
      ...common,
      id: newId(),
      role: 'issuing',
      parentId: rootId,
      certificate: issuing.raw,
      privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }),
    },
  ];
}

const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const CRL_SIGN = 0x02;
const ALLOWED = ['2.5.29.14', '2.5.29.15', '2.5.29.35', '2.5.29.31', '2.5.29.32', '1.3.6.1.5.5.7.1.1'];
const CONSTRAINTS: Readonly<Record<string, string>> = {
  '2.5.29.30': 'names',
  '2.5.29.37': 'purposes',
  '2.5.29.36': 'policies',
};

/** Rejects constraints that our certificates may violate. `below` is the number of authorities under it in the chain. */
function requireUnconstrained(extensions: ReadonlyMap<string, ReadExtension>, below: number): void {
  for (const [id, { isCritical, value }] of extensions) {
    const constrained = CONSTRAINTS[id];
    if (constrained) throw unusable(`a certificate limits the ${constrained} of what it signs; ours would be refused`);
    if (id === BASIC_CONSTRAINTS) {
      require(pathLengthIn(value) >= below, 'the root allows no authority below it (pathlen)');
    } else if (isCritical && !ALLOWED.includes(id)) {
      throw unusable(`a certificate has a critical extension that is not known here (${id})`);
    }
  }
}

/** Without the extension any use is allowed; with it, verifiers refuse CRLs unless it has cRLSign. */
function requireCrlSign(usage: ReadExtension | undefined): void {
  const { content } = usage ? new DerReader(usage.value).primitive() : { content: undefined };
  const maySign = !content || ((content[1] ?? 0) & CRL_SIGN) !== 0;
  require(maySign, 'it may not sign CRLs (keyUsage cRLSign), so its certificates could not be revoked');
}

function pathLengthIn(value: Uint8Array): number {
  const constraints = new DerReader(value).sequence();
  constraints.any();
  return constraints.isAtEnd ? Number.POSITIVE_INFINITY : (constraints.integer().at(-1) ?? 0);
}

function keyTypeOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): IssuerKeyType {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails ?? {};
  const keyType = asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS ? 'rsa' : CURVES[namedCurve];
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
    'Give an issuing certificate, its PKCS#8 key and the root that issued it.',
  );
