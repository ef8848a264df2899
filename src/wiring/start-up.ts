// Start-up checks and their error messages: data folder, database, TLS files, port, and a data folder that belongs to the
// other mode.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { SealBroken } from '../adapters/seal/seal.ts';
import { lockFolder } from '../adapters/store/engine/folder-lock.ts';
import { isPostgresDamage } from '../adapters/store/engine/postgres.ts';
import { isSqliteDamage } from '../adapters/store/engine/sqlite-errors.ts';
import { type DatabaseLocation, isInUse, pendingMigrationsAt, quickFaultsAt } from '../adapters/store/store.ts';
import type { Config } from '../config/config.ts';
import { Refusal } from '../domain/errors.ts';
import type { Store } from '../domain/store.ts';
import type { Log } from '../kernel/log.ts';
import { EXIT, Problem } from '../kernel/problem.ts';

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown error';

export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new Problem(
      EXIT.configuration,
      `the data folder ${folder} cannot be created (${codeOf(error)})`,
      'Create it for this user, or choose another with RESEAL_DATA_DIR.',
      { cause: error },
    );
  }
}

const NO_STORE =
  'Name the data folder of the service in RESEAL_DATA_DIR, or its settings with --env-file FILE. A new store is created by: reseal serve';

/** Creates nothing. Throws a Problem unless there is a store of this version, with its seal key. */
export async function requireStore(config: Config): Promise<void> {
  const { database, sealKey } = config;
  const pending = await requireAnyStore(config);
  if (sealKey.kind === 'file' && !existsSync(sealKey.file)) {
    throw new Problem(EXIT.configuration, `the seal key ${sealKey.file} does not exist`, NO_STORE);
  }
  if (pending > 0) {
    throw new Problem(
      EXIT.store,
      `${storeName(database)} is of an older version: ${pending} migrations are pending, and only a start applies them`,
      'Back up the store, then start this version: reseal serve',
    );
  }
}

/** Creates nothing. Throws a Problem unless there is a store, of this or an older version; returns its pending migrations. */
export async function requireAnyStore(config: Config): Promise<number> {
  const { database } = config;
  if (database.kind === 'sqlite' && !existsSync(database.file)) {
    throw new Problem(EXIT.configuration, `there is no store here: ${database.file} does not exist`, NO_STORE);
  }
  const pending = await pendingMigrationsAt(database).catch((error) => {
    throw storeProblem(error, config);
  });
  if (pending !== undefined) return pending;
  throw new Problem(EXIT.configuration, `there is no store here: ${storeName(database)} is empty`, NO_STORE);
}

/** Where the store is, without credentials. */
export function storeName(database: DatabaseLocation): string {
  if (database.kind === 'sqlite') return database.file;
  const { host, pathname } = new URL(database.url);
  return `postgres://${host}${pathname}`;
}

/** What a disk answers that is full, read-only or broken. */
const DISK_CODES = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EIO'];

/** Returns a Problem for an unavailable database or a failing disk; returns any other error, which is a bug, unchanged. */
export function storeProblem(error: unknown, { database, dataDir }: Config): unknown {
  if (DISK_CODES.includes(codeOf(error))) {
    return new Problem(
      EXIT.store,
      `the data folder ${dataDir} cannot be written (${codeOf(error)})`,
      'Check that the disk has space and is healthy, then start again: nothing that was acknowledged is lost.',
      { cause: error },
    );
  }
  // The keys were confirmed before: it is not the key that is wrong.
  if (error instanceof SealBroken) return damaged(database, error.message, error);
  if (!(error instanceof Refusal && error.code === 'service_busy' && error.cause instanceof Error)) return error;
  const { cause } = error;
  if (isSqliteDamage(cause) || isPostgresDamage(cause)) return damaged(database, cause.message, cause);
  const name = serverName(database);
  return new Problem(
    EXIT.store,
    `${name} cannot be used: ${cause.message || codeOf(cause)}`,
    database.kind === 'sqlite'
      ? `Check that the disk has space and that this user may write in ${dataDir}.`
      : 'Check that it is running and that RESEAL_DATABASE_URL has the right host, database, user and password.',
    { cause },
  );
}

/** As storeProblem, after a start that failed. What looks like a bug may be damage that the database has not noticed. */
export async function startProblem(error: unknown, config: Config): Promise<unknown> {
  const found = storeProblem(error, config);
  if (found instanceof Problem || found instanceof Refusal) return found;
  // Looking at a database that is not there would create it.
  if (config.database.kind === 'sqlite' && !existsSync(config.database.file)) return found;
  const [fault] = await quickFaultsAt(config.database).catch(() => []);
  return fault === undefined ? found : damaged(config.database, fault, error);
}

const damaged = (database: DatabaseLocation, fault: string, cause: unknown): Problem =>
  new Problem(
    EXIT.store,
    `${serverName(database)} is damaged: ${fault}`,
    'Keep a copy of its files, then restore the last backup into an empty place: reseal restore FILE --crl … . What is damaged: reseal doctor',
    { cause },
  );

const serverName = (database: DatabaseLocation): string =>
  database.kind === 'sqlite' ? `the database ${database.file}` : `PostgreSQL at ${new URL(database.url).host}`;

/** Throws a Problem for an empty PostgreSQL beside a populated embedded database: it would become a new authority. */
export async function requireNoForgottenStore({ database, dataDir }: Config): Promise<void> {
  const file = join(dataDir, 'reseal.db');
  if (database.kind === 'sqlite' || !existsSync(file)) return;
  if ((await isInUse(database)) || !(await isInUse({ kind: 'sqlite', file }))) return;
  const { host, pathname } = new URL(database.url);
  throw new Problem(
    EXIT.configuration,
    `PostgreSQL at ${host}${pathname} is empty, and ${file} has data: starting would create a new root`,
    'Copy the data first, with RESEAL_DATABASE_URL unset: reseal store copy --to postgres://… . To begin anew, move the file away.',
  );
}

/** Binds the store to a mode on first use. Throws a Problem if it is bound to the other one. */
export async function claimMode(store: Store, mode: 'serve' | 'sandbox', { dataDir }: Config): Promise<void> {
  // Accounts that the operator created before the first start make the store a real service's too.
  const isInUse =
    (await store.settings.get('mode')) === undefined && (await store.accounts.list({ limit: 1 })).length > 0;
  const owner = await store.settings.claim('mode', isInUse ? 'serve' : mode);
  if (owner === mode) return;
  throw mode === 'serve'
    ? new Problem(
        EXIT.refused,
        `the data in ${dataDir} belongs to a sandbox, whose keys are in plain text in sandbox.json`,
        'Choose an empty folder with RESEAL_DATA_DIR.',
      )
    : new Problem(
        EXIT.refused,
        `the data in ${dataDir} belongs to a real service`,
        'Choose another folder for the sandbox with RESEAL_DATA_DIR.',
      );
}

/** Locks the sandbox's folder for this process. Throws a Problem if RESEAL_DATABASE_URL is set: demo data stays out of it. */
export function lockSandbox({ database, dataDir }: Config): { release(): void } {
  if (database.kind !== 'sqlite') {
    throw new Problem(
      EXIT.configuration,
      'the sandbox keeps its demo data out of real databases, and RESEAL_DATABASE_URL is set',
      'Unset RESEAL_DATABASE_URL, or start "reseal serve".',
    );
  }
  makeFolder(dataDir);
  let lock: ReturnType<typeof lockFolder>;
  try {
    lock = lockFolder(dataDir);
  } catch (error) {
    throw new Problem(
      EXIT.configuration,
      `this user cannot write in the data folder ${dataDir}`,
      'Change its owner, or choose another folder with RESEAL_DATA_DIR.',
      { cause: error },
    );
  }
  if (lock) return lock;
  throw new Problem(
    EXIT.refused,
    `a sandbox is already running in ${dataDir}`,
    'Stop it first, or choose another folder with RESEAL_DATA_DIR and another port with RESEAL_PORT.',
  );
}

export function warnOfSandboxRules({ callbacks, acmeFaults }: Config, log: Log): void {
  if (Object.values(acmeFaults).some(Boolean))
    log({ event: 'warning', text: 'RESEAL_SANDBOX_… that disturb ACME have no effect outside the sandbox' });
  if (callbacks.sandboxAllow.length === 0) return;
  log({
    event: 'warning',
    text: 'RESEAL_SANDBOX_ALLOW has no effect outside the sandbox; see RESEAL_CALLBACK_ALLOW',
  });
}

export function readTls({ certFile, keyFile }: { certFile: string; keyFile: string }): { cert: string; key: string } {
  const read = (file: string, variable: string) => {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new Problem(
        EXIT.configuration,
        `${variable}: ${file} cannot be read (${codeOf(error)})`,
        'Give the path of a PEM file that this user may read.',
        { cause: error },
      );
    }
  };
  const pair = { cert: read(certFile, 'RESEAL_TLS_CERT_FILE'), key: read(keyFile, 'RESEAL_TLS_KEY_FILE') };
  try {
    createSecureContext(pair);
  } catch (error) {
    throw new Problem(
      EXIT.configuration,
      `${certFile} and ${keyFile} cannot be used for TLS (${codeOf(error)})`,
      'Give a certificate chain and the key it belongs to, both as PEM.',
      { cause: error },
    );
  }
  return pair;
}

export function listenProblem(error: unknown, host: string, port: number): unknown {
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new Problem(
        EXIT.configuration,
        `port ${port} on ${host} is already in use`,
        `Choose another port, for example: RESEAL_PORT=${port + 1}`,
      );
    case 'EACCES':
      return new Problem(EXIT.configuration, `this user may not listen on port ${port}`, 'Choose a port above 1023.');
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Problem(
        EXIT.configuration,
        `this machine has no address ${host}`,
        'Set RESEAL_HOST to 127.0.0.1 for this machine only, or to 0.0.0.0 for all of its addresses.',
      );
    default:
      return new Problem(
        EXIT.configuration,
        `cannot listen on ${host}, port ${port} (${codeOf(error)})`,
        'Set RESEAL_HOST to 127.0.0.1 for this machine only, or to 0.0.0.0 for all of its addresses.',
        { cause: error },
      );
  }
}
