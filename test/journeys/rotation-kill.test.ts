// A short run of the rotation-kill campaign. The full one is `npm run campaign -- rotation-kill`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineName } from '../../campaigns/kill.ts';
import { killDuringRotation } from '../../campaigns/rotation-kill.ts';

const PLANS: Readonly<Record<EngineName, { readonly rounds: number; readonly workers: number }>> = {
  SQLite: { rounds: 1, workers: 0 },
  PostgreSQL: { rounds: 1, workers: 0 },
};

for (const [engine, plan] of Object.entries(PLANS) as [EngineName, (typeof PLANS)[EngineName]][]) {
  test(`${engine}: a retired issuer issues nothing after its rotation was answered`, async (context) => {
    const print = (line: string) => context.diagnostic(line);
    const report = await killDuringRotation(engine, { ...plan, orders: 8, warm: 20, seed: 20_261_116, print });
    assert.deepEqual(report.broken, []);
    assert.equal(report.rotations, plan.rounds);
    assert.ok(report.later >= 20, 'nothing was issued after the answer');
  });
}
