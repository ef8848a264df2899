// Mutex of a folder across processes. The lock is an SQLite file held exclusively: the operating system releases it when
// the process dies, however it dies, so there are no stale locks.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isSqliteBusy } from './sqlite-errors.ts';

/** Undefined when another process holds the folder. */
export function lockFolder(folder: string): { release(): void } | undefined {
  const database = new DatabaseSync(join(folder, '.lock'), { timeout: 0 });
  try {
    database.exec('pragma locking_mode = exclusive; begin exclusive');
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    if (isSqliteBusy(error)) return undefined;
    throw error;
  }
}
