// A short run of the placing-kill campaign. The full one is `npm run campaign -- placing-kill`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { killDuringPlacing } from '../../campaigns/placing-kill.ts';

const SEED = 20_261_115;

test('SQLite: an alternative id is placeable again, or found, after every kill', async (context) => {
  const report = await killDuringPlacing('SQLite', {
    ...{ kills: 1, workers: 0, accounts: 8, writersEach: 3, least: 1, most: 30, waitsEvery: 0, seed: SEED },
    print: (line) => context.diagnostic(line),
  });
  assert.deepEqual(report.broken, []);
  assert.equal(report.kills, 1);
  assert.ok(report.inDoubt > 0, 'no kill came in the middle of a placement');
});
