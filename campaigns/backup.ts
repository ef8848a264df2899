// Backups of the embedded database under load. Each backup must verify, and restore into a service that has everything
// acknowledged before the backup began; a copy of the live file must be refused. In the end the first backup is restored
// with the last CRLs: whatever was revoked meanwhile is revoked again, on CRLs with higher numbers.
import { copyFileSync, mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentFor } from '../test/support/callback-app.ts';
import { HOST, Outside } from '../test/support/outside.ts';
import { type Finished, spawnReseal } from '../test/support/process.ts';
import {
  type Fact,
  judgeRestored,
  type Load,
  mirror,
  subscribe,
  textOf,
  untilMore,
  writeUntil,
} from './backup-load.ts';
import type { Campaign, Print } from './campaign.ts';
import { placeOrders } from './reissues.ts';
import { type Settings, startService } from './service.ts';

interface BackupPlan {
  readonly backups: number;
  readonly orders: number;
  /** Acknowledgements between two backups, at least. */
  readonly between: number;
  readonly print: Print;
  /** Runs a command to its end: in a process of its own, except in tests. */
  readonly run?: (args: readonly string[], settings: Settings) => Promise<Finished>;
}

interface BackupReport {
  readonly broken: string[];
  acknowledged: number;
  /** Compared with restored services, over all backups. */
  compared: number;
  /** Serial numbers that restored services still revoke, over all backups. */
  revoked: number;
  /** Revoked after the first backup: with a certificate in it, and without. */
  revokedAgain: number;
  withoutCertificate: number;
}

export async function backUpUnderLoad(plan: BackupPlan): Promise<BackupReport> {
  const { print, run = spawnReseal } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-backup-'));
  await using outside = await Outside.open();
  const receiver = await outside.receiver();
  const live = join(folder.path, 'live');
  const settings = { RESEAL_DATA_DIR: live, ...(environmentFor(outside) as Settings) };
  const orders = await placeOrders(settings, plan.orders);
  await subscribe(settings, orders, `https://${HOST}:${receiver.port}/`);
  const report: BackupReport = {
    ...{ broken: [], acknowledged: 0, compared: 0, revoked: 0, revokedAgain: 0, withoutCertificate: 0 },
  };
  const load: Load = { facts: [], isPaused: false };
  const { facts } = load;
  const stopping = new AbortController();
  const service = await startService(settings);
  const writing = writeUntil(service, orders, load, stopping.signal);
  const file = (round: number, name: string) => join(folder.path, `${round}-${name}`);

  async function expect(code: number, args: readonly string[], dataDir = live): Promise<Finished> {
    const finished = await run(args, { ...settings, RESEAL_DATA_DIR: dataDir });
    if (finished.code !== code) {
      report.broken.push(`${args.slice(0, 2).join(' ')} ended with ${finished.code}: ${finished.out}${finished.err}`);
    }
    return finished;
  }

  async function restore(round: number, backup: string, crls: string, known: readonly Fact[]) {
    const target = file(round, 'restored');
    mkdirSync(target);
    copyFileSync(join(live, 'seal.key'), join(target, 'seal.key'));
    const { out } = await expect(0, ['restore', backup, '--crl', crls, '--json'], target);
    const judgement = await judgeRestored({
      settings: { ...settings, RESEAL_DATA_DIR: target },
      facts: known,
      crls: new Map(readdirSync(crls).map((name) => [name, readFileSync(join(crls, name))])),
    });
    report.broken.push(...judgement.broken);
    report.compared += judgement.certificates;
    report.revoked += judgement.revoked;
    return { judgement, restored: JSON.parse(out) };
  }

  try {
    for (let round = 1; round <= plan.backups; round += 1) {
      await untilMore(load, plan.between);
      const known = [...facts];
      await expect(0, ['backup', file(round, 'backup.db')]);
      await expect(0, ['backup', 'verify', file(round, 'backup.db')]);
      copyFileSync(join(live, 'reseal.db'), file(round, 'copied.db'));
      await expect(1, ['backup', 'verify', file(round, 'copied.db')]);
      await mirror(service, settings, file(round, 'crls'));
      load.isPaused = true;
      const { judgement } = await restore(round, file(round, 'backup.db'), file(round, 'crls'), known);
      print(`${round}/${plan.backups}: ${textOf(judgement)}; ${facts.length} acknowledged by now`);
    }
    await untilMore(load, plan.between);
    stopping.abort();
    await writing;
    report.acknowledged = facts.length;
    await mirror(service, settings, file(0, 'crls'));
    const { judgement, restored } = await restore(0, file(1, 'backup.db'), file(0, 'crls'), facts.slice(0, 1));
    report.revokedAgain = restored.revoked.length;
    report.withoutCertificate = restored.without_certificate.length;
    print(
      `the first backup with the last CRLs: ${textOf(judgement)}, of which ${report.revokedAgain} certificates of the backup and ${report.withoutCertificate} issued after it`,
    );
    if (report.revokedAgain + report.withoutCertificate === 0) report.broken.push('nothing was revoked meanwhile');
  } finally {
    stopping.abort();
    await service.process.end('SIGTERM');
  }
  return report;
}

export const backup: Campaign = {
  about: 'N backups under reissues, revocations and callbacks: each verifies and restores what was acknowledged',
  defaultN: 20,
  async run(backups, print) {
    const { broken, ...counts } = await backUpUnderLoad({ backups, orders: 8, between: 60, print });
    print(JSON.stringify(counts));
    return broken;
  },
};
