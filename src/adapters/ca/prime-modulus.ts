// Recognizes an RSA modulus that is a prime, whose private key anyone can compute.
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { DerReader } from '../der/reader.ts';
import { integer, octetString, oid, sequence } from '../der/writer.ts';

const DIFFIE_HELLMAN = oid('1.2.840.113549.1.3.1');
const BASE = 2;

/**
 * Fermat's test: 2^(n − 1) mod n is 1 for a prime, and for no product of two random primes. For odd n of 512 to 10 000
 * bits.
 *
 * node:crypto exponentiates only inside other functions. Its own test of primes makes 64 to 128 exponentiations for a
 * prime, which takes half a minute at 8192 bits and cannot be stopped. As the private half of a Diffie-Hellman key modulo
 * n, n − 1 gets 2^(n − 1) mod n as its public half, for one exponentiation: 3 ms at 2048 bits, 0.25 s at 8192. With
 * BigInt it takes 18 ms and 0.7 s.
 */
export function isPrimeModulus(modulus: Uint8Array): boolean {
  const algorithm = sequence([DIFFIE_HELLMAN, sequence([integer(modulus), integer(BASE)])]);
  // Odd, so nothing is borrowed.
  const oneLess = Uint8Array.from(modulus, (byte, index) => (index === modulus.length - 1 ? byte - 1 : byte));
  const key = Buffer.from(sequence([integer(0), algorithm, octetString(integer(oneLess))]));
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const info = new DerReader(
    new Uint8Array(createPublicKey(privateKey).export({ format: 'der', type: 'spki' })),
  ).sequence();
  info.any();
  const power = new DerReader(info.bitString()).integer();
  return power.length === 1 && power[0] === 1;
}
