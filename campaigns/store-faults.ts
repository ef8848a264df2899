// Damages a random page of a used embedded store, or cuts its file, as a failing disk does. A start either serves, or ends with
// exit code 4, one message and a remedy; the doctor finds the damage; nothing is called a bug. Then a backup that was taken
// before is restored.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reseal } from '../test/support/in-process.ts';
import { spawnReseal, startReseal } from '../test/support/process.ts';
import type { Campaign, Print } from './campaign.ts';
import { placeOrders } from './reissues.ts';

const ORDERS = 20;
const HEADER_PAGE_SIZE = 16;

export const storeFaults: Campaign = {
  about: 'damages N copies of a used store, one page each; starts and the doctor must say so',
  defaultN: 40,
  async run(n, print) {
    const source = mkdtempSync(join(tmpdir(), 'reseal-store-faults-'));
    try {
      await placeOrders({ RESEAL_DATA_DIR: source }, ORDERS);
      const backup = join(source, 'backup');
      await reseal(['backup', backup], { RESEAL_DATA_DIR: source });
      const broken: string[] = [];
      const seen = { served: 0, refused: 0, unnoticed: 0 };
      for (let round = 1; round <= n; round += 1) broken.push(...(await examine(source, round, seen)));
      print(
        `${seen.refused} starts refused, ${seen.served} served; ${seen.unnoticed} pages hold nothing that is checked`,
      );
      broken.push(...(await restored(source, backup, print)));
      return broken;
    } finally {
      rmSync(source, { recursive: true, force: true });
    }
  },
};

async function examine(source: string, round: number, seen: Record<'served' | 'refused' | 'unnoticed', number>) {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-store-fault-'));
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0', RESEAL_DNS_SERVERS: '127.0.0.1:1' };
  try {
    for (const name of ['reseal.db', 'seal.key']) copyFileSync(join(source, name), join(folder, name));
    const what = damage(join(folder, 'reseal.db'), round);
    const doctor = await reseal(['doctor'], settings);
    const isFound = /^PROBLEM {2}(store|integrity)/m.test(doctor.out);
    if (/bug/.test(doctor.err)) return [`${what}: the doctor says ${doctor.err}`];
    const outcome = await start(settings);
    if (outcome === 'served') seen.served += 1;
    else if (outcome.code === 4 && /What to do: /.test(outcome.err) && !/bug/.test(outcome.err)) seen.refused += 1;
    else return [`${what}: code ${outcome.code}, ${outcome.err}`];
    // A page of free space, or of values that any bytes are valid for.
    if (!isFound && outcome === 'served') seen.unnoticed += 1;
    return !isFound && outcome !== 'served' ? [`${what}: a start is refused, and the doctor finds nothing`] : [];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Every fifth file is cut; otherwise a page is filled with garbage. */
function damage(file: string, round: number): string {
  const bytes = readFileSync(file);
  if (round % 5 === 0) {
    const length = Math.floor(bytes.length * Math.random());
    truncateSync(file, length);
    return `cut at ${length} of ${bytes.length}`;
  }
  const size = bytes.readUInt16BE(HEADER_PAGE_SIZE);
  const page = Math.floor((Math.random() * bytes.length) / size);
  writeFileSync(file, bytes.fill(0xa5, page * size, (page + 1) * size));
  return `page ${page + 1}`;
}

async function start(settings: Record<string, string>) {
  await using service = startReseal(['serve'], settings);
  try {
    await service.listening();
    return 'served' as const;
  } catch {
    return { code: service.child.exitCode, err: service.output };
  }
}

async function restored(source: string, backup: string, print: Print): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-store-restored-'));
  try {
    copyFileSync(join(source, 'seal.key'), join(folder, 'seal.key'));
    const { code, err } = await spawnReseal(['restore', backup, '--without-crl'], { RESEAL_DATA_DIR: folder });
    print(`the backup is restored: code ${code}`);
    return code === 0 ? [] : [`restore: ${err}`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
