// sandbox-world.json in the data folder: the DNS records and files that the user set. Commands replace it atomically
// and under a lock; a running sandbox re-reads it when a request finds it changed. So the sandbox needs no control
// port, and settings survive restarts.
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { replaceFile } from '../kernel/durable-file.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { ReplySource } from './dns-server.ts';
import {
  clearFile,
  clearRecords,
  type DnsRecords,
  EMPTY_WORLD,
  MAX_WORLD_BYTES,
  parseWorld,
  printWorld,
  readFile,
  readRecords,
  type SandboxWorld,
  setFile,
  setRecords,
  tablesOf,
  type WebFile,
} from './world-records.ts';
import { excerpt, readName, readType, readUrl } from './world-values.ts';

export const WORLD_FILE = 'sandbox-world.json';
/** Locked in place of the data folder, whose lock a running sandbox holds. */
const LOCK_FOLDER = '.sandbox-world';
const LOCK_MS = 10_000;
const RETRY_MS = 20;
const MAX_REASON = 200;

/** Returns undefined while another process holds the lock. */
export type LockFolder = (folder: string) => { release(): void } | undefined;

export interface WorldView {
  readonly replies: ReplySource;
  /** Takes a URL in the form that `readUrl` returns. */
  textAt(url: string): string | undefined;
}

/** A running sandbox's view. An invalid file is logged once, and the previous content stays in effect. */
export function viewWorld(folder: string, warn: (text: string) => void): WorldView {
  const file = join(folder, WORLD_FILE);
  let loaded = '';
  let tables = tablesOf(EMPTY_WORLD);
  const current = () => {
    const version = versionOf(file);
    if (version === loaded) return tables;
    loaded = version;
    try {
      tables = tablesOf(readWorld(folder));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      warn(`${error.message}; the records before it stay`);
    }
    return tables;
  };
  return { replies: (name) => current().replies.get(name), textAt: (url) => current().texts.get(url) };
}

/** Includes the inode, which every rename changes: two changes may share one mtime. */
function versionOf(file: string): string {
  try {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
    return stat ? `${stat.ino} ${stat.mtimeNs} ${stat.size}` : 'absent';
  } catch (error) {
    return codeOf(error);
  }
}

/** Throws a Problem for an invalid file: treated as empty, it would be overwritten. */
export function readWorld(folder: string): SandboxWorld {
  const file = join(folder, WORLD_FILE);
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (!stat) return EMPTY_WORLD;
    // Reading a FIFO would block.
    if (!stat.isFile()) throw new Error('it is not a file');
    if (stat.size > MAX_WORLD_BYTES) throw new Error(`it has more than ${MAX_WORLD_BYTES} bytes`);
    return parseWorld(readFileSync(file, 'utf8'));
  } catch (error) {
    // Replaces the remedy of a caught Problem, which is about command-line arguments.
    throw new Problem(
      EXIT.configuration,
      `${file} cannot be used: ${excerpt((error as Error).message, MAX_REASON)}`,
      'Correct it, or delete it and set the records again.',
      { cause: error },
    );
  }
}

/** All methods throw a Problem for invalid arguments. */
export interface WorldCommands {
  setDns(name: string, type: string, values: readonly string[]): Promise<DnsRecords>;
  /** Returns the number of deleted record sets. */
  clearDns(name: string, type: string | undefined): Promise<number>;
  setHttp(url: string, text: string): Promise<WebFile>;
  clearHttp(url: string): Promise<number>;
  list(): SandboxWorld;
}

export function worldCommands(folder: string, lockFolder: LockFolder): WorldCommands {
  /** Returns the number of deleted entries. Writes nothing if `update` returns its argument. */
  const change = (update: (world: SandboxWorld) => SandboxWorld): Promise<number> =>
    withWorldLock(folder, lockFolder, () => {
      const before = readWorld(folder);
      const after = update(before);
      if (after !== before) writeWorld(folder, printWorld(after));
      return before.dns.length + before.http.length - after.dns.length - after.http.length;
    });
  return {
    async setDns(...args) {
      const records = readRecords(...args);
      await change((world) => setRecords(world, records));
      return records;
    },
    async clearDns(name, type) {
      const [owner, only] = [readName(name), type === undefined ? undefined : readType(type)];
      return await change((world) => clearRecords(world, owner, only));
    },
    async setHttp(...args) {
      const file = readFile(...args);
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

/** Runs `work` while no other command can change the file. */
export async function withWorldLock<T>(folder: string, lockFolder: LockFolder, work: () => T): Promise<T> {
  const lock = await acquireLock(folder, lockFolder);
  try {
    return work();
  } finally {
    lock.release();
  }
}

async function acquireLock(folder: string, lockFolder: LockFolder): Promise<{ release(): void }> {
  const deadline = performance.now() + LOCK_MS;
  const path = join(folder, LOCK_FOLDER);
  do {
    const lock = explainWriteErrors(folder, () => {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      return lockFolder(path);
    });
    if (lock) return lock;
    await sleep(RETRY_MS * (0.5 + Math.random()));
  } while (performance.now() < deadline);
  throw new Problem(EXIT.refused, 'other commands keep changing the sandbox’s records', 'Try again in a moment.');
}

const writeWorld = (folder: string, text: string): void =>
  explainWriteErrors(folder, () => replaceFile(join(folder, WORLD_FILE), text));

function explainWriteErrors<T>(folder: string, work: () => T): T {
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
