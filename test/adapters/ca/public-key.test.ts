import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { judgeSoundKeys } from '../../../campaigns/sound-keys.ts';
import { readCsr } from '../../../src/adapters/ca/csr.ts';
import { readPublicKey, requireCompositeModulus, requireStrongKey } from '../../../src/adapters/ca/public-key.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { csr, KEY_KINDS, type KeyPair, keyPair, pem, rsaFromPrimes, rsaSpki } from '../../support/csr.ts';
import {
  nextPrime,
  pairOf,
  power,
  primesUpTo,
  RFC_6979_KEY,
  randomNumber,
  randomPrime,
  rocaPrime,
} from '../../support/weak-keys.ts';
import { BAD_EXPONENTS, BAD_KEYS, BAD_POINTS, EVEN_MODULI, OFF_CURVE } from '../../support/wrong-csrs.ts';

const refused = (weakness: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Refusal, String(error));
  assert.equal(error.code, 'invalid_csr');
  assert.equal(error.facts.field, 'certificate.csr');
  assert.match(error.facts.reason?.en ?? '', weakness);
  assert.match(error.facts.reason?.en ?? '', /Make a new key: openssl genpkey /);
  assert.match(error.facts.reason?.zh ?? '', /请生成新密钥：openssl genpkey /);
  return true;
};
function require(spki: Uint8Array): void {
  const key = readPublicKey(spki);
  requireStrongKey(key);
  requireCompositeModulus(key);
}

/** A CSR with a valid signature on a weak key. */
function requireOfCsr(key: KeyPair): void {
  requireStrongKey(readCsr(pem(csr({ key }))).publicKey);
}

test('a key is read with its type, size and fingerprint, into its own copy of the bytes', () => {
  for (const kind of KEY_KINDS) {
    const { spki } = keyPair(kind);
    const given = Uint8Array.from(spki);
    const key = readPublicKey(given);
    given.fill(0);
    assert.deepEqual(key, {
      type: kind.startsWith('rsa') ? 'rsa' : kind,
      bits: Number(kind.replace(/\D+/, '')),
      spki,
      fingerprint: createHash('sha256').update(spki).digest('hex'),
    });
    requireStrongKey(key);
  }
});

test('keys of other types and encodings are rejected', () => {
  for (const { spki } of Object.values(BAD_KEYS)) {
    assert.throws(() => readPublicKey(spki!), refused(/must be RSA .* P-256, P-384, P-521 or SM2/));
  }
  for (const { spki } of Object.values(BAD_POINTS)) {
    assert.throws(() => readPublicKey(spki!), refused(/compressed, at infinity or of the wrong length/));
  }
  for (const { spki } of Object.values(OFF_CURVE)) {
    assert.throws(() => readPublicKey(spki!), refused(/is not on its curve.* openssl genpkey -algorithm EC /));
  }
  for (const { spki } of Object.values(EVEN_MODULI)) assert.throws(() => readPublicKey(spki!), refused(/is even/));
  for (const { spki } of Object.values(BAD_EXPONENTS)) assert.throws(() => readPublicKey(spki!), refused(/exponent/));
  for (const length of [0, 1, 20]) assert.throws(() => readPublicKey(randomBytes(length)), refused(/cannot be used/));
});

const half = randomPrime(1024);

test('an exponent below 65537 is refused, though such a key is read', () => {
  const modulus = half * randomPrime(1024);
  for (const exponent of [3n, 17n, 65535n]) {
    assert.throws(() => require(rsaSpki(modulus, exponent)), refused(/exponent .* at least 65537/));
    assert.equal(readPublicKey(rsaSpki(modulus, exponent)).type, 'rsa');
  }
  for (const exponent of [65537n, 65539n, (1n << 64n) - 1n]) require(rsaSpki(modulus, exponent));
});

test('a prime modulus is refused, at every size', () => {
  for (const bits of [1024, 2048]) {
    const prime = randomPrime(bits);
    requireStrongKey(readPublicKey(rsaSpki(prime)));
    assert.throws(() => require(rsaSpki(prime)), refused(/is a prime/));
  }
  // Neither too short for the test of primes nor too long.
  for (const bits of [256, 1022]) require(rsaSpki(randomPrime(bits / 2) * randomPrime(bits / 2)));
  require(rsaSpki(half ** 3n * randomPrime(1024) ** 5n));
});

test('published keys are refused, with their source', () => {
  for (const [d, x, y, source] of [
    [
      '5stb3YCqRa6clejBVHZnn_7JU8FoUecR50OTlYnGT8E',
      'QiVI-I-3gv-17KN0RFLHKh5Vj71vc75eSOkyMsxFxbE',
      'bEzRDEy41bihcTnpSILImSVymTQl9BQZq36QpCpJQnI',
      /RFC 9500, testECCP256/,
    ],
    [
      'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
      'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      /RFC 7515, A.3/,
    ],
  ] as const) {
    assert.throws(() => requireOfCsr(pairOf({ kty: 'EC', crv: 'P-256', d, x, y })), refused(source));
  }
  assert.throws(() => requireOfCsr(RFC_6979_KEY), refused(/RFC 6979, A.2.5/));
});

const SMALL_PRIMES = primesUpTo(751);

/** The first number from there, in steps, without small prime factors. */
function rough(from: bigint, step = 1n): bigint {
  let number = from;
  while (SMALL_PRIMES.some((prime) => number % prime === 0n)) number += step;
  return number;
}

test('a modulus with a small factor is refused, up to the last prime below 752', () => {
  const times = (factor: bigint) => rsaSpki(rough((3n << 2046n) / factor + randomNumber(200)) * factor);
  for (const factor of [3n, 167n, 743n, 751n]) {
    assert.throws(() => require(times(factor)), refused(new RegExp(`divisible by ${factor}:`)));
  }
  require(times(757n));
});

test('primes that Fermat’s method finds in 100 rounds are refused, however they were chosen', () => {
  assert.throws(() => require(rsaSpki(half * half)), refused(/close together/));
  assert.throws(() => requireOfCsr(rsaFromPrimes(half, nextPrime(half + 2n))), refused(/close together/));
  // (p − q)² is 8 √n times the number of rounds.
  const apart = (rounds: bigint) => nextPrime(half + squareRoot(8n * half * rounds));
  assert.throws(() => require(rsaSpki(half * apart(50n))), refused(/close together/));
  assert.throws(() => require(rsaSpki(half * apart(98n))), refused(/close together/));
  require(rsaSpki(half * apart(110n)));
});

function squareRoot(number: bigint): bigint {
  let root = 1n << 1024n;
  for (let next = root - 1n; next < root; next = (root + number / root) >> 1n) root = next;
  return root;
}

test('ROCA keys are recognised, at each of its sizes from 2048 bits', () => {
  const key = rsaFromPrimes(rocaPrime(1024, 701), rocaPrime(1024, 701));
  assert.throws(() => requireOfCsr(key), refused(/ROCA/));
  assert.throws(() => require(rsaSpki(rocaPrime(2048, 1427) * rocaPrime(2048, 1427))), refused(/ROCA/));
});

test('a modulus that looks like ROCA prime by prime, but with no common exponent, is not reported', () => {
  // The Chinese remainder theorem, with another exponent for each prime.
  let [rest, product] = [1n, 2n];
  for (const prime of primesUpTo(167).slice(1)) {
    const wanted = power(65537n, randomNumber(8), prime);
    while (rest % prime !== wanted) rest += product;
    product *= prime;
  }
  const modulus = rough((3n << 2046n) - ((3n << 2046n) % product) + rest, product);
  require(rsaSpki(modulus));
});

test('keys of every kind, as generators make them, are sound', async (t) => {
  assert.deepEqual(await judgeSoundKeys(10, (line) => t.diagnostic(line)), []);
});
