// A short run of the reissue-kill campaign: enough kills to notice that the campaign, or what it checks, is broken. The
// full one is `npm run campaign -- reissue-kill`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineName } from '../../campaigns/kill.ts';
import { killDuringReissues } from '../../campaigns/reissue-kill.ts';

/** One engine with single processes killed, the other with all at once: starting processes costs most of the time. */
const PLANS: Readonly<Record<EngineName, { readonly kills: number; readonly workers: number }>> = {
  SQLite: { kills: 3, workers: 2 },
  PostgreSQL: { kills: 2, workers: 0 },
};
const SEED = 20_261_115;

for (const [engine, plan] of Object.entries(PLANS) as [EngineName, (typeof PLANS)[EngineName]][]) {
  test(`${engine}: a kill loses no acknowledged certificate, and leaves no order locked`, async (context) => {
    const report = await killDuringReissues(engine, {
      ...plan,
      orders: 8,
      writersEach: 3,
      least: 10,
      most: 60,
      seed: SEED,
      print: (line) => context.diagnostic(line),
    });
    assert.deepEqual(report.broken, []);
    assert.equal(report.kills, plan.kills);
    assert.ok(report.acknowledged >= plan.kills * 10, `only ${report.acknowledged} reissues were acknowledged`);
    assert.ok(report.inDoubt > 0, 'no kill came in the middle of a reissue');
  });
}
