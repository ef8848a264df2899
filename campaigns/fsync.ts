// Does the acknowledgement wait for the disk? A kill cannot tell, because what the kernel has survives it, so strace
// watches the service itself: between a request and its answer the log must have been synced, and no byte of it may
// be left unsynced. Only SQLite: PostgreSQL's own disk discipline is not ours to prove, `reseal doctor` asks for it.
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Key } from '../test/support/app.ts';
import type { Campaign } from './campaign.ts';
import { makeKeys, type Settings, startService, withStore } from './service.ts';
import { type Findings, judgeAnswers, SHOWN_BYTES, TRACED_CALLS } from './trace.ts';
import { Client } from './writers.ts';

const WRITERS = 64;
const BURST_WRITES_EACH = 5;

export const fsync: Campaign = {
  about: 'strace on SQLite, N writes one by one, then 64 at a time: no answer before its fsync',
  defaultN: 20,
  async run(count, print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-fsync-'));
    const settings = { RESEAL_DATA_DIR: folder.path };
    const broken = await withStore(settings, ({ store }) => store.durabilityGaps());
    print(`the store's own settings: ${broken.length === 0 ? 'PRAGMA synchronous is 2 (FULL)' : broken.join(', ')}`);

    if (!isStraceUsable()) {
      return [...broken, 'strace is not installed or may not trace here: nobody watched the disk'];
    }
    const trace = join(folder.path, 'trace');
    const seen = await writeUnderTrace(settings, straceWrapper(folder.path, trace), count);
    for (const [phase, requestIds] of Object.entries(seen)) {
      const findings = await judgeAnswers(trace, requestIds);
      print(`${phase}: ${textOf(findings)}`);
      broken.push(...brokenIn(phase, findings, requestIds.size));
    }
    return broken;
  },
};

/** The request ids that were acknowledged, by phase. */
type Phases = Readonly<Record<'one by one' | 'burst', ReadonlySet<string>>>;

async function writeUnderTrace(settings: Settings, program: string, count: number): Promise<Phases> {
  const keys = await makeKeys(settings, WRITERS);
  const { url, process } = await startService(settings, program);
  try {
    using client = new Client(url, WRITERS);
    const oneByOne = await renameRepeatedly(client, keys[0]!, count);
    const burst = await Promise.all(keys.map((key) => renameRepeatedly(client, key, BURST_WRITES_EACH)));
    return { 'one by one': new Set(oneByOne), burst: new Set(burst.flat()) };
  } finally {
    // A clean end, so that strace ends by itself and its file is whole.
    await process.end('SIGTERM');
  }
}

async function renameRepeatedly(client: Client, key: Key, times: number): Promise<string[]> {
  const requestIds: string[] = [];
  for (let count = 1; count <= times; count += 1) {
    const answer = await client.rename(key, `name ${count}`);
    if (answer?.status !== 200) throw new Error(`a write was answered with ${answer?.status ?? 'silence'}`);
    requestIds.push(answer.requestId);
  }
  return requestIds;
}

/** Some containers have the program and forbid what it does. */
function isStraceUsable(): boolean {
  return spawnSync('strace', ['-D', '-o', '/dev/null', '-e', 'trace=none', 'true'], { stdio: 'ignore' }).status === 0;
}

/** A program to start the service with. -D: the process we start is the service itself, and signals reach it. */
function straceWrapper(folder: string, trace: string): string {
  const wrapper = join(folder, 'under-strace');
  const command = `exec strace -D -f -y -s ${SHOWN_BYTES} -e ${TRACED_CALLS} -o '${trace}' '${process.execPath}' "$@"`;
  writeFileSync(wrapper, `#!/bin/sh\n${command}\n`, { mode: 0o700 });
  return wrapper;
}

function textOf({ answers, syncs, early, unsynced }: Findings): string {
  const share = syncs === 0 ? 'none' : (answers / syncs).toFixed(1);
  return `${answers} answers, ${syncs} syncs of the log (${share} answers per sync), ${early} before a sync, ${unsynced} with unsynced bytes`;
}

function brokenIn(phase: string, { answers, early, unsynced }: Findings, expected: number): string[] {
  return [
    answers !== expected && `${phase}: the trace shows ${answers} of ${expected} answers, so it proves nothing`,
    early > 0 && `${phase}: ${early} answers left before the log was synced`,
    unsynced > 0 && `${phase}: ${unsynced} answers left while the log had unsynced bytes`,
  ].filter((text) => text !== false);
}
