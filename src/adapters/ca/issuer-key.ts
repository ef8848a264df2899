// Issuer keys: creates, opens and signs with them.
import { createPrivateKey, createPublicKey, generateKeyPair, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { Issuer, IssuerKeyType } from '../../domain/certificate/authority.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { newSm2Key, openSm2PrivateKey, sm2Sign, sm2Spki } from '../sm2/sm2.ts';
import { readCertificate, spkiOf } from './certificate-reader.ts';
import { keyIdOf } from './profiles.ts';

export interface IssuerKey {
  readonly spki: Uint8Array;
  /** Throws NotSigned while the key cannot be used. Left out: it always can. */
  readonly requireReady?: () => void;
  sign(signHash: SignHash, bytes: Uint8Array): Promise<Uint8Array>;
}

const signInThreadPool = promisify(sign);
const generate = promisify(generateKeyPair);
/** 3072 bits are good beyond 2030. A responder lives for a month and signs all day. */
const RSA_BITS = { root: 4096, issuing: 3072, responder: 2048 } as const;

/** Returns PKCS#8, DER. */
export async function newIssuerKey(keyType: IssuerKeyType, role: keyof typeof RSA_BITS): Promise<Uint8Array> {
  if (keyType === 'sm2') return newSm2Key().pkcs8;
  const { privateKey } =
    keyType === 'rsa'
      ? await generate('rsa', { modulusLength: RSA_BITS[role] })
      : await generate('ec', { namedCurve: keyType === 'p256' ? 'P-256' : 'P-384' });
  return privateKey.export({ type: 'pkcs8', format: 'der' });
}

export function openIssuerKey(keyType: IssuerKeyType, pkcs8: Uint8Array): IssuerKey {
  if (keyType === 'sm2') {
    // node:crypto would sign ECDSA with it, not SM2.
    const key = openSm2PrivateKey(pkcs8);
    return { spki: sm2Spki(key.publicKey.point), sign: async (_signHash, bytes) => sm2Sign(key, bytes) };
  }
  const key = createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' });
  return {
    spki: createPublicKey(key).export({ type: 'spki', format: 'der' }),
    // An ECDSA signature costs less than a thread switch; an RSA signature would block the event loop.
    sign: async (signHash, bytes) =>
      keyType === 'rsa' ? await signInThreadPool(signHash, bytes, key) : sign(signHash, bytes, key),
  };
}

/** Opens keys in tokens. */
export interface TokenKeys {
  /** Contacts nothing yet. */
  open(keyUri: string, keyType: IssuerKeyType, spki: Uint8Array): IssuerKey;
}

/** Undefined if the key is not here. */
export function keyOfIssuer(
  { keyType, certificate, privateKey, keyUri }: Issuer,
  tokens: TokenKeys | undefined,
): IssuerKey | undefined {
  if (privateKey) return openIssuerKey(keyType, privateKey);
  return keyUri === undefined ? undefined : tokens?.open(keyUri, keyType, spkiOf(certificate));
}

/** The key, and the name and key identifier that everything signed with it must repeat. */
export const openIssuer = (issuer: Issuer, privateKey: Uint8Array) =>
  issuerWith(openIssuerKey(issuer.keyType, privateKey), issuer);

export function issuerWith(key: IssuerKey, { certificate }: Pick<Issuer, 'certificate'>) {
  const { subject: name, keyId } = readCertificate(certificate);
  // An imported authority may use another key identifier than ours.
  return { key, name, keyId: keyId ?? keyIdOf(key.spki) };
}
