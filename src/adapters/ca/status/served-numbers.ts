// The highest number of each CRL that was served from this data folder, in a file beside the store. A store that was put
// back to an earlier state does not know the numbers it has given away since; this file does, and the clock, which is
// above them unless it was ahead. Verifiers may reject a CRL whose number goes down.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { CrlHead } from '../../../domain/revocation/ports.ts';
import { type CrlRef, crlKey } from '../../../domain/revocation/revocation.ts';

const FILE = 'crl-numbers.db';
/** With the journal of an interrupted write. */
export const SERVED_NUMBERS_FILES = [`${FILE}-journal`, FILE];
/**
 * Our numbers count milliseconds, and a CRL that is published often is written down once a second: all numbers less than this
 * above the one in the file count as served.
 */
const STEP = 1_000;
const WAIT_MS = 1_000;

export interface ServedNumbers {
  /** True if a higher number was served. */
  isOutdated(crl: CrlRef, number: number): boolean;
  /** The least number that a new CRL may have. */
  nextOf(crl: CrlRef): number;
  /** Durable when it returns. Call before the CRL is served. `isOurs`: its next number will be above `nextOf`. */
  note(crl: CrlRef, number: number, isOurs: boolean): void;
  /** How many CRLs of these issuers had a higher number than the store has now. */
  outdated(issuerIds: ReadonlySet<string>, heads: readonly CrlHead[]): number;
  /** For the doctor: once the CRLs are published anew, their numbers do not tell any more. */
  recordRollback(at: number): void;
  close(): void;
}

/** Never throws: without the file, numbers follow the store and the clock. `warn` is told why. */
export function servedNumbers(folder: string, warn: (text: string) => void): ServedNumbers {
  const database = attempt(() => open(join(folder, FILE)), warn);
  const noted = (database && attempt(() => readAll(database), warn)) ?? new Map<string, number>();
  const least = new Map([...noted].map(([key, number]) => [key, number + STEP]));
  return {
    isOutdated: (crl, number) => number < (noted.get(crlKey(crl)) ?? 0),
    nextOf: (crl) => least.get(crlKey(crl)) ?? 0,
    note(crl, number, isOurs) {
      const key = crlKey(crl);
      least.set(key, Math.max(number + 1, least.get(key) ?? 0));
      if (number < (noted.get(key) ?? 0) + (isOurs ? STEP : 1)) return;
      noted.set(key, number);
      if (database) attempt(() => write(database, key, number), warn);
    },
    outdated: (issuerIds, heads) => countOutdated(noted, issuerIds, heads),
    recordRollback(at) {
      if (database) attempt(() => database.prepare('insert into rollback values (?)').run(at), warn);
    },
    close() {
      if (database?.isOpen) database.close();
    },
  };
}

export function countOutdated(
  served: ReadonlyMap<string, number>,
  issuerIds: ReadonlySet<string>,
  heads: readonly CrlHead[],
): number {
  const current = new Map(heads.map((head) => [crlKey(head), head.number]));
  const isOurs = (key: string) => issuerIds.has(key.split('/')[0] ?? '');
  return [...served].filter(([key, number]) => isOurs(key) && number > (current.get(key) ?? 0)).length;
}

interface ServedFacts {
  /** By CRL. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly rolledBackAt: number | undefined;
}

/** Undefined if no service has run in the folder. */
export function readServedNumbers(folder: string): ServedFacts | undefined {
  const file = join(folder, FILE);
  if (!existsSync(file)) return undefined;
  const database = new DatabaseSync(file, { readOnly: true, timeout: WAIT_MS });
  try {
    const found = database.prepare('select min(found_at) as at from rollback').get()?.at;
    return { numbers: readAll(database), rolledBackAt: found == null ? undefined : Number(found) };
  } finally {
    database.close();
  }
}

/** The operator has brought the revocations back. */
export function forgetRollback(folder: string): void {
  const file = join(folder, FILE);
  if (!existsSync(file)) return;
  const database = open(file);
  try {
    database.exec('delete from rollback');
  } finally {
    database.close();
  }
}

function open(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: WAIT_MS });
  try {
    database.exec('pragma journal_mode = truncate; pragma synchronous = full');
    database.exec('create table if not exists served (crl text primary key, number integer not null) without rowid');
    database.exec('create table if not exists rollback (found_at integer primary key)');
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

const readAll = (database: DatabaseSync): Map<string, number> =>
  new Map(
    database
      .prepare('select crl, number from served')
      .all()
      .map(({ crl, number }) => [String(crl), Number(number)]),
  );

/** Other processes of the service write to the same file. */
const write = (database: DatabaseSync, key: string, number: number): unknown =>
  database
    .prepare('insert into served values (?, ?) on conflict do update set number = max(number, excluded.number)')
    .run(key, number);

function attempt<T>(work: () => T, warn: (text: string) => void): T | undefined {
  try {
    return work();
  } catch (error) {
    warn(
      `${FILE} cannot be used (${(error as Error).message}): after a restore, CRL numbers depend on the clock alone`,
    );
    return undefined;
  }
}
