// A short run of the backup campaign: one backup under load. The full one is `npm run campaign -- backup`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backUpUnderLoad } from '../../campaigns/backup.ts';
import { reseal } from '../support/in-process.ts';

test('a backup under load restores what was acknowledged, and revokes again what was revoked since', async (context) => {
  const report = await backUpUnderLoad({
    ...{ backups: 1, orders: 4, between: 20, run: reseal },
    print: (line) => context.diagnostic(line),
  });
  assert.deepEqual(report.broken, []);
  assert.ok(report.compared >= 20, `only ${report.compared} facts were compared`);
  assert.ok(report.revoked > 0);
});
