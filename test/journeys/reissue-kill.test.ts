// A short run of the reissue-kill campaign: enough kills to notice that the campaign, or what it checks, is broken. The
// full one is `npm run campaign -- reissue-kill`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENGINES, type EngineName } from '../../campaigns/kill.ts';
import { killDuringReissues } from '../../campaigns/reissue-kill.ts';

const KILLS = 3;
const SEED = 20_261_115;

for (const engine of Object.keys(ENGINES) as EngineName[]) {
  test(`${engine}: a kill loses no acknowledged certificate, and leaves no order locked`, async (context) => {
    const report = await killDuringReissues(engine, {
      kills: KILLS,
      orders: 8,
      writersEach: 3,
      least: 10,
      most: 60,
      seed: SEED,
      print: (line) => context.diagnostic(line),
    });
    assert.deepEqual(report.broken, []);
    assert.equal(report.kills, KILLS);
    assert.ok(report.acknowledged >= KILLS * 10, `only ${report.acknowledged} reissues were acknowledged`);
    assert.ok(report.inDoubt > 0, 'no kill came in the middle of a reissue');
  });
}
