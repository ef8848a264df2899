// What a person tells the sandbox's outside world, kept in one file of the data folder: records for its name server,
// files for its web answerer. Commands write it, whole or not at all and one after the other; a running sandbox reads
// it whenever it is asked something and the file is another one than before. So there is no port to command it by, and
// what was told outlives restarts.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Records } from './dns-server.ts';
import {
  clearFile,
  clearRecords,
  type DnsRecords,
  EMPTY,
  MAX_WORLD_BYTES,
  parseWorld,
  printWorld,
  readFile,
  readRecords,
  setFile,
  setRecords,
  tablesOf,
  type WebFile,
  type World,
} from './world-records.ts';
import { excerpt, readName, readType, readUrl } from './world-values.ts';

export const WORLD_FILE = 'sandbox-world.json';
export const WORLD_DRAFT = `${WORLD_FILE}.draft`;
/** A folder of its own, because a running sandbox holds the lock of the data folder. */
const LOCKED = '.sandbox-world';
const LOCK_MS = 10_000;
const RETRY_MS = 20;
const MAX_REASON = 200;

/** Undefined while another process has it. */
export type LockFolder = (folder: string) => { release(): void } | undefined;

export interface WorldView {
  readonly records: Records;
  /** Of the file at an address, as `readUrl` spells it. */
  textAt(url: string): string | undefined;
}

/** What a running sandbox sees. A file that cannot be used is warned of once, and what it said before stays. */
export function viewWorld(folder: string, warn: (text: string) => void): WorldView {
  const file = join(folder, WORLD_FILE);
  let seen = '';
  let tables = tablesOf(EMPTY);
  const current = () => {
    const mark = markOf(file);
    if (mark === seen) return tables;
    seen = mark;
    try {
      tables = tablesOf(readWorld(folder));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      warn(`${error.message}; the records before it stay`);
    }
    return tables;
  };
  return { records: (name) => current().records.get(name), textAt: (url) => current().texts.get(url) };
}

/** Every rename brings another inode, so that two changes within one tick of the clock are still two. */
function markOf(file: string): string {
  try {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
    return stat ? `${stat.ino} ${stat.mtimeNs} ${stat.size}` : 'absent';
  } catch (error) {
    return codeOf(error);
  }
}

/** A Problem when it is there but cannot be used: it is never taken for an empty one, and so never written over. */
export function readWorld(folder: string): World {
  const file = join(folder, WORLD_FILE);
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (!stat) return EMPTY;
    // Reading a pipe would wait for a writer.
    if (!stat.isFile()) throw new Error('it is not a file');
    if (stat.size > MAX_WORLD_BYTES) throw new Error(`it has more than ${MAX_WORLD_BYTES} bytes`);
    return parseWorld(readFileSync(file, 'utf8'));
  } catch (error) {
    // Of a Problem the remedy is about a command's words, and nobody gave any.
    throw new Problem(
      EXIT.configuration,
      `${file} cannot be used: ${excerpt((error as Error).message, MAX_REASON)}`,
      'Correct it, or delete it and set the records again.',
      { cause: error },
    );
  }
}

export interface WorldCommands {
  setDns(name: string, type: string, values: readonly string[]): Promise<DnsRecords>;
  /** How many sets of records are gone. */
  clearDns(name: string, type: string | undefined): Promise<number>;
  setHttp(url: string, text: string): Promise<WebFile>;
  clearHttp(url: string): Promise<number>;
  list(): World;
}

export function worldCommands(folder: string, lockFolder: LockFolder): WorldCommands {
  /** Returns how much less there is; the same world back means that there is nothing to write. */
  const change = (to: (world: World) => World): Promise<number> =>
    alone(folder, lockFolder, () => {
      const before = readWorld(folder);
      const after = to(before);
      if (after !== before) writeWorld(folder, printWorld(after));
      return before.dns.length + before.http.length - after.dns.length - after.http.length;
    });
  return {
    async setDns(...words) {
      const records = readRecords(...words);
      await change((world) => setRecords(world, records));
      return records;
    },
    async clearDns(name, type) {
      const [owner, only] = [readName(name), type === undefined ? undefined : readType(type)];
      return await change((world) => clearRecords(world, owner, only));
    },
    async setHttp(...words) {
      const file = readFile(...words);
      await change((world) => setFile(world, file));
      return file;
    },
    async clearHttp(address) {
      const { url } = readUrl(address);
      return await change((world) => clearFile(world, url));
    },
    list: () => readWorld(folder),
  };
}

/** While no command changes the file. */
export async function alone<T>(folder: string, lockFolder: LockFolder, work: () => T): Promise<T> {
  const lock = await lockOf(folder, lockFolder);
  try {
    return work();
  } finally {
    lock.release();
  }
}

async function lockOf(folder: string, lockFolder: LockFolder): Promise<{ release(): void }> {
  const deadline = performance.now() + LOCK_MS;
  const locked = join(folder, LOCKED);
  do {
    const lock = writing(folder, () => {
      mkdirSync(locked, { recursive: true, mode: 0o700 });
      return lockFolder(locked);
    });
    if (lock) return lock;
    await sleep(RETRY_MS * (0.5 + Math.random()));
  } while (performance.now() < deadline);
  throw new Problem(EXIT.refused, 'other commands keep changing the sandbox’s records', 'Try again in a moment.');
}

/** Readable by its owner only, also when a draft of somebody else lies there. */
function writeWorld(folder: string, text: string): void {
  const draft = join(folder, WORLD_DRAFT);
  writing(folder, () => {
    rmSync(draft, { force: true });
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
    renameSync(draft, join(folder, WORLD_FILE));
  });
}

function writing<T>(folder: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Problem(
      EXIT.configuration,
      `the sandbox’s records cannot be written in ${folder} (${codeOf(error)})`,
      'Check that the disk has space and that this user may write there, or choose another folder with RESEAL_DATA_DIR.',
      { cause: error },
    );
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown error';
