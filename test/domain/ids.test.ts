import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { idMaker } from '../../src/domain/ids.ts';

const FORM = /^[0-9a-hjkmnp-tv-z]{26}$/;

test('an id made later sorts after one made earlier, in any collation that knows digits and letters', () => {
  const moments = fc.integer({ min: 0, max: 2 ** 48 - 1 });
  fc.assert(
    fc.property(moments, moments, (one, other) => {
      const [earlier, later] = [Math.min(one, other), Math.max(one, other)];
      const [a, b] = [idMaker(() => earlier, randomBytes)(), idMaker(() => later, randomBytes)()];
      assert.match(a, FORM);
      if (earlier < later) {
        assert.ok(a < b);
        assert.ok(a.localeCompare(b, 'en') < 0);
      }
    }),
  );
});

test('every bit of the randomness is in the id', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 10, maxLength: 10 }), fc.nat(79), (bytes, bit) => {
      const flipped = Uint8Array.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      assert.notEqual(
        idMaker(
          () => 5,
          () => bytes,
        )(),
        idMaker(
          () => 5,
          () => flipped,
        )(),
      );
    }),
  );
});

test('the smallest and the largest id are what the form promises', () => {
  assert.equal(
    idMaker(
      () => 0,
      () => new Uint8Array(10),
    )(),
    '0'.repeat(26),
  );
  assert.equal(
    idMaker(
      () => 2 ** 48 - 1,
      () => new Uint8Array(10).fill(255),
    )(),
    `7${'z'.repeat(25)}`,
  );
});
