import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomBytes } from '../../../src/adapters/seal/random.ts';

test('no bytes are returned twice, across blocks and at their edges', () => {
  const seen = new Set<string>();
  const sizes = [16, 10, 4_000, 16, 97];
  for (let round = 0; round < 400; round += 1) {
    const bytes = randomBytes(sizes[round % sizes.length]!);
    assert.equal(bytes.length, sizes[round % sizes.length]);
    // Sixteen equal bytes would come from the wiped part of a block.
    assert.doesNotMatch(Buffer.from(bytes).toString('latin1'), /(.)\1{15}/s);
    for (let at = 0; at + 10 <= bytes.length; at += 10)
      seen.add(Buffer.from(bytes.subarray(at, at + 10)).toString('hex'));
  }
  assert.equal(seen.size, 80 * (1 + 1 + 400 + 1 + 9));
});

test('returned bytes belong to the caller', () => {
  const [first, second] = [randomBytes(16), randomBytes(16)];
  const before = Buffer.from(second);
  first.fill(0);
  randomBytes(4_096);
  assert.deepEqual(Buffer.from(second), before);
});

test('returns more than a block', () => {
  const bytes = randomBytes(10_000);
  assert.equal(bytes.length, 10_000);
  assert.ok(new Set(bytes).size > 250);
});
