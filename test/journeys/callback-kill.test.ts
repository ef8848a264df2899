// A short run of the callback-kill campaign: enough kills to notice that the campaign, or what it checks, is broken. The
// full one is `npm run campaign -- callback-kill`.
import assert from 'node:assert/strict';
import { CALLBACK_KILL_INSTANCES, killDuringCallbacks } from '../../campaigns/callback-kill.ts';
import type { EngineName } from '../../campaigns/kill.ts';
import { rule } from '../support/contract.ts';

/** On SQLite as several processes, on PostgreSQL as several instances. */
const WORKERS: Readonly<Record<EngineName, number>> = { SQLite: 2, PostgreSQL: 0 };
const PLAN = { certificates: 80, kills: 2, seed: 20_261_115 };

for (const [engine, instances] of Object.entries(CALLBACK_KILL_INSTANCES) as [EngineName, number][]) {
  rule('delivery 2', 'An event is delivered at least once, however often the process dies', async (context) => {
    const print = (line: string) => context.diagnostic(`${engine}: ${line}`);
    const { broken, ...counts } = await killDuringCallbacks(engine, {
      ...PLAN,
      instances,
      workers: WORKERS[engine],
      print,
    });
    print(JSON.stringify(counts));
    assert.deepEqual(broken, []);
    assert.equal(counts.kills, PLAN.kills);
    assert.ok(counts.issued >= PLAN.certificates, `only ${counts.issued} certificates were issued`);
    assert.ok(counts.refused > PLAN.certificates / 10, 'the receiver failed too seldom to prove anything');
  });
}
