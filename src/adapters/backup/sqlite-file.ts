// A backup of the embedded database: one SQLite file, made by the engine's online backup from one snapshot of a running
// store. The manifest is a table in it, so that the two cannot be separated, and the file's application id says what it is.
// A copy of the live files has neither: it may lack what is still in the WAL, and is refused.
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { type Manifest, parseManifest } from '../../domain/backup.ts';
import { syncFolder } from '../../kernel/durable-file.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { type Engine, openEngine } from '../store/engine/engine.ts';
import type { Db } from '../store/engine/schema.ts';
import { BACKUP_ID, sqliteEngine } from '../store/engine/sqlite.ts';
import { describeStore, sha256 } from './describe.ts';

/** Pages per step: 4 MiB, between which progress is reported. */
const STEP_PAGES = 1_000;
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';
const APPLICATION_ID_OFFSET = 68;

/** A part from 0 to 1. */
export type Progress = (part: number) => void;

/** Copies the store of a running or stopped service to a new file. Writes nothing to the store. */
export async function backUp(source: string, file: string, now: () => number, progress: Progress): Promise<Manifest> {
  if (!existsSync(source)) {
    throw new Problem(EXIT.store, `there is no database ${source}`, 'Name its folder in RESEAL_DATA_DIR.');
  }
  requireNew(file);
  // Its own name, so that two backups to one file do not write into each other's draft.
  const draft = `${file}.${randomBytes(6).toString('hex')}.partial`;
  try {
    const takenAt = now();
    await copySnapshot(source, draft, progress);
    const manifest = await describeCopy(draft, takenAt);
    writeManifest(draft, manifest);
    sync(draft);
    requireNew(file);
    renameSync(draft, file);
    syncFolder(dirname(resolve(file)));
    return manifest;
  } catch (error) {
    throw fileProblem(error, file);
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(draft + suffix, { force: true });
  }
}

async function copySnapshot(source: string, draft: string, progress: Progress): Promise<void> {
  const database = new DatabaseSync(source, { readOnly: true, timeout: 5_000 });
  try {
    // The read transaction pins one snapshot. Without it every commit of the service would make the backup begin again.
    database.exec('begin; select 1 from migration limit 1');
    await backup(database, draft, {
      rate: STEP_PAGES,
      progress: ({ totalPages, remainingPages }) => progress(1 - remainingPages / totalPages),
    });
  } finally {
    database.close();
  }
}

async function describeCopy(draft: string, takenAt: number): Promise<Manifest> {
  const copy = new DatabaseSync(draft);
  // Without a WAL the backup is one file, and opens on read-only media.
  copy.exec('pragma journal_mode = delete');
  copy.close();
  return await reading(draft, (db, engine) => describeStore(db, engine, takenAt));
}

function writeManifest(draft: string, manifest: Manifest): void {
  const copy = new DatabaseSync(draft);
  copy.exec(`pragma synchronous = full; begin; create table backup_manifest (manifest text primary key)`);
  copy.prepare('insert into backup_manifest (manifest) values (?)').run(JSON.stringify(manifest));
  copy.exec(`pragma application_id = ${BACKUP_ID}; commit`);
  copy.close();
}

/** Opens a backup for the duration of `work`. The file is not changed. */
export async function reading<T>(file: string, work: (db: Db, engine: Engine) => Promise<T>): Promise<T> {
  const engine = sqliteEngine({ file, isReadOnly: true });
  const db = openEngine(engine, () => {});
  try {
    return await work(db, engine);
  } finally {
    await db.destroy();
  }
}

/** True for any SQLite file, be it a backup or not. Throws a Problem if the file cannot be read. */
export const isDatabaseFile = (file: string): boolean => headerOf(file).toString('latin1', 0, MAGIC.length) === MAGIC;

/** The manifest in a database file. Throws a Problem if the file is not a finished backup. */
export function manifestIn(file: string): Manifest {
  const header = headerOf(file);
  const manifest = header.readUInt32BE(APPLICATION_ID_OFFSET) === BACKUP_ID ? readManifest(file) : undefined;
  if (manifest) return manifest;
  throw new Problem(
    EXIT.refused,
    `${file} has no valid manifest: it was copied from a data folder, or altered, and may lack what was acknowledged`,
    'Make backups with: reseal backup FILE',
  );
}

function readManifest(file: string): Manifest | undefined {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const row = database.prepare('select manifest from backup_manifest').get();
    return parseManifest(String(row?.manifest), sha256);
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

function headerOf(file: string): Buffer {
  try {
    const descriptor = openSync(file, 'r');
    try {
      const header = Buffer.alloc(HEADER_BYTES);
      readSync(descriptor, header, 0, HEADER_BYTES, 0);
      return header;
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw fileProblem(error, file);
  }
}

/** Copies a backup to where a store may be opened on it: without the manifest, which ends to be true with the first write. */
export function unpack(file: string, target: string): void {
  rmSync(target, { force: true });
  copyFileSync(file, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  const copy = new DatabaseSync(target);
  copy.exec('pragma synchronous = full; begin; drop table backup_manifest; pragma application_id = 0; commit');
  copy.close();
}

/** Puts a complete database in its place, durably. Throws if there is one. */
export function install(draft: string, target: string): void {
  const database = new DatabaseSync(draft);
  // Back from WAL: what is linked must be all of the database.
  database.exec('pragma journal_mode = delete');
  database.close();
  sync(draft);
  linkSync(draft, target);
  rmSync(draft);
  syncFolder(dirname(target));
}

function requireNew(file: string): void {
  if (!existsSync(file)) return;
  throw new Problem(EXIT.usage, `${file} exists already`, 'Name a new file: a backup replaces none.');
}

function sync(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function fileProblem(error: unknown, file: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof Problem || !code) return error;
  const reason = error instanceof Error && code === 'ERR_SQLITE_ERROR' ? error.message : code;
  return new Problem(
    EXIT.refused,
    `${file} cannot be used (${reason})`,
    'Name a file in a folder that this user may write in, with room for it.',
    { cause: error },
  );
}
