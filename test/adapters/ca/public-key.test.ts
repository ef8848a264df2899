import assert from 'node:assert/strict';
import { checkPrimeSync, createHash, generatePrimeSync, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { readCsr } from '../../../src/adapters/ca/csr.ts';
import { readPublicKey, requireStrongKey } from '../../../src/adapters/ca/public-key.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { csr, KEY_KINDS, type KeyPair, keyPair, newKeyPair, pem, rsaFromPrimes, rsaSpki } from '../../support/csr.ts';
import { BAD_EXPONENTS, BAD_KEYS } from '../../support/wrong-csrs.ts';

const randomNumber = (byteLength: number): bigint => BigInt(`0x${randomBytes(byteLength).toString('hex')}`);
const randomPrime = (bits: number): bigint => generatePrimeSync(bits, { bigint: true });

function nextPrime(from: bigint): bigint {
  let candidate = from | 1n;
  while (!checkPrimeSync(candidate)) candidate += 2n;
  return candidate;
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base % modulus];
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

const refused = (weakness: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Refusal, String(error));
  assert.equal(error.code, 'invalid_csr');
  assert.equal(error.facts.field, 'certificate.csr');
  assert.match(error.facts.reason?.en ?? '', weakness);
  assert.match(error.facts.reason?.en ?? '', /Make a new key: openssl genpkey /);
  assert.match(error.facts.reason?.zh ?? '', /请生成新密钥：openssl genpkey /);
  return true;
};
const require = (spki: Uint8Array) => requireStrongKey(readPublicKey(spki));

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
  for (const { spki } of Object.values(BAD_EXPONENTS)) assert.throws(() => readPublicKey(spki!), refused(/exponent/));
  for (const length of [0, 1, 20]) assert.throws(() => readPublicKey(randomBytes(length)), refused(/cannot be used/));
});

const half = randomPrime(1024);

test('RSA keys that are too short or of an unusual size are read, but are weak', () => {
  assert.throws(() => requireOfCsr(rsaFromPrimes(randomPrime(512), randomPrime(512))), refused(/this one has 1024/));
  assert.throws(() => require(rsaSpki(1n << 2046n)), refused(/this one has 2047/));
  assert.throws(() => require(rsaSpki((1n << 2048n) | 1n)), refused(/this one has 2049/));
  require(rsaSpki(half * randomPrime(1032)));
});

const primesUpTo = (last: number): bigint[] =>
  Array.from({ length: last - 1 }, (_, index) => BigInt(index + 2)).filter((one) => checkPrimeSync(one));
const SMALL_PRIMES = primesUpTo(751);

/** The first number from there, in steps, without small prime factors. */
function rough(from: bigint, step = 1n): bigint {
  let number = from;
  while (SMALL_PRIMES.some((prime) => number % prime === 0n)) number += step;
  return number;
}

test('a modulus with a small factor is refused, up to the last prime below 752', () => {
  const times = (factor: bigint) => rsaSpki(rough((3n << 2046n) / factor + randomNumber(200)) * factor);
  for (const factor of [2n, 3n, 167n, 743n, 751n]) {
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

/** A prime of the ROCA form: k · M + (65537^a mod M), M the product of the first primes. */
function rocaPrime(bits: number, lastFactor: number): bigint {
  const m = primesUpTo(lastFactor).reduce((product, one) => product * one, 1n);
  for (;;) {
    const first = (3n << BigInt(bits - 2)) / m + 1n;
    const k = first + (randomNumber(8) % ((1n << BigInt(bits)) / m - first));
    const candidate = k * m + power(65537n, randomNumber(32), m);
    if (checkPrimeSync(candidate)) return candidate;
  }
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

test('ordinary keys are never reported weak', () => {
  for (let count = 0; count < 3; count += 1) require(newKeyPair('rsa2048').spki);
  for (let count = 0; count < 20; count += 1) require(rsaSpki(randomPrime(1024) * half));
});
