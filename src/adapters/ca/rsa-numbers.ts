// The numbers of an RSA key, and the name under which blocklists know its modulus.
import { hash } from 'node:crypto';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { DerReader } from '../der/reader.ts';

export interface RsaNumbers {
  readonly modulus: Uint8Array;
  readonly exponent: Uint8Array;
}

/** Of an RSAPublicKey (RFC 8017, A.1.1). Throws DerError for any other encoding. */
export function rsaNumbers(key: Uint8Array): RsaNumbers {
  const outer = new DerReader(key);
  const numbers = outer.sequence();
  outer.end();
  const parts = { modulus: numbers.positive(), exponent: numbers.positive() };
  numbers.end();
  return parts;
}

export function rsaNumbersOf(spki: Uint8Array): RsaNumbers {
  const info = new DerReader(spki).sequence();
  info.any();
  return rsaNumbers(info.bitString());
}

export const numberFrom = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

/**
 * As Debian's openssl-blacklist lists weak moduli: the last 80 bits of the SHA-1 of what `openssl rsa -modulus` prints.
 * Short and of SHA-1, but only a key that its holder chose to be refused could collide.
 */
export function modulusFingerprint(modulus: Uint8Array): string {
  const digits = Buffer.from(modulus).toString('hex').replace(/^0+/, '').toUpperCase();
  return hash('sha1', `Modulus=${digits}\n`).slice(-20);
}

/** The names of a key on the blocklist: that of the key, and for RSA that of its modulus. */
export const listedAs = ({
  type,
  spki,
  fingerprint,
}: Pick<PublicKey, 'type' | 'spki' | 'fingerprint'>): readonly [key: string, modulus: string | null] => [
  fingerprint,
  type === 'rsa' ? modulusFingerprint(rsaNumbersOf(spki).modulus) : null,
];
