// Makes a key and its certificate signing request (PKCS#10, RFC 2986) in the browser. The private key leaves this module as
// PEM for the reader's disk, and is sent nowhere.
import { bits, concat, element, integer, octets, oid, sequence, set, small, tagged, utf8 } from './der.ts';
import { encodePem } from './pem.ts';

export const KEY_CHOICES = ['p256', 'rsa2048', 'rsa3072', 'rsa4096'] as const;
export type KeyChoice = (typeof KEY_CHOICES)[number];

interface KeyKind {
  readonly make: EcKeyGenParams | RsaHashedKeyGenParams;
  readonly sign: EcdsaParams | Algorithm;
  /** The AlgorithmIdentifier of the signature. */
  readonly algorithm: Uint8Array;
}

const rsa = (modulusLength: number): KeyKind => ({
  make: { name: 'RSASSA-PKCS1-v1_5', modulusLength, publicExponent: Uint8Array.of(1, 0, 1), hash: 'SHA-256' },
  sign: { name: 'RSASSA-PKCS1-v1_5' },
  algorithm: sequence(oid('1.2.840.113549.1.1.11'), Uint8Array.of(0x05, 0)),
});
const KINDS: Readonly<Record<KeyChoice, KeyKind>> = {
  p256: {
    make: { name: 'ECDSA', namedCurve: 'P-256' },
    sign: { name: 'ECDSA', hash: 'SHA-256' },
    algorithm: sequence(oid('1.2.840.10045.4.3.2')),
  },
  rsa2048: rsa(2048),
  rsa3072: rsa(3072),
  rsa4096: rsa(4096),
};

export interface MadeKey {
  readonly csr: string;
  /** PKCS#8, PEM. */
  readonly privateKey: string;
}

export async function makeCsr(choice: KeyChoice, names: readonly string[]): Promise<MadeKey> {
  const { make, sign, algorithm } = KINDS[choice];
  const pair = (await crypto.subtle.generateKey(make, true, ['sign', 'verify'])) as CryptoKeyPair;
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey));
  const info = sequence(small(0), subject(names[0]), publicKey, tagged(0, ...alternativeNames(names)));
  const signature = new Uint8Array(await crypto.subtle.sign(sign, pair.privateKey, info));
  const signed = bits(make.name === 'ECDSA' ? ecdsaSignature(signature) : signature);
  const privateKey = new Uint8Array(await crypto.subtle.exportKey('pkcs8', pair.privateKey));
  return {
    csr: encodePem('CERTIFICATE REQUEST', sequence(info, algorithm, signed)),
    privateKey: encodePem('PRIVATE KEY', privateKey),
  };
}

const subject = (commonName: string | undefined): Uint8Array =>
  commonName ? sequence(set(sequence(oid('2.5.4.3'), utf8(commonName)))) : sequence();

/** The extension request of RFC 2985. The service takes names from the request itself; tools that read the CSR see them too. */
function alternativeNames(names: readonly string[]): Uint8Array[] {
  const dns = names.filter((name) => /^[\x21-\x7e]+$/.test(name) && !/^[\d.]+$|:/.test(name));
  if (dns.length === 0) return [];
  const list = sequence(...dns.map((name) => element(0x82, new TextEncoder().encode(name))));
  const extension = sequence(oid('2.5.29.17'), octets(list));
  return [sequence(oid('1.2.840.113549.1.9.14'), set(sequence(extension)))];
}

/** WebCrypto gives r and s one after the other; X.509 wants a sequence of two integers. */
const ecdsaSignature = (raw: Uint8Array): Uint8Array =>
  concat([sequence(integer(raw.subarray(0, raw.length / 2)), integer(raw.subarray(raw.length / 2)))]);
