import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AccountId, type CertificateId, idMaker, type OrderId } from '../../src/domain/ids.ts';

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

test('ids strictly increase, even within a millisecond or if the clock goes back', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 2, maxLength: 200 }), (steps) => {
      let time = 1_000;
      const make = idMaker(() => time, randomBytes);
      const ids = steps.map((step) => {
        time += step;
        return make();
      });
      for (const [index, id] of ids.entries()) {
        assert.match(id, FORM);
        if (index > 0) assert.ok(id > ids[index - 1]!, `${ids[index - 1]} then ${id}`);
      }
    }),
  );
});

test('an id does not reveal the next one, even within a millisecond', () => {
  const make = () => {
    const maker = idMaker(() => 5, randomBytes);
    return [maker(), maker()];
  };
  const steps = new Set(Array.from({ length: 100 }, () => make()[1]?.slice(-8)));
  assert.equal(steps.size, 100);
});

test('a clock before 1970 still yields valid ids', () => {
  assert.match(idMaker(() => -1, randomBytes)(), FORM);
});

test('every bit of the randomness is in the id', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 10, maxLength: 10 }), fc.nat(79), (bytes, bit) => {
      // The top bit is reserved for the steps within a millisecond.
      fc.pre(bit !== 7);
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

test('the smallest and the largest id match the format', () => {
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
    `7zzzzzzzzzf${'z'.repeat(15)}`,
  );
});

test('an id of one kind does not compile in the place of another', () => {
  const find = (accountId: AccountId, id: OrderId): string => `${accountId}/${id}`;
  const [account, order]: [AccountId, OrderId] = ['account', 'order'];
  const certificate: CertificateId = 'certificate';
  assert.equal(find(account, order), 'account/order');
  // @ts-expect-error An order is not an account: this swap would be a tenant bug.
  find(order, order);
  // @ts-expect-error An account is not an order.
  find(account, account);
  // @ts-expect-error A certificate is not an order.
  find(account, certificate);
});
