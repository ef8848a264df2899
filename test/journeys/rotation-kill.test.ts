// A short run of the rotation-kill campaign. The full one is `npm run campaign -- rotation-kill`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killDuringRotation } from '../../campaigns/rotation-kill.ts';

/** Where instances share a database; the campaign rotates on both engines. */
const ENGINE = 'PostgreSQL';

test(`${ENGINE}: a retired issuer issues nothing after its rotation was answered`, async (context) => {
  const report = await killDuringRotation(ENGINE, {
    ...{ rounds: 1, workers: 0, orders: 8, warm: 20, seed: 20_261_116 },
    print: (line) => context.diagnostic(line),
  });
  assert.deepEqual(report.broken, []);
  assert.equal(report.rotations, 1);
  assert.ok(report.later >= 20, 'nothing was issued after the answer');
});
