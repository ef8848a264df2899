// The faults that a sandbox injects into ACME: as often as asked for, and nothing else changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcmeProblem } from '../../src/domain/acme/problem.ts';
import { type AcmeFaultSettings, acmeFaults } from '../../src/sandbox/acme-faults.ts';
import { acmeNonces } from '../../src/usecases/acme/nonces.ts';
import type { ShowAcmeOrders } from '../../src/usecases/acme/show-acme-orders.ts';
import { NOON } from '../support/app.ts';
import { rule } from '../support/contract.ts';

const NONE: AcmeFaultSettings = {
  ...{ badNoncePercent: 0, failedValidationPercent: 0, validationMs: 0 },
  ...{ shufflesAuthorizations: false, reusesNoProofs: false },
};
/** 0, 0.01, 0.02 … 0.99, and again. */
function evenly(): () => number {
  let count = 0;
  return () => (count++ % 100) / 100;
}
const ROUNDS = 100;
const real = acmeNonces({
  secret: new Uint8Array(32),
  sharedNow: () => NOON,
  randomBytes: (count) => new Uint8Array(count),
});

test('so many of 100 good nonces are refused, and no bad one is taken', () => {
  for (const percent of [0, 1, 50, 100]) {
    const nonces = acmeFaults({ ...NONE, badNoncePercent: percent }, evenly()).nonces(real);
    let refused = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      try {
        nonces.read(nonces.issue());
      } catch (error) {
        assert.ok(error instanceof AcmeProblem && error.acmeCode === 'badNonce');
        refused += 1;
      }
    }
    assert.equal(refused, percent);
    assert.throws(() => nonces.read('no nonce'), AcmeProblem);
  }
});

rule('acme 154', 'lets so many of 100 validations fail', async () => {
  const { signal } = new AbortController();
  const { disturb } = acmeFaults({ ...NONE, failedValidationPercent: 25, validationMs: 1 }, evenly());
  const results = await Promise.all(Array.from({ length: ROUNDS }, () => disturb('a.com', signal)));
  assert.equal(results.filter((one) => one !== null).length, 25);
  // A delay that would never end, ended by the deadline of the check.
  const slow = acmeFaults({ ...NONE, validationMs: 1_000_000 }, evenly());
  assert.equal(await slow.disturb('a.com', AbortSignal.abort()), null);
});

rule('acme 154', 'lists authorizations in any order', async () => {
  const shown = { authorizations: ['a', 'b', 'c'] };
  const show = { order: async () => shown } as unknown as ShowAcmeOrders;
  const listed = async (faults: AcmeFaultSettings) => {
    const { order } = acmeFaults(faults, Math.random).show(show);
    const { authorizations } = await order(...([] as unknown as Parameters<ShowAcmeOrders['order']>));
    return authorizations.join('');
  };
  assert.equal(await listed(NONE), 'abc');
  const seen = new Set<string>();
  while (seen.size < 6) seen.add(await listed({ ...NONE, shufflesAuthorizations: true }));
  assert.deepEqual([...seen].sort(), ['abc', 'acb', 'bac', 'bca', 'cab', 'cba']);
});
