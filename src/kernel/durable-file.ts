// Replaces a file so that a crash or a power loss leaves the old content or the new one, never a part of it.
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { EXIT, Problem } from './problem.ts';

export const draftOf = (file: string): string => `${file}.draft`;

/** Readable by its owner only. A draft that was left over, perhaps with another mode, is deleted first. One writer at a time. */
export function replaceFile(file: string, text: string): void {
  const draft = draftOf(file);
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/** For an operator: readable by its owner only, and durable. Never replaces a file. Throws a Problem. */
export function createFile(file: string, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content, { mode: 0o600, flag: 'wx', flush: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'exists already' : `cannot be written (${code})`;
    const remedy = 'Name a new file in a folder that this user may write to.';
    throw new Problem(EXIT.usage, `${file} ${why}`, remedy, { cause: error });
  }
  syncFolder(dirname(file));
}

/** Makes directory entries durable. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
