// A short run of the seal-kill campaign, and what an operator sees of a rotation. The full one is
// `npm run campaign -- seal-kill`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rotateUnderKills } from '../../campaigns/seal-kill.ts';

test('a rotation that is killed under load is finished by the next, and nothing needs the old key', async (context) => {
  const print = (line: string) => context.diagnostic(line);
  const report = await rotateUnderKills('SQLite', { rounds: 1, accounts: 200, killsService: false, print });
  assert.deepEqual(report.broken, []);
  assert.equal(report.inTheMiddle, 1, 'the kill did not come in the middle');
  assert.ok(report.acknowledged > 0);
});
