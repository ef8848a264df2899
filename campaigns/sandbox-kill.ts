// Kills the first start of a sandbox with SIGKILL at random moments, several times in a row, and then lets it start: it must
// come up with complete demo data, and what was complete before must stay the same.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startReseal } from '../test/support/process.ts';
import type { Campaign, Print } from './campaign.ts';

/** About the time of a first start. */
const LONGEST_MS = 3_000;
const KILLS = 3;

export const sandboxKill: Campaign = {
  about: 'kills the first start of N sandboxes at random moments, three times each; then it must be complete',
  defaultN: 10,
  async run(n, print) {
    const broken: string[] = [];
    for (let round = 1; round <= n; round += 1) broken.push(...(await killed(round, print)));
    return broken;
  },
};

async function killed(round: number, print: Print): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-sandbox-kill-'));
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
  try {
    let before: Demo | undefined;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await using running = startReseal(['sandbox'], settings);
      const after = Math.round(Math.random() * LONGEST_MS);
      await sleep(after);
      await running.end('SIGKILL');
      before = demoIn(folder) ?? before;
      print(`round ${round}: killed after ${after} ms, sandbox.json ${before ? 'complete' : 'not there yet'}`);
      if (/bug|Error:/.test(running.output)) return [`round ${round}: ${running.output}`];
    }
    await using running = startReseal(['sandbox'], settings);
    await running.said(/Stop with Ctrl-C/);
    const demo = demoIn(folder);
    if (!demo || demo.accounts.length < 4 || demo.orders.length < 8) return [`round ${round}: incomplete demo data`];
    const same = !before || JSON.stringify(idsIn(before)) === JSON.stringify(idsIn(demo));
    return same ? [] : [`round ${round}: accounts, keys or orders have changed`];
  } catch (error) {
    return [`round ${round}: ${error}`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Demo {
  readonly accounts: readonly { readonly id: string; readonly credentials: unknown }[];
  readonly orders: readonly { readonly id: string }[];
}

/** Undefined before it was written the first time. Throws if it is half-written. */
function demoIn(folder: string): Demo | undefined {
  const file = join(folder, 'sandbox.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

const idsIn = ({ accounts, orders }: Demo) => [
  accounts.map(({ id, credentials }) => [id, credentials]),
  orders.map(({ id }) => id),
];
