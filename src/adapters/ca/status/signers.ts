// Issuers as signers of CRLs and of OCSP responder certificates. Includes roots and retired issuers whose keys are here.
import { createHash, X509Certificate } from 'node:crypto';
import type { Issuer, IssuerKeyType } from '../../../domain/certificate/authority.ts';
import { CRL_SHARDS } from '../../../domain/revocation/revocation.ts';
import { type IssuerKey, issuerWith, keyOfIssuer, type TokenKeys } from '../issuer-key.ts';
import { chainOf } from '../issuer-selection.ts';
import { hasWholeCrl } from '../issuers.ts';
import { keyBitsOf } from '../profiles.ts';
import { type ResponderProfile, responderProfile } from '../responder-profile.ts';
import { DEFAULT_HASH, defaultAlgorithm, signedCertificate } from '../to-be-signed.ts';

export interface StatusSigner {
  readonly id: string;
  readonly keyType: IssuerKeyType;
  readonly isRoot: boolean;
  /** Number of CRLs. A single one lists everything. */
  readonly shards: number;
  /** Subject, DER. */
  readonly name: Uint8Array;
  readonly responder: ResponderProfile;
  /** The BIT STRING of its SPKI, as OCSP hashes it. */
  readonly keyBits: Uint8Array;
  readonly keyId: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  /** AlgorithmIdentifier, DER: the same inside and outside of what is signed. */
  readonly algorithm: Uint8Array;
  /** Returns SEQUENCE { toBeSigned, algorithm, signature }. */
  signed(toBeSigned: Uint8Array): Promise<Uint8Array>;
}

export type StatusSigners = ReadonlyMap<string, StatusSigner>;

/** Memoized reader: opens the keys again only when `issuers()` returns another array. */
export function statusSigners(
  issuers: () => readonly Issuer[],
  keyTypes: readonly IssuerKeyType[],
  tokens?: TokenKeys,
): () => StatusSigners {
  let opened: { from: readonly Issuer[]; signers: StatusSigners } | undefined;
  return () => {
    const from = issuers();
    if (opened?.from !== from) opened = { from, signers: openSigners(from, keyTypes, tokens) };
    return opened.signers;
  };
}

function openSigners(
  issuers: readonly Issuer[],
  keyTypes: readonly IssuerKeyType[],
  tokens: TokenKeys | undefined,
): StatusSigners {
  const signers = new Map<string, StatusSigner>();
  for (const issuer of issuers) {
    const key = keyTypes.includes(issuer.keyType) ? keyOfIssuer(issuer, tokens) : undefined;
    if (key) signers.set(issuer.id, openSigner(issuer, key, issuers));
  }
  return signers;
}

function openSigner(issuer: Issuer, key: IssuerKey, issuers: readonly Issuer[]): StatusSigner {
  const { id, keyType, role, certificate } = issuer;
  const { name, keyId } = issuerWith(key, issuer);
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const algorithm = defaultAlgorithm(keyType);
  const above = chainOf(issuer, issuers).slice(1);
  return {
    id,
    keyType,
    isRoot: role === 'root',
    shards: hasWholeCrl(issuer) ? 1 : CRL_SHARDS,
    name,
    responder: responderProfile([certificate, ...above.map((one) => one.certificate)], issuer.policy),
    keyBits: keyBitsOf(key.spki),
    keyId,
    notBefore: validFromDate.getTime(),
    notAfter: validToDate.getTime(),
    algorithm,
    signed: async (bytes) => signedCertificate(bytes, algorithm, await key.sign(DEFAULT_HASH[keyType], bytes)),
  };
}

export const digestOf = (algorithm: string, bytes: Uint8Array): Buffer => createHash(algorithm).update(bytes).digest();
