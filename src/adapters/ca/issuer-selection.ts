// Selects issuers for a purpose, key type and digest. Needs certificates only, so that the doctor can use it without
// private keys.
import { X509Certificate } from 'node:crypto';
import {
  type ChosenIssuer,
  type IssuerKeyType,
  isKeyHere,
  type PublicIssuer,
  type Purpose,
} from '../../domain/certificate/authority.ts';
import { KEY_TYPES, type KeyType } from '../../domain/certificate/public-key.ts';
import { SIGN_HASHES, type SignHash } from '../../domain/certificate/sign-hash.ts';
import { limitsOf } from './chain-limits.ts';
import { SIGNATURE_ALGORITHMS } from './to-be-signed.ts';

export interface Candidate extends ChosenIssuer {
  readonly keyType: IssuerKeyType;
  readonly purposes: readonly Purpose[];
  readonly isImported: boolean;
}

/** EC keys prefer EC issuers; RSA is the fallback for digests that no curve signs with. */
const PREFERENCE: Readonly<Record<KeyType, readonly IssuerKeyType[]>> = {
  rsa: ['rsa'],
  p256: ['p256', 'p384', 'rsa'],
  p384: ['p384', 'p256', 'rsa'],
  p521: ['p384', 'p256', 'rsa'],
  ed25519: ['p256', 'p384', 'rsa'],
  sm2: ['sm2'],
};

/** Issuers that may sign new certificates, however soon they expire. */
export const candidatesAmong = (issuers: readonly PublicIssuer[]): Candidate[] =>
  issuers
    .filter((one) => one.purposes.length > 0 && isKeyHere(one))
    .map((issuer) => {
      const chain = chainOf(issuer, issuers);
      return {
        ...{ id: issuer.id, keyType: issuer.keyType, purposes: issuer.purposes },
        notBefore: new X509Certificate(issuer.certificate).validFromDate.getTime(),
        notAfter: chainNotAfter(issuer, issuers),
        isImported: chain.at(-1)?.keyPlace === 'elsewhere',
        nameConstraints: limitsOf(chain.map(({ certificate }) => certificate)).names,
      };
    });

type Link = Pick<PublicIssuer, 'id' | 'parentId' | 'certificate'>;

/** The issuer and those above it, the root last. */
export function chainOf<One extends Link>(issuer: One, issuers: readonly One[]): One[] {
  const parent = issuers.find(({ id }) => id === issuer.parentId);
  return parent ? [issuer, ...chainOf(parent, issuers)] : [issuer];
}

/** The earliest notAfter in the issuer's chain. */
export const chainNotAfter = (issuer: Link, issuers: readonly Link[]): number =>
  Math.min(
    ...chainOf(issuer, issuers).map(({ certificate }) => new X509Certificate(certificate).validToDate.getTime()),
  );

/** Key types of issuers that sign this key type with this digest, the preferred one first. */
const preferred = (keyType: KeyType, signHash: SignHash): IssuerKeyType[] =>
  PREFERENCE[keyType].filter((issuerKeyType) => SIGNATURE_ALGORITHMS[issuerKeyType][signHash]);

export interface Wanted {
  readonly purpose: Purpose;
  readonly keyType: KeyType;
  readonly signHash: SignHash;
}

/** The preferred one first. An imported authority is never passed over for one of our own. */
export function candidatesFor(all: readonly Candidate[], { purpose, keyType, signHash }: Wanted): Candidate[] {
  const able = preferred(keyType, signHash).flatMap((issuerKeyType) =>
    all.filter((one) => one.keyType === issuerKeyType && one.purposes.includes(purpose)),
  );
  const imported = able.filter(({ isImported }) => isImported);
  return imported.length > 0 ? imported : able;
}

export interface Selection {
  /** As `candidatesFor` returns them. */
  readonly able: readonly Candidate[];
  /** The key type of the issuer to make, if the preferred one is missing and no imported one stands in for it. */
  readonly missing: IssuerKeyType | undefined;
}

/** Selects among the same candidates again and again; what is wanted has few values, so each is looked for once. */
export function selectionAmong(all: readonly Candidate[]): (wanted: Wanted) => Selection {
  const known = new Map<string, Selection>();
  return (wanted) => {
    const key = `${wanted.purpose} ${wanted.keyType} ${wanted.signHash}`;
    const selection = known.get(key) ?? select(all, wanted);
    known.set(key, selection);
    return selection;
  };
}

function select(all: readonly Candidate[], wanted: Wanted): Selection {
  const [first] = preferred(wanted.keyType, wanted.signHash);
  const able = candidatesFor(all, wanted);
  return { able, missing: able.some(({ isImported, keyType }) => isImported || keyType === first) ? undefined : first };
}

/** Every combination of key type and digest that `isServed`. */
export const combinations = (isServed: (keyType: KeyType, signHash: SignHash) => boolean) =>
  KEY_TYPES.flatMap((keyType) =>
    SIGN_HASHES.filter((signHash) => isServed(keyType, signHash)).map((signHash) => ({ keyType, signHash })),
  );
