// Does the acknowledgement wait for the disk? A kill cannot show it, because the kernel's buffers survive, so strace
// observes the service: between a request and its response the WAL must have been synced, with no byte left unsynced.
// SQLite only: PostgreSQL's durability is not ours to prove; `reseal doctor` checks its settings.
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Key } from '../test/support/app.ts';
import type { Campaign } from './campaign.ts';
import { makeKeys, type Settings, startService, withStore } from './service.ts';
import { judgeAnswers, SHOWN_BYTES, TRACED_CALLS, type TraceReport } from './trace.ts';
import { Client } from './writers.ts';

const WRITERS = 64;
const BURST_WRITES_EACH = 5;

export const fsync: Campaign = {
  about: 'strace on SQLite, N sequential writes, then 64 concurrent ones: no response before its fsync',
  defaultN: 20,
  async run(count, print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-fsync-'));
    const settings = { RESEAL_DATA_DIR: folder.path };
    const broken = await withStore(settings, ({ store }) => store.durabilityGaps());
    print(`the store's own settings: ${broken.length === 0 ? 'PRAGMA synchronous is 2 (FULL)' : broken.join(', ')}`);

    if (!isStraceUsable()) {
      return [...broken, 'strace is not installed or may not trace here: the disk was not observed'];
    }
    const trace = join(folder.path, 'trace');
    const seen = await writeUnderTrace(settings, straceWrapper(folder.path, trace), count);
    for (const [phase, requestIds] of Object.entries(seen)) {
      const report = await judgeAnswers(trace, requestIds);
      print(`${phase}: ${textOf(report)}`);
      broken.push(...brokenIn(phase, report, requestIds.size));
    }
    return broken;
  },
};

/** Acknowledged request ids by phase. */
type Phases = Readonly<Record<'one by one' | 'burst', ReadonlySet<string>>>;

async function writeUnderTrace(settings: Settings, program: string, count: number): Promise<Phases> {
  const keys = await makeKeys(settings, WRITERS);
  const { url, process } = await startService(settings, program);
  try {
    using client = new Client(url, WRITERS);
    const [first] = keys;
    if (!first) throw new Error('there is no key to write with');
    const oneByOne = await renameRepeatedly(client, first, count);
    const burst = await Promise.all(keys.map((key) => renameRepeatedly(client, key, BURST_WRITES_EACH)));
    return { 'one by one': new Set(oneByOne), burst: new Set(burst.flat()) };
  } finally {
    // A graceful end, so that strace exits by itself and its file is complete.
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

/** Some containers have strace but forbid tracing. */
function isStraceUsable(): boolean {
  return spawnSync('strace', ['-D', '-o', '/dev/null', '-e', 'trace=none', 'true'], { stdio: 'ignore' }).status === 0;
}

/** Writes a wrapper to start the service with. -D: the started process is the service itself, so signals reach it. */
function straceWrapper(folder: string, trace: string): string {
  const wrapper = join(folder, 'under-strace');
  const command = `exec strace -D -f -y -s ${SHOWN_BYTES} -e ${TRACED_CALLS} -o '${trace}' '${process.execPath}' "$@"`;
  writeFileSync(wrapper, `#!/bin/sh\n${command}\n`, { mode: 0o700 });
  return wrapper;
}

function textOf({ answers, syncs, early, unsynced }: TraceReport): string {
  const share = syncs === 0 ? 'none' : (answers / syncs).toFixed(1);
  return `${answers} answers, ${syncs} syncs of the WAL (${share} answers per sync), ${early} before a sync, ${unsynced} with unsynced bytes`;
}

function brokenIn(phase: string, { answers, early, unsynced }: TraceReport, expected: number): string[] {
  return [
    answers !== expected && `${phase}: the trace shows ${answers} of ${expected} answers, so it proves nothing`,
    early > 0 && `${phase}: ${early} answers left before the WAL was synced`,
    unsynced > 0 && `${phase}: ${unsynced} answers left while the WAL had unsynced bytes`,
  ].filter((text) => text !== false);
}
