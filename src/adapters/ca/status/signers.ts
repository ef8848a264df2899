// The issuers as those who vouch for the status of what they signed: roots and retired ones too, as long as their keys
// are here. They sign lists and the certificates of OCSP responders, and nothing else comes through this door.
import { createHash, X509Certificate } from 'node:crypto';
import type { Issuer, IssuerKeyType } from '../../../domain/certificate/authority.ts';
import { CRL_SHARDS } from '../../../domain/revocation/revocation.ts';
import { readCertificate } from '../certificate-reader.ts';
import { openIssuerKey } from '../issuer-key.ts';
import { OWN_HASH } from '../issuers.ts';
import { keyBitsOf, keyIdOf } from '../profiles.ts';
import { SIGNATURE_ALGORITHMS, signedCertificate } from '../to-be-signed.ts';

export interface StatusSigner {
  readonly id: string;
  readonly keyType: IssuerKeyType;
  readonly isRoot: boolean;
  /** How many lists its revocations are spread over. */
  readonly shards: number;
  /** Its subject, DER. */
  readonly name: Uint8Array;
  /** The bits of its public key, as OCSP hashes them. */
  readonly keyBits: Uint8Array;
  readonly keyId: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  /** The algorithm inside what is signed is the one outside. */
  readonly algorithm: Uint8Array;
  /** SEQUENCE { what was signed, algorithm, signature }. */
  signed(toBeSigned: Uint8Array): Promise<Uint8Array>;
}

export type StatusSigners = ReadonlyMap<string, StatusSigner>;

/** Opened again only when the issuers are others than before. */
export function statusSigners(
  issuers: () => readonly Issuer[],
  keyTypes: readonly IssuerKeyType[],
): () => StatusSigners {
  let opened: { from: readonly Issuer[]; signers: StatusSigners } | undefined;
  return () => {
    const from = issuers();
    if (opened?.from !== from) opened = { from, signers: openSigners(from, keyTypes) };
    return opened.signers;
  };
}

function openSigners(issuers: readonly Issuer[], keyTypes: readonly IssuerKeyType[]): StatusSigners {
  const signers = new Map<string, StatusSigner>();
  for (const issuer of issuers) {
    const { id, privateKey, keyType } = issuer;
    if (privateKey && keyTypes.includes(keyType)) signers.set(id, openSigner(issuer, privateKey));
  }
  return signers;
}

function openSigner({ id, keyType, role, certificate }: Issuer, privateKey: Uint8Array): StatusSigner {
  const key = openIssuerKey(keyType, privateKey);
  const { subject, keyId } = readCertificate(certificate);
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const signHash = OWN_HASH[keyType];
  const algorithm = SIGNATURE_ALGORITHMS[keyType][signHash]!;
  return {
    id,
    keyType,
    isRoot: role === 'root',
    shards: role === 'root' ? 1 : CRL_SHARDS,
    name: subject,
    keyBits: keyBitsOf(key.spki),
    keyId: keyId ?? keyIdOf(key.spki),
    notBefore: validFromDate.getTime(),
    notAfter: validToDate.getTime(),
    algorithm,
    signed: async (bytes) => signedCertificate(bytes, algorithm, await key.sign(signHash, bytes)),
  };
}

export const digestOf = (algorithm: string, bytes: Uint8Array): Buffer => createHash(algorithm).update(bytes).digest();
