// Removes what was deleted from an SQLite file and its log: pages that are free keep their former content, and so does the
// log until it is written over.

import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSqliteBusy } from './sqlite-errors.ts';

/** A reader or a writer of a running service holds a lock for milliseconds. */
const WAIT_MS = 30_000;
const PAUSE_MS = 50;

/** Returns where deleted content may still be, in words. Takes as long as the file is large; writers wait meanwhile. */
export async function purgeSqlite(file: string): Promise<string[]> {
  const database = new DatabaseSync(file, { timeout: WAIT_MS });
  const deadline = performance.now() + WAIT_MS;
  try {
    database.exec('pragma secure_delete = on; pragma synchronous = full');
    const isDone = await until(deadline, () => {
      try {
        database.exec('vacuum');
        return true;
      } catch (error) {
        if (isSqliteBusy(error)) return false;
        throw error;
      }
    });
    const isTruncated = await until(deadline, () => {
      const { busy } = database.prepare('pragma wal_checkpoint(truncate)').get() as { busy: number };
      return busy === 0;
    });
    return [
      ...(isDone ? [] : [`free pages of ${file}: stop the service, then run VACUUM on the file`]),
      ...(isTruncated ? [] : [`the log ${file}-wal, which a reader holds: stop the service, which ends it`]),
      `blocks of the disk that ${file} no longer uses: file systems and SSDs keep them until they are used again`,
    ];
  } finally {
    database.close();
  }
}

async function until(deadline: number, attempt: () => boolean): Promise<boolean> {
  while (!attempt()) {
    if (performance.now() > deadline) return false;
    await sleep(PAUSE_MS);
  }
  return true;
}
