// Fermat's method, whose rounds go on modulo a sieve: it finds the factors in a hundred rounds, and never later.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { hasClosePrimes } from '../../../src/adapters/ca/weak-modulus.ts';

/** Rounded up, by bisection. */
function rootOf(number: bigint): bigint {
  let [low, high] = [0n, number];
  while (low < high) {
    const middle = (low + high) / 2n;
    if (middle * middle < number) low = middle + 1n;
    else high = middle;
  }
  return low;
}

test('factors are found in a hundred rounds of the method, whatever the size of the modulus', () => {
  for (const bytes of [8, 32, 128]) {
    const a = BigInt(`0x80${randomBytes(bytes).toString('hex')}`);
    for (let round = 0n; round < 105n; round += 1n) {
      // (a − b)(a + b), and the method begins at about a − b² / 2a.
      const b = rootOf(2n * a * round) + 1n;
      const modulus = a * a - b * b;
      const rounds = a - rootOf(modulus);
      assert.equal(hasClosePrimes(modulus), rounds < 100n, `${modulus} after ${rounds} rounds`);
    }
  }
});

test('a modulus of far primes is not taken for one of close primes', () => {
  for (let count = 0; count < 50; count += 1) {
    const [p, q] = [randomBytes(64), randomBytes(96)].map((one) => BigInt(`0x${one.toString('hex')}`) | 1n);
    assert.equal(hasClosePrimes((p ?? 1n) * (q ?? 1n)), false);
  }
});
