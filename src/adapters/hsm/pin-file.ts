// The PIN of a token, from a file. A token locks after a few wrong ones, and each process of a service, each restart, would
// try: so one that a token has refused is remembered beside the store, by the state of its file, and not used again.
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isReadableByOthers } from '../seal/seal-key-file.ts';

export type ReadPin = () => { readonly pin: string; onRefused(): void } | { readonly why: string };

const MAX_PIN_BYTES = 255;
const MAX_REMEMBERED = 32;

/** `token` names the token in the record. */
export const pinFromFile =
  (file: string | undefined, token: string, dataDir: string): ReadPin =>
  () => {
    if (file === undefined)
      return { why: 'there is no PIN for its token: set RESEAL_HSM_PIN_FILE, or pin-source in its URI' };
    try {
      const { ino, size, mtimeMs } = statSync(file);
      const stamp = `${token} ${file} ${ino} ${size} ${mtimeMs}`;
      if (isReadableByOthers(file))
        return { why: `the PIN file ${file} can be read by other users: chmod 600 ${file}` };
      if (refusedIn(dataDir).includes(stamp)) {
        return {
          why: `the token has refused the PIN in ${file}; it is not tried again until the file is written anew`,
        };
      }
      const pin = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
      if (pin === '' || Buffer.byteLength(pin) > MAX_PIN_BYTES || pin.includes('\n')) {
        return { why: `the PIN file ${file} does not hold one line` };
      }
      return { pin, onRefused: () => remember(dataDir, stamp) };
    } catch (error) {
      return { why: `the PIN file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})` };
    }
  };

/** Typed by a person: tried once. */
export const pinGiven = (pin: string): ReadPin => {
  let isRefused = false;
  return () =>
    isRefused
      ? { why: 'the token has refused the PIN' }
      : {
          pin,
          onRefused() {
            isRefused = true;
          },
        };
};

const recordIn = (dataDir: string): string => join(dataDir, 'hsm-refused-pins.json');

function refusedIn(dataDir: string): string[] {
  try {
    const stamps: unknown = JSON.parse(readFileSync(recordIn(dataDir), 'utf8'));
    return Array.isArray(stamps) ? stamps.map(String) : [];
  } catch {
    return [];
  }
}

function remember(dataDir: string, stamp: string): void {
  const stamps = [...refusedIn(dataDir).filter((one) => one !== stamp), stamp].slice(-MAX_REMEMBERED);
  const file = recordIn(dataDir);
  try {
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(stamps), { mode: 0o600 });
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // Then this process alone knows: it stays blocked until the file changes.
  }
}
