// A short run of the kill campaign: enough rounds to notice that the campaign, or what it checks, is broken. The full
// one is `npm run campaign -- kill`; `npm run campaign -- fsync` shows that writes wait for the disk.
import assert from 'node:assert/strict';
import { type EngineName, killRepeatedly } from '../../campaigns/kill.ts';
import { rule } from '../support/contract.ts';

const ROUNDS = 2;
const SEED = 20_261_115;

/** An external server (TEST_DATABASE_URL) must not be killed. */
const DATABASE_KILLS: Readonly<Record<EngineName, number>> = {
  SQLite: 0,
  PostgreSQL: process.env.TEST_DATABASE_URL ? 0 : 1,
};

for (const [engine, databaseKills] of Object.entries(DATABASE_KILLS)) {
  rule(
    'envelope 15',
    'What has been answered with `success` is on durable storage before the answer is sent',
    async (context) => {
      const report = await killRepeatedly(engine as EngineName, {
        rounds: ROUNDS,
        writers: 32,
        least: 100,
        most: 300,
        seed: SEED,
        print: (line) => context.diagnostic(line),
      });
      const { lost, phantom, torn, serviceKills } = report;
      assert.deepEqual(
        { lost, phantom, torn, serviceKills, databaseKills: report.databaseKills },
        { lost: 0, phantom: 0, torn: 0, serviceKills: ROUNDS, databaseKills },
      );
      assert.ok(report.acknowledged >= ROUNDS * 100, `only ${report.acknowledged} writes were acknowledged`);
      assert.ok(report.inDoubt > 0, 'no kill came in the middle of a write');
    },
  );
}
