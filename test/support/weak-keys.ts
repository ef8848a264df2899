// Weak keys, made by plain arithmetic, each with a CSR that its private half has signed where there is one.
import {
  checkPrimeSync,
  createHash,
  createPrivateKey,
  createPublicKey,
  generatePrimeSync,
  randomBytes,
} from 'node:crypto';
import { bitString, integer, octetString, oid, sequence } from '../../src/adapters/der/writer.ts';
import { KEY_ALGORITHM as SM2_KEY } from '../../src/adapters/sm2/curve.ts';
import { openSm2PrivateKey, sm2Sign, sm2Spki } from '../../src/adapters/sm2/sm2.ts';
import { csr, ED25519, inverse, type KeyPair, keyPair, pem, rsaFromPrimes, rsaSpki, spkiOf } from './csr.ts';

export const randomNumber = (byteLength: number): bigint => BigInt(`0x${randomBytes(byteLength).toString('hex')}`);
export const randomPrime = (bits: number): bigint => generatePrimeSync(bits, { bigint: true });

export function nextPrime(from: bigint): bigint {
  let candidate = from | 1n;
  while (!checkPrimeSync(candidate)) candidate += 2n;
  return candidate;
}

export function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base % modulus];
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

export const primesUpTo = (last: number): bigint[] =>
  Array.from({ length: last - 1 }, (_, index) => BigInt(index + 2)).filter((one) => checkPrimeSync(one));

/** A prime of the ROCA form: k · M + (65537^a mod M), M the product of the first primes. */
export function rocaPrime(bits: number, lastFactor: number): bigint {
  const m = primesUpTo(lastFactor).reduce((product, one) => product * one, 1n);
  for (;;) {
    const first = (3n << BigInt(bits - 2)) / m + 1n;
    const k = first + (randomNumber(8) % ((1n << BigInt(bits)) / m - first));
    const candidate = k * m + power(65537n, randomNumber(32), m);
    if (checkPrimeSync(candidate)) return candidate;
  }
}

/** A prime that is no multiple of 3 plus 1, so that the exponent 3 has an inverse. */
function primeFor3(bits: number): bigint {
  for (;;) {
    const prime = randomPrime(bits);
    if (prime % 3n === 2n) return prime;
  }
}

const DIGEST_INFO = Buffer.from('3031300d060960864801650304020105000420', 'hex');

/** Signs with sha256WithRSAEncryption (RFC 8017, 8.2.1) by a modulus that is a prime: no library does. */
function signedByPrime(prime: bigint): (signed: Uint8Array) => Uint8Array {
  const d = inverse(65537n, prime - 1n);
  const length = prime.toString(16).length / 2;
  return (signed) => {
    const digest = Buffer.concat([DIGEST_INFO, createHash('sha256').update(signed).digest()]);
    const filler = Buffer.alloc(length - digest.length - 3, 0xff);
    const block = Buffer.concat([Buffer.from([0, 1]), filler, Buffer.from([0]), digest]);
    const signature = power(BigInt(`0x${block.toString('hex')}`), d, prime);
    return Buffer.from(signature.toString(16).padStart(2 * length, '0'), 'hex');
  };
}

export const pairOf = (jwk: Record<string, string>): KeyPair => {
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
  return {
    privateKey,
    spki: new Uint8Array(createPublicKey(privateKey).export({ format: 'der', type: 'spki' })),
  };
};

/** The private key of RFC 6979, A.2.5. */
export const RFC_6979_KEY = pairOf({
  ...{ kty: 'EC', crv: 'P-256', d: 'ya-p2EW6dRZrXCFXZ7HWk05Qw9s26JsSe4piKxIPZyE' },
  ...{ x: 'YP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Y', y: 'eQP-EAi4vJmkGunpVii8ZPLxsgwtfp9Rd6PClNRGIpk' },
});

export interface WeakKey {
  readonly csr: string;
  readonly reason: { readonly en: RegExp; readonly zh: RegExp };
}

const of = (key: KeyPair, en: RegExp, zh: RegExp): WeakKey => ({ csr: pem(csr({ key })), reason: { en, zh } });

/** Of RSA and P-256. One of each is made for a test file: it takes a second. */
export function weakKeys(): Readonly<Record<string, WeakKey>> {
  const [half, prime] = [randomPrime(1024), randomPrime(2048)];
  const offCurve = Uint8Array.from(keyPair('p256').spki);
  offCurve[offCurve.length - 1]! ^= 1;
  const even = rsaSpki(2n * randomPrime(2047));
  const primeCsr = csr({ key: keyPair('rsa2048'), spki: rsaSpki(prime), signed: signedByPrime(prime) });
  return {
    ROCA: of(rsaFromPrimes(rocaPrime(1024, 701), rocaPrime(1024, 701)), /ROCA/, /ROCA/),
    'close primes': of(rsaFromPrimes(half, nextPrime(half + (1n << 100n))), /so close together/, /素数过于接近/),
    'a small factor': of(rsaFromPrimes(751n, randomPrime(2038)), /divisible by 751/, /可被 751 整除/),
    'the exponent 3': of(
      rsaFromPrimes(primeFor3(1024), primeFor3(1024), 3n),
      /exponent .* at least 65537/,
      /不小于 65537/,
    ),
    'a prime modulus': { csr: pem(primeCsr), reason: { en: /modulus of the RSA key is a prime/, zh: /模数为素数/ } },
    'an even modulus': {
      csr: pem(csr({ key: keyPair('rsa2048'), spki: even })),
      reason: { en: /modulus of the RSA key is even/, zh: /模数为偶数/ },
    },
    'a point off the curve': {
      csr: pem(csr({ spki: offCurve })),
      reason: { en: /not on its curve/, zh: /不在其曲线上/ },
    },
    'a published key': of(RFC_6979_KEY, /published example \(RFC 6979/, /公开的示例密钥/),
  };
}

/** The example of GM/T 0003.5, and points that are none. */
export function weakSm2Keys(): Readonly<Record<string, WeakKey>> {
  const scalar = Buffer.from('3945208f7b2144b13f36e38ac6d39f95889393692860b51a42fb81ef4df7c5b8', 'hex');
  const ecKey = octetString(sequence([integer(1), octetString(scalar)]));
  const key = openSm2PrivateKey(sequence([integer(0), SM2_KEY, ecKey]));
  const { point } = key.publicKey;
  const request = (spki: Uint8Array) => {
    const info = sequence([integer(0), sequence([]), spki, Uint8Array.from([0xa0, 0])]);
    return pem(sequence([info, sequence([oid('1.2.156.10197.1.501')]), bitString(sm2Sign(key, info))]));
  };
  const off = Uint8Array.from(point, (byte, index) => (index === 64 ? byte ^ 1 : byte));
  const compressed = Uint8Array.from([2 + (point[64]! & 1), ...point.subarray(1, 33)]);
  return {
    'a published key': { csr: request(sm2Spki(point)), reason: { en: /GM\/T 0003.5/, zh: /公开的示例密钥/ } },
    'a point off the curve': {
      csr: request(spkiOf(SM2_KEY, off)),
      reason: { en: /not on its curve.*:SM2/, zh: /不在其曲线上/ },
    },
    'a compressed point': { csr: request(spkiOf(SM2_KEY, compressed)), reason: { en: /compressed/, zh: /压缩形式/ } },
  };
}

/** Bytes that node:crypto takes for keys. None of them has made the signature: the key is judged first. */
export function weakEd25519Keys(): Readonly<Record<string, WeakKey>> {
  const request = (point: Uint8Array) => pem(csr({ key: keyPair('ed25519'), spki: spkiOf(ED25519, point) }));
  const point = (...bytes: number[]) => Uint8Array.from({ length: 32 }, (_, index) => bytes[index] ?? 0);
  const ofOrder8 = Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex');
  const smallOrder = { en: /small order.*-algorithm ED25519/, zh: /低阶点/ };
  const form = { en: /not 32 bytes with y below 2\^255 - 19/, zh: /规范编码/ };
  return {
    'the neutral point': { csr: request(point(1)), reason: smallOrder },
    'a point of order 4': { csr: request(point()), reason: smallOrder },
    'a point of order 8': { csr: request(ofOrder8), reason: smallOrder },
    'its negative': {
      csr: request(ofOrder8.map((byte, index) => byte | (index === 31 ? 0x80 : 0))),
      reason: smallOrder,
    },
    'a second encoding': {
      csr: request(Uint8Array.from({ length: 32 }, (_, index) => (index === 0 ? 0xf0 : index === 31 ? 0x7f : 0xff))),
      reason: form,
    },
    'a short point': { csr: request(point(9).subarray(1)), reason: form },
    'no point at all': { csr: request(point(2)), reason: { en: /not on its curve/, zh: /不在其曲线上/ } },
  };
}
