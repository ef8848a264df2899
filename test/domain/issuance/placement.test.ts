// The term of a new order in months, as long as the product's at most.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../../../src/domain/errors.ts';
import { newOrder, requireMonths } from '../../../src/domain/issuance/placement.ts';
import { product } from '../../support/reissue.ts';

const DAY = 86_400_000;
const term = (from: string, termDays: number, months?: number): string => {
  const ids = { id: 'o', accountId: 'a', alternativeId: null, subject: null };
  const order = newOrder(ids, { ...product('ssl-dv'), termDays }, Date.parse(from), months);
  return new Date(order.termEndsAt).toISOString().slice(0, 10);
};

test('a product allows as many months as its term has, whatever their length', () => {
  for (const [termDays, most] of [
    ...[[365, 12] as const, [366, 12] as const, [1095, 36] as const, [3650, 120] as const, [397, 13] as const],
    ...[[90, 3] as const, [30, 1] as const, [28, 1] as const, [199, 6] as const, [27, 0] as const],
  ]) {
    if (most > 0) assert.equal(requireMonths(most, { termDays }), most);
    assert.throws(
      () => requireMonths(most + 1, { termDays }),
      (error) => error instanceof Refusal && error.facts.field === 'validity_months',
      `${termDays}`,
    );
  }
});

test('the term ends after the months or with the product, whichever is first', () => {
  assert.equal(term('2026-11-15', 365), '2027-11-15');
  assert.equal(term('2026-11-15', 365, 1), '2026-12-15');
  // A year with a leap day has more days than the product.
  assert.equal(term('2027-11-15', 365, 12), '2028-11-14');
  assert.equal(term('2026-07-01', 90, 3), '2026-09-29');
  const from = Date.parse('2026-01-31');
  for (let day = 0; day < 1461; day += 1) {
    const at = new Date(from + day * DAY).toISOString();
    assert.ok(Date.parse(term(at, 365, 12)) - Date.parse(at) <= 365 * DAY, at);
  }
});
