// Selects issuers for a key type and digest. Needs certificates only, so that the doctor can use it without private keys.
import { X509Certificate } from 'node:crypto';
import type { ChosenIssuer, IssuerKeyType, PublicIssuer } from '../../domain/certificate/authority.ts';
import { KEY_TYPES, type KeyType } from '../../domain/certificate/public-key.ts';
import { SIGN_HASHES, type SignHash } from '../../domain/certificate/sign-hash.ts';
import { SIGNATURE_ALGORITHMS } from './to-be-signed.ts';

interface Candidate extends ChosenIssuer {
  readonly keyType: IssuerKeyType;
}

/** EC keys prefer EC issuers; RSA is the fallback for digests that no curve signs with. */
const PREFERENCE: Readonly<Record<KeyType, readonly IssuerKeyType[]>> = {
  rsa: ['rsa'],
  p256: ['p256', 'p384', 'rsa'],
  p384: ['p384', 'p256', 'rsa'],
  p521: ['p384', 'p256', 'rsa'],
  sm2: ['sm2'],
};

/** Issuers that may sign new certificates, however soon they expire. */
export const candidatesAmong = (issuers: readonly PublicIssuer[]): Candidate[] =>
  issuers
    .filter(({ role, state, hasKey }) => role === 'issuing' && state === 'active' && hasKey)
    .map((issuer) => ({
      ...{ id: issuer.id, keyType: issuer.keyType },
      notBefore: new X509Certificate(issuer.certificate).validFromDate.getTime(),
      notAfter: chainNotAfter(issuer, issuers),
    }));

type Link = Pick<PublicIssuer, 'id' | 'parentId' | 'certificate'>;

/** The earliest notAfter in the issuer's chain. */
export function chainNotAfter({ certificate, parentId }: Link, issuers: readonly Link[]): number {
  const own = new X509Certificate(certificate).validToDate.getTime();
  const parent = issuers.find(({ id }) => id === parentId);
  return parent ? Math.min(own, chainNotAfter(parent, issuers)) : own;
}

/** Issuers that sign this key type with this digest, the preferred one first. */
export const candidatesFor = (all: readonly Candidate[], keyType: KeyType, signHash: SignHash): Candidate[] =>
  PREFERENCE[keyType]
    .filter((issuerKeyType) => SIGNATURE_ALGORITHMS[issuerKeyType][signHash])
    .flatMap((issuerKeyType) => all.filter((one) => one.keyType === issuerKeyType));

/** Every combination of key type and digest with at least one issuer. */
export const servedBy = (all: readonly Candidate[]) =>
  KEY_TYPES.flatMap((keyType) =>
    SIGN_HASHES.filter((signHash) => candidatesFor(all, keyType, signHash).length > 0).map((signHash) => ({
      keyType,
      signHash,
    })),
  );
