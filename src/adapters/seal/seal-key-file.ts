// The seal key file: created with mode 0600 on first start, rejected if other users can read or replace it.
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder } from '../../kernel/durable-file.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { newSealKey, parseSealKeys, type SealKey } from './seal.ts';

const GROUP_AND_OTHERS = 0o077;
const WRITE = 0o222;
const STICKY = 0o1000;

/** Returns the keys, newest first; undefined if there is no such file. */
export function readSealKeyFile(file: string): SealKey[] | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Problem(
      EXIT.configuration,
      `the seal key file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      'Run Reseal as the user who owns the file.',
      { cause: error },
    );
  }
  requireOwn(file);
  const keys = parseSealKeys(text);
  if (keys) return keys;
  throw new Problem(
    EXIT.configuration,
    `the seal key file ${file} does not hold keys`,
    'Restore it from a backup: without it nothing that was sealed can be opened. It has one key per line, 32 bytes in base64, the newest first.',
  );
}

/** Creates the file unless another process was faster. Returns the keys it then holds. */
export function createSealKeyFile(file: string): SealKey[] {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    const descriptor = openSync(draft, 'wx', 0o600);
    try {
      writeSync(descriptor, `${newSealKey().bytes.toString('base64')}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    // Linking is atomic and never replaces an existing file.
    linkSync(draft, file);
    // A power loss must not lose the key after secrets were sealed under it.
    syncFolder(dirname(file));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw cannotCreate(file, code, error);
  } finally {
    rmSync(draft, { force: true });
  }
  const keys = readSealKeyFile(file);
  if (keys) return keys;
  throw cannotCreate(file, 'it points nowhere');
}

const cannotCreate = (file: string, why: string, cause?: unknown): Problem =>
  new Problem(
    EXIT.configuration,
    `the seal key file ${file} cannot be created (${why})`,
    'Make room and a folder that this user may write in, or name another place in RESEAL_SEAL_KEY_FILE.',
    { cause },
  );

export const isReadableByOthers = (path: string): boolean => isOpenTo(path, GROUP_AND_OTHERS);
export const isWritableByOthers = (path: string): boolean => isOpenTo(path, GROUP_AND_OTHERS & WRITE);

const isOpenTo = (path: string, bits: number): boolean =>
  process.platform !== 'win32' && (statSync(path).mode & bits) !== 0;

/** True if a user other than this one and root owns the file or folder, and so can change it at any time. */
export function isForeign(path: string): boolean {
  const self = process.getuid?.();
  return self !== undefined && ![0, self].includes(statSync(path).uid);
}

/** Throws a Problem unless only this user, and root, can read the file and replace it. */
function requireOwn(file: string): void {
  const folder = dirname(file);
  const refuse = (text: string, remedy: string) => new Problem(EXIT.configuration, text, remedy);
  if (isReadableByOthers(file)) {
    throw refuse(`the seal key file ${file} can be read by other users`, `chmod 600 ${file}`);
  }
  for (const path of [file, folder].filter(isForeign)) {
    throw refuse(
      `another user owns ${path}, and can replace the seal key`,
      `Run Reseal as that user, or take it over: chown "$(id -un)" ${path}`,
    );
  }
  // With the sticky bit, others can write in the folder and still not replace this file.
  if (isWritableByOthers(folder) && !isOpenTo(folder, STICKY)) {
    throw refuse(`other users can replace the seal key: they can write in ${folder}`, `chmod go-w ${folder}`);
  }
}
