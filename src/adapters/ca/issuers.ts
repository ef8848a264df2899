// How issuers come to be: a root and an issuing authority for each type of key, made on first start. Later starts
// find them, and so does a second instance that starts at the same moment: the store keeps one set.
import { ISSUER_KEY_TYPES, type Issuer, type IssuerKeyType } from '../../domain/certificate/authority.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { wholeSecond } from '../../domain/certificate/validity.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { randomBytes } from '../seal/random.ts';
import { newIssuerKey, openIssuerKey } from './issuer-key.ts';
import { issuingExtensions, keyIdOf, rootExtensions } from './profiles.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS, signedCertificate, toBeSigned } from './to-be-signed.ts';

export interface AuthorityNames {
  /** The organization in every issuer's name. */
  readonly organization: string;
  readonly rootYears: number;
  readonly issuingYears: number;
  /** Where issuer certificates and revocation lists are served: plain HTTP, as verifiers want it. */
  readonly pkiUrl: string;
}

const YEAR_MS = 365 * 86_400_000;
// A clock that is a little behind ours must not find an issuer that is not valid yet.
const HOUR_MS = 3_600_000;

const LABEL: Readonly<Record<IssuerKeyType, string>> = { p256: 'P-256', p384: 'P-384', rsa: 'RSA', sm2: 'SM2' };
/** The digest an issuer's own certificate is signed with. */
export const OWN_HASH: Readonly<Record<IssuerKeyType, SignHash>> = {
  p256: 'sha256',
  p384: 'sha384',
  rsa: 'sha256',
  sm2: 'sm3',
};

export const issuerCertificateUrl = (pkiUrl: string, issuerId: string): string => `${pkiUrl}/ca/${issuerId}.crt`;
export const crlUrl = (pkiUrl: string, issuerId: string, shard: number): string =>
  `${pkiUrl}/crl/${issuerId}/${shard}.crl`;

/** Makes what is missing, and returns all there are. */
export async function ensureIssuers(
  store: Pick<Store, 'issuers' | 'transaction'>,
  names: AuthorityNames,
  now: () => number,
  newId: NewId,
  keyTypes: readonly IssuerKeyType[] = ISSUER_KEY_TYPES,
): Promise<Issuer[]> {
  const existing = await store.issuers.list();
  const isServed = (keyType: IssuerKeyType) =>
    existing.some((one) => one.role === 'issuing' && one.state === 'active' && one.keyType === keyType);
  const missing = keyTypes.filter((keyType) => !isServed(keyType));
  if (missing.length === 0) return existing;
  const made = await Promise.all(missing.map((keyType) => makePair(keyType, names, now(), newId)));
  // A root without its issuing authority would never get one: both, or neither.
  for (const pair of made) await store.transaction(({ issuers }) => issuers.claim(pair));
  return await store.issuers.list();
}

/** A root and the issuing authority under it. */
async function makePair(
  keyType: IssuerKeyType,
  names: AuthorityNames,
  now: number,
  newId: NewId,
): Promise<[Issuer, Issuer]> {
  const [rootPkcs8, issuingPkcs8] = await Promise.all([
    newIssuerKey(keyType, 'root'),
    newIssuerKey(keyType, 'issuing'),
  ]);
  const [rootKey, issuingKey] = [openIssuerKey(keyType, rootPkcs8), openIssuerKey(keyType, issuingPkcs8)];
  const [rootId, issuingId] = [newId(), newId()];
  const nameOf = (role: string) =>
    distinguishedName({
      organization: names.organization,
      commonName: `${names.organization} ${role} ${LABEL[keyType]}`,
    });
  const rootName = nameOf('Root');
  const certify = async (subject: Uint8Array, spki: Uint8Array, years: number, extensions: Uint8Array[]) => {
    const algorithm = SIGNATURE_ALGORITHMS[keyType][OWN_HASH[keyType]]!;
    const bytes = toBeSigned({
      serial: newSerial(),
      algorithm,
      issuer: rootName,
      notBefore: wholeSecond(now - HOUR_MS),
      notAfter: wholeSecond(now + years * YEAR_MS) - 1000,
      subject,
      spki,
      extensions,
    });
    return signedCertificate(bytes, algorithm, await rootKey.sign(OWN_HASH[keyType], bytes));
  };
  const rootUrls = {
    certificate: issuerCertificateUrl(names.pkiUrl, rootId),
    crl: crlUrl(names.pkiUrl, rootId, 0),
  };
  const record = (id: string, role: Issuer['role'], privateKey: Uint8Array, certificate: Uint8Array): Issuer => ({
    id,
    role,
    keyType,
    state: 'active',
    parentId: role === 'root' ? null : rootId,
    certificate,
    privateKey,
    createdAt: now,
  });
  const root = await certify(rootName, rootKey.spki, names.rootYears, rootExtensions(rootKey.spki));
  const issuing = await certify(
    nameOf('Issuing'),
    issuingKey.spki,
    names.issuingYears,
    issuingExtensions(issuingKey.spki, keyIdOf(rootKey.spki), rootUrls),
  );
  return [record(rootId, 'root', rootPkcs8, root), record(issuingId, 'issuing', issuingPkcs8, issuing)];
}

/** 126 random bits: unguessable, positive, and of one length, so that they sort and print alike. */
export function newSerial(): Uint8Array {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes;
}
