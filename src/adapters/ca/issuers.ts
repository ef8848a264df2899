// Makes this service's own authorities: a root per key type on first start, and an issuing authority per purpose and key
// type when it is first needed. Safe when several instances do so at once: the store keeps one of each.
import { X509Certificate } from 'node:crypto';
import {
  type Issuer,
  type IssuerKeyType,
  type IssuerSlot,
  isOwnRoot,
  PURPOSES,
  type Purpose,
} from '../../domain/certificate/authority.ts';
import { backdated, floorToSecond } from '../../domain/certificate/validity.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import { CRL_SHARDS } from '../../domain/revocation/revocation.ts';
import type { Store } from '../../domain/store.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import { mapKey } from '../der/writer.ts';
import { randomBytes } from '../seal/random.ts';
import { readCertificate } from './certificate-reader.ts';
import { newIssuerKey, openIssuer, openIssuerKey } from './issuer-key.ts';
import { issuingExtensions, rootExtensions } from './profiles.ts';
import { DEFAULT_HASH, defaultAlgorithm, distinguishedName, signedCertificate, toBeSigned } from './to-be-signed.ts';

export interface AuthoritySettings {
  /** Country and organization in every issuer's subject. */
  readonly country: string;
  readonly organization: string;
  readonly rootYears: number;
  readonly issuingYears: number;
  /** Base URL of issuer certificates, CRLs and OCSP: plain HTTP, as verifiers require. */
  readonly pkiUrl: string;
}

const YEAR_MS = 365 * DAY_MS;
/** GmSSL refuses a certificate that is valid for longer. */
const MAX_SM2_YEARS = 10;

const LABEL: Readonly<Record<IssuerKeyType, string>> = { p256: 'P-256', p384: 'P-384', rsa: 'RSA', sm2: 'SM2' };
const TITLE: Readonly<Record<Purpose, string>> = {
  'public-tls': 'Public TLS',
  'private-tls': 'Private TLS',
  'client-auth': 'Client Authentication',
  'code-signing': 'Code Signing',
  'document-signing': 'Document Signing',
};

export const issuerCertificateUrl = (pkiUrl: string, issuerId: string): string => `${pkiUrl}/ca/${issuerId}.crt`;
export const crlUrl = (pkiUrl: string, issuerId: string, shard: number): string =>
  `${pkiUrl}/crl/${issuerId}/${shard}.crl`;

interface IssuerTools {
  readonly store: Pick<Store, 'issuers' | 'transaction'>;
  readonly now: Clock;
  readonly newId: NewId;
}

type OwnRoot = Issuer & { readonly privateKey: Uint8Array };

/** The root that issuers are made below. Undefined while its key is not here. */
export const ownRoot = (issuers: readonly Issuer[], keyType: IssuerKeyType): OwnRoot | undefined =>
  issuers.find((one): one is OwnRoot => one.role === 'root' && one.keyType === keyType && one.privateKey !== null);

/** Makes the roots that issuers may be needed of, and returns all issuers. */
export async function ensureRoots(
  { store, now, newId }: IssuerTools,
  settings: AuthoritySettings,
  keyTypes: readonly IssuerKeyType[],
): Promise<Issuer[]> {
  const existing = await store.issuers.list();
  // Nothing of ours beside an imported authority that has every purpose.
  const isNeeded = (keyType: IssuerKeyType) =>
    PURPOSES.some((purpose) => !existing.some((one) => one.keyType === keyType && one.purposes.includes(purpose)));
  // A root whose key was taken offline stays the only one of its key type.
  const hasRoot = (keyType: IssuerKeyType) => existing.some((one) => one.keyType === keyType && isOwnRoot(one));
  const missing = keyTypes.filter((keyType) => isNeeded(keyType) && !hasRoot(keyType));
  if (missing.length === 0) return existing;
  const made = await Promise.all(missing.map((keyType) => newRoot(keyType, settings, now(), newId())));
  for (const root of made) await store.issuers.claimRoot(root);
  return await store.issuers.list();
}

/** When an issuer that is made now would end. Undefined without a root to make it under. */
export function endOfNew(
  issuers: readonly Issuer[],
  keyType: IssuerKeyType,
  { issuingYears }: Pick<AuthoritySettings, 'issuingYears'>,
  now: number,
): number | undefined {
  const root = ownRoot(issuers, keyType);
  return root && Math.min(new X509Certificate(root.certificate).validToDate.getTime(), endAfter(issuingYears, now));
}

const endAfter = (years: number, now: number): number => floorToSecond(now + years * YEAR_MS) - 1000;

/** Makes the issuer of a slot, unless another instance has, or has taken the root's key away meanwhile. */
export async function makeIssuer(
  { store, now, newId }: IssuerTools,
  settings: AuthoritySettings,
  slot: IssuerSlot,
): Promise<void> {
  const issuers = await store.issuers.list();
  const root = ownRoot(issuers, slot.keyType);
  if (!root) return;
  const issuing = await newIssuing(slot, { root, issuers, settings, now: now(), id: newId() });
  await store.transaction((tx) => tx.issuers.claimSlot(issuing, slot));
}

async function newRoot(
  keyType: IssuerKeyType,
  { country, organization, rootYears }: AuthoritySettings,
  now: number,
  id: string,
): Promise<Issuer> {
  const privateKey = await newIssuerKey(keyType, 'root');
  const { spki, sign } = openIssuerKey(keyType, privateKey);
  const name = distinguishedName({ country, organization, commonName: `${organization} Root ${LABEL[keyType]}` });
  const algorithm = defaultAlgorithm(keyType);
  const bytes = toBeSigned({
    ...{ serial: newSerial(now), algorithm, issuer: name, subject: name, spki },
    notBefore: backdated(now, { notBefore: 0 }),
    notAfter: endAfter(keyType === 'sm2' ? Math.min(rootYears, MAX_SM2_YEARS) : rootYears, now),
    extensions: rootExtensions(spki),
  });
  const certificate = signedCertificate(bytes, algorithm, await sign(DEFAULT_HASH[keyType], bytes));
  return {
    ...{ id, role: 'root', keyType, purposes: [], policy: null, parentId: null },
    ...{ certificate, keyPlace: 'store', privateKey, createdAt: now },
  };
}

interface IssuingFor {
  readonly root: OwnRoot;
  /** All that exist. */
  readonly issuers: readonly Pick<Issuer, 'certificate'>[];
  readonly settings: AuthoritySettings;
  readonly now: number;
  readonly id: string;
}

/** Subject of the next authority of a slot, DER. Successors are numbered: one name stands for one key. */
export function nextName(
  { purpose, keyType }: IssuerSlot,
  { country, organization }: Pick<AuthoritySettings, 'country' | 'organization'>,
  issuers: readonly Pick<Issuer, 'certificate'>[],
): Uint8Array {
  const taken = new Set(issuers.map(({ certificate }) => mapKey(readCertificate(certificate).subject)));
  const title = `${organization} ${TITLE[purpose]} ${LABEL[keyType]}`;
  for (let generation = 1; ; generation += 1) {
    const commonName = generation === 1 ? title : `${title} G${generation}`;
    const name = distinguishedName({ country, organization, commonName });
    if (!taken.has(mapKey(name))) return name;
  }
}

/** Makes an authority for a slot, signed by the root. */
export async function newIssuing(
  { purpose, keyType }: IssuerSlot,
  { root, issuers, settings, now, id }: IssuingFor,
): Promise<Issuer> {
  const { issuingYears, pkiUrl } = settings;
  const privateKey = await newIssuerKey(keyType, 'issuing');
  const { spki } = openIssuerKey(keyType, privateKey);
  const above = openIssuer(root, root.privateKey);
  const algorithm = defaultAlgorithm(keyType);
  const { validFromDate, validToDate } = new X509Certificate(root.certificate);
  const bytes = toBeSigned({
    ...{ serial: newSerial(now), algorithm, issuer: above.name, spki },
    subject: nextName({ purpose, keyType }, settings, issuers),
    notBefore: backdated(now, { notBefore: validFromDate.getTime() }),
    notAfter: Math.min(validToDate.getTime(), endAfter(issuingYears, now)),
    extensions: issuingExtensions(spki, purpose, {
      keyId: above.keyId,
      certificate: issuerCertificateUrl(pkiUrl, root.id),
      crl: crlUrl(pkiUrl, root.id, 0),
    }),
  });
  const certificate = signedCertificate(bytes, algorithm, await above.key.sign(DEFAULT_HASH[keyType], bytes));
  return {
    ...{ id, role: 'issuing', keyType, purposes: [purpose], policy: null, parentId: root.id },
    ...{ certificate, keyPlace: 'store', privateKey, createdAt: now },
  };
}

const EXTENDED_KEY_USAGE = '2.5.29.37';

/**
 * Whether one CRL lists everything that an issuer has revoked. That of a root does. So do those of SM2, because GmSSL
 * refuses the critical extension that a shard must have; SM2 issuers from before purposes have shards.
 */
export const hasWholeCrl = ({
  role,
  keyType,
  certificate,
}: Pick<Issuer, 'role' | 'keyType' | 'certificate'>): boolean =>
  role === 'root' || (keyType === 'sm2' && readCertificate(certificate).extensions.has(EXTENDED_KEY_USAGE));

const SERIAL_BYTES = 16;
const TIME_BYTES = 6;

/**
 * The time, so that neighbours in time are neighbours in indexes, and 72 random bits: unguessable (the Baseline
 * Requirements ask for 64), positive, and always 16 bytes long. With `inFirstShard` 68 bits, so that one CRL has them all.
 */
export function newSerial(now: number, inFirstShard = false): Uint8Array {
  const bytes = Buffer.from(randomBytes(SERIAL_BYTES));
  bytes[0] = 0x40;
  bytes.writeUIntBE(Math.max(0, now) % 2 ** 48, 1, TIME_BYTES);
  const last = SERIAL_BYTES - 1;
  if (inFirstShard) bytes[last] = bytes[last]! - (bytes[last]! % CRL_SHARDS);
  return bytes;
}
