// Signs with the key of a root: a subordinate authority, or the root's list. Needs the key and the chain only, so that it
// runs on a machine without a network and without a store.
import { X509Certificate } from 'node:crypto';
import { canStillSign, type IssuerKeyType } from '../../../domain/certificate/authority.ts';
import { backdated, floorToSecond } from '../../../domain/certificate/validity.ts';
import type { CrlEntry } from '../../../domain/revocation/ports.ts';
import { DAY_MS } from '../../../kernel/durations.ts';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import { readCertificate } from '../certificate-reader.ts';
import { certificatesIn, keyTypeOf } from '../imported-issuer.ts';
import { type IssuerKey, openIssuerKey } from '../issuer-key.ts';
import { newSerial } from '../issuers.ts';
import { keyIdOf, subordinateExtensions } from '../profiles.ts';
import { crlToBeSigned, encodeEntry } from '../status/crl.ts';
import { DEFAULT_HASH, defaultAlgorithm, signedCertificate, toBeSigned } from '../to-be-signed.ts';
import type { readAuthorityRequest } from './authority-request.ts';
import { openEncryptedKey } from './encrypted-key.ts';

export interface RootSigner {
  readonly keyType: IssuerKeyType;
  readonly key: IssuerKey;
  /** DER. */
  readonly certificate: Uint8Array;
  /** DER; itself first. */
  readonly chain: readonly Uint8Array[];
}

/** The certificate of the key comes first in what is signed. Throws a Problem. */
export function openRootSigner(chainPem: string, keyPem: string, passphrase: string): RootSigner {
  const given = certificatesIn(chainPem);
  const privateKey = openEncryptedKey(keyPem, passphrase);
  const own = given.find((one) => one.checkPrivateKey(privateKey));
  if (!own?.ca) {
    throw new Problem(
      EXIT.refused,
      'the key is not that of an authority in the chain',
      'Give the chain and the key of one export: reseal ca root export',
    );
  }
  const keyType = keyTypeOf(privateKey);
  return {
    keyType,
    key: openIssuerKey(keyType, privateKey.export({ type: 'pkcs8', format: 'der' })),
    certificate: own.raw,
    chain: [own.raw, ...given.filter((one) => one !== own).map(({ raw }) => raw)],
  };
}

const YEAR_MS = 365 * DAY_MS;

interface Subordinate {
  readonly now: number;
  readonly years: number;
}

/** Signs an authority that issues leaf certificates only. Returns DER. */
export async function signSubordinate(
  { keyType, key, certificate }: RootSigner,
  { subject, spki, taken }: ReturnType<typeof readAuthorityRequest>,
  { now, years }: Subordinate,
): Promise<Uint8Array> {
  const { subject: issuer, keyId } = readCertificate(certificate);
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const notAfter = Math.min(validToDate.getTime(), floorToSecond(now + years * YEAR_MS) - 1000);
  if (!canStillSign({ notAfter }, now)) {
    throw new Problem(EXIT.refused, 'the root ends within a day', 'Use a root that lives longer, and check the clock.');
  }
  const algorithm = defaultAlgorithm(keyType);
  const bytes = toBeSigned({
    ...{ serial: newSerial(now), algorithm, issuer, subject, spki, notAfter },
    notBefore: backdated(now, { notBefore: validFromDate.getTime() }),
    extensions: subordinateExtensions(spki, keyId ?? keyIdOf(key.spki), taken),
  });
  return signedCertificate(bytes, algorithm, await key.sign(DEFAULT_HASH[keyType], bytes));
}

export interface RootList {
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly entries: readonly CrlEntry[];
}

/** Signs the complete list of a root. Returns DER. */
export async function signRootCrl(
  { keyType, key, certificate }: Pick<RootSigner, 'keyType' | 'key' | 'certificate'>,
  { entries, ...list }: RootList,
): Promise<Uint8Array> {
  const { subject: issuer, keyId } = readCertificate(certificate);
  const algorithm = defaultAlgorithm(keyType);
  const bytes = crlToBeSigned({
    ...{ ...list, algorithm, issuer, issuerKeyId: keyId ?? keyIdOf(key.spki), addresses: [] },
    entries: Buffer.concat(entries.map(encodeEntry)),
  });
  return signedCertificate(bytes, algorithm, await key.sign(DEFAULT_HASH[keyType], bytes));
}
