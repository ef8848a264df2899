// Creates a root and an issuing authority for each key type on first start. Safe when several instances start at once:
// the store keeps one set.

import { ISSUER_KEY_TYPES, type Issuer, type IssuerKeyType } from '../../domain/certificate/authority.ts';
import { floorToSecond } from '../../domain/certificate/validity.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { DAY_MS, HOUR_MS } from '../../kernel/durations.ts';
import { randomBytes } from '../seal/random.ts';
import { newIssuerKey, openIssuerKey } from './issuer-key.ts';
import { issuingExtensions, keyIdOf, rootExtensions } from './profiles.ts';
import { DEFAULT_HASH, defaultAlgorithm, distinguishedName, signedCertificate, toBeSigned } from './to-be-signed.ts';

interface AuthoritySettings {
  /** The organization in every issuer's subject. */
  readonly organization: string;
  readonly rootYears: number;
  readonly issuingYears: number;
  /** Base URL of issuer certificates, CRLs and OCSP: plain HTTP, as verifiers require. */
  readonly pkiUrl: string;
}

const YEAR_MS = 365 * DAY_MS;
/** Backdates notBefore for verifiers whose clocks are behind. */
const BACKDATE_MS = HOUR_MS;

const LABEL: Readonly<Record<IssuerKeyType, string>> = { p256: 'P-256', p384: 'P-384', rsa: 'RSA', sm2: 'SM2' };

export const issuerCertificateUrl = (pkiUrl: string, issuerId: string): string => `${pkiUrl}/ca/${issuerId}.crt`;
export const crlUrl = (pkiUrl: string, issuerId: string, shard: number): string =>
  `${pkiUrl}/crl/${issuerId}/${shard}.crl`;

interface IssuerTools {
  readonly store: Pick<Store, 'issuers' | 'transaction'>;
  readonly now: Clock;
  readonly newId: NewId;
}

/** Creates the issuers that are missing, and returns all of them. */
export async function ensureIssuers(
  { store, now, newId }: IssuerTools,
  settings: AuthoritySettings,
  keyTypes: readonly IssuerKeyType[] = ISSUER_KEY_TYPES,
): Promise<Issuer[]> {
  const existing = await store.issuers.list();
  const isServed = (keyType: IssuerKeyType) =>
    existing.some((one) => one.role === 'issuing' && one.state === 'active' && one.keyType === keyType);
  const missing = keyTypes.filter((keyType) => !isServed(keyType));
  if (missing.length === 0) return existing;
  const created = await Promise.all(missing.map((keyType) => createPair(keyType, settings, now(), newId)));
  // Both in one transaction: a root without its issuing authority would never get one.
  for (const pair of created) await store.transaction(({ issuers }) => issuers.claim(pair));
  return await store.issuers.list();
}

async function createPair(
  keyType: IssuerKeyType,
  settings: AuthoritySettings,
  now: number,
  newId: NewId,
): Promise<[root: Issuer, issuing: Issuer]> {
  const [rootPkcs8, issuingPkcs8] = await Promise.all([
    newIssuerKey(keyType, 'root'),
    newIssuerKey(keyType, 'issuing'),
  ]);
  const [rootKey, issuingKey] = [openIssuerKey(keyType, rootPkcs8), openIssuerKey(keyType, issuingPkcs8)];
  const [rootId, issuingId] = [newId(), newId()];
  const nameOf = (role: string) =>
    distinguishedName({
      organization: settings.organization,
      commonName: `${settings.organization} ${role} ${LABEL[keyType]}`,
    });
  const rootName = nameOf('Root');
  const certify = async (subject: Uint8Array, spki: Uint8Array, years: number, extensions: Uint8Array[]) => {
    const algorithm = defaultAlgorithm(keyType);
    const bytes = toBeSigned({
      serial: newSerial(now),
      algorithm,
      issuer: rootName,
      notBefore: floorToSecond(now - BACKDATE_MS),
      notAfter: floorToSecond(now + years * YEAR_MS) - 1000,
      subject,
      spki,
      extensions,
    });
    return signedCertificate(bytes, algorithm, await rootKey.sign(DEFAULT_HASH[keyType], bytes));
  };
  const rootUrls = {
    certificate: issuerCertificateUrl(settings.pkiUrl, rootId),
    crl: crlUrl(settings.pkiUrl, rootId, 0),
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
  const root = await certify(rootName, rootKey.spki, settings.rootYears, rootExtensions(rootKey.spki));
  const issuing = await certify(
    nameOf('Issuing'),
    issuingKey.spki,
    settings.issuingYears,
    issuingExtensions(issuingKey.spki, keyIdOf(rootKey.spki), rootUrls),
  );
  return [record(rootId, 'root', rootPkcs8, root), record(issuingId, 'issuing', issuingPkcs8, issuing)];
}

const SERIAL_BYTES = 16;
const TIME_BYTES = 6;

/**
 * The time, so that neighbours in time are neighbours in indexes, and 72 random bits: unguessable (the Baseline
 * Requirements ask for 64), positive, and always 16 bytes long.
 */
export function newSerial(now: number): Uint8Array {
  const bytes = Buffer.from(randomBytes(SERIAL_BYTES));
  bytes[0] = 0x40;
  bytes.writeUIntBE(Math.max(0, now) % 2 ** 48, 1, TIME_BYTES);
  return bytes;
}
