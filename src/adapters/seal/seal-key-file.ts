// The seal key file: created with mode 0600 on first start, rejected if other users can read it.
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { newSealKey, parseSealKeys, type SealKey } from './seal.ts';

const GROUP_AND_OTHERS = 0o077;

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
  if (isReadableByOthers(file)) {
    throw new Problem(EXIT.configuration, `the seal key file ${file} can be read by other users`, `chmod 600 ${file}`);
  }
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

export const isReadableByOthers = (file: string): boolean =>
  process.platform !== 'win32' && (statSync(file).mode & GROUP_AND_OTHERS) !== 0;

/** Makes the directory entry durable: a power loss must not lose the key after secrets were sealed under it. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
