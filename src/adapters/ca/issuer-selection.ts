// Which issuer certifies which key. Certificates are all it takes to decide that, so the doctor asks here too, without
// any private key.
import { X509Certificate } from 'node:crypto';
import type { ChosenIssuer, IssuerKeyType, PublicIssuer } from '../../domain/certificate/authority.ts';
import { KEY_TYPES, type KeyType } from '../../domain/certificate/public-key.ts';
import { SIGN_HASHES, type SignHash } from '../../domain/certificate/sign-hash.ts';
import { SIGNATURE_ALGORITHMS } from './to-be-signed.ts';

export interface Candidate extends ChosenIssuer {
  readonly keyType: IssuerKeyType;
}

/** Elliptic keys are best certified by elliptic issuers; where the digest has none, RSA serves everyone. */
const PREFERENCE: Readonly<Record<KeyType, readonly IssuerKeyType[]>> = {
  rsa: ['rsa'],
  p256: ['p256', 'p384', 'rsa'],
  p384: ['p384', 'p256', 'rsa'],
  p521: ['p384', 'p256', 'rsa'],
  sm2: ['sm2'],
};

/** Those that may sign something new, whether or not their end is near. */
export const candidatesAmong = (issuers: readonly PublicIssuer[]): Candidate[] =>
  issuers
    .filter(({ role, state, hasKey }) => role === 'issuing' && state === 'active' && hasKey)
    .map((issuer) => ({ id: issuer.id, keyType: issuer.keyType, notAfter: endOf(issuer, issuers) }));

type Link = Pick<PublicIssuer, 'id' | 'parentId' | 'certificate'>;

/** The last valid moment: a chain ends with whichever of its certificates ends first. */
export function endOf({ certificate, parentId }: Link, issuers: readonly Link[]): number {
  const own = new X509Certificate(certificate).validToDate.getTime();
  const parent = issuers.find(({ id }) => id === parentId);
  return parent ? Math.min(own, endOf(parent, issuers)) : own;
}

/** Those that sign such a key with such a digest, the preferred one first. */
export const candidatesFor = (all: readonly Candidate[], keyType: KeyType, signHash: SignHash): Candidate[] =>
  PREFERENCE[keyType]
    .filter((issuerKeyType) => SIGNATURE_ALGORITHMS[issuerKeyType][signHash])
    .flatMap((issuerKeyType) => all.filter((one) => one.keyType === issuerKeyType));

/** Every combination of key and digest that somebody signs. */
export const servedBy = (all: readonly Candidate[]) =>
  KEY_TYPES.flatMap((keyType) =>
    SIGN_HASHES.filter((signHash) => candidatesFor(all, keyType, signHash).length > 0).map((signHash) => ({
      keyType,
      signHash,
    })),
  );
