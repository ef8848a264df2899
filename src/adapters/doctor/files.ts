// Checks the data folder, the seal key and the TLS files: existence, permissions, disk space, expiry.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS } from '../../kernel/durations.ts';
import { type Diagnostic, Problem } from '../../kernel/problem.ts';
import type { SealKeySource } from '../seal/seal-check.ts';
import { isForeign, isReadableByOthers, isWritableByOthers, readSealKeyFile } from '../seal/seal-key-file.ts';

const PRIVATE = /^(reseal\.db(-wal|-shm)?|seal\.key|sandbox\.json)$/;
const LOW_DISK_BYTES = 200 * 1024 * 1024;
const RENEW_DAYS = 14;

export function checkFolder(folder: string): Diagnostic {
  const check = 'data folder';
  if (!existsSync(folder)) {
    return { check, state: 'ok', text: `${folder} does not exist yet; the first start creates it` };
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return {
      check,
      state: 'problem',
      text: `this user may not write in ${folder}`,
      remedy: `chown it, or set RESEAL_DATA_DIR`,
    };
  }
  if (isForeign(folder)) {
    const remedy = `Run Reseal as that user, or take it over: chown -R "$(id -un)" ${folder}`;
    return { check, state: 'problem', text: `another user owns ${folder}`, remedy };
  }
  if (isWritableByOthers(folder)) {
    return { check, state: 'problem', text: `other users can write in ${folder}`, remedy: `chmod go-w ${folder}` };
  }
  const open = readdirSync(folder).filter((name) => PRIVATE.test(name) && isReadableByOthers(join(folder, name)));
  if (open.length > 0 && isReadableByOthers(folder)) {
    const paths = [folder, ...open.map((name) => join(folder, name))].join(' ');
    return {
      check,
      state: 'problem',
      text: `other users can read ${open.join(', ')}`,
      remedy: `chmod go-rwx ${paths}`,
    };
  }
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < LOW_DISK_BYTES) {
    const free = Math.round((bavail * bsize) / 1024 / 1024);
    return {
      check,
      state: 'warning',
      text: `only ${free} MiB are free in ${folder}`,
      remedy: 'Free some space: a full disk stops every write.',
    };
  }
  if (isReadableByOthers(folder)) {
    const text = `${folder} is not private: other users can list it`;
    return { check, state: 'warning', text, remedy: `chmod 700 ${folder}` };
  }
  return { check, state: 'ok', text: `${folder} is writable and private` };
}

export function checkSealKey(source: SealKeySource): Diagnostic {
  const check = 'seal key';
  if (source.kind === 'text') return { check, state: 'ok', text: 'from RESEAL_SEAL_KEY' };
  try {
    const keys = readSealKeyFile(source.file);
    return keys
      ? {
          check,
          state: 'ok',
          text: `${source.file}, mode 0600, ${keys.length === 1 ? 'one key' : `${keys.length} keys`}`,
        }
      : { check, state: 'ok', text: `${source.file} does not exist yet; the first start creates it` };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { check, state: 'problem', text: error.message, remedy: error.remedy };
  }
}

export function checkTls(tls: { certFile: string; keyFile: string } | undefined, now: number): Diagnostic {
  const check = 'TLS';
  if (!tls) return { check, state: 'ok', text: 'not configured: HTTP, for this machine or behind a proxy' };
  const { certFile, keyFile } = tls;
  try {
    const certificate = new X509Certificate(readFileSync(certFile));
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile)))) {
      return {
        check,
        state: 'problem',
        text: `${keyFile} is not the key of ${certFile}`,
        remedy: 'Use a matching certificate and key.',
      };
    }
    const days = Math.floor((certificate.validToDate.getTime() - now) / DAY_MS);
    if (days < 0) return { check, state: 'problem', text: `${certFile} has expired`, remedy: 'Renew it and restart.' };
    if (days < RENEW_DAYS)
      return { check, state: 'warning', text: `${certFile} expires in ${days} days`, remedy: 'Renew it and restart.' };
    return { check, state: 'ok', text: `${certFile} is valid for ${days} days` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return {
      check,
      state: 'problem',
      text: `certificate or key cannot be read (${code})`,
      remedy: `Check ${certFile} and ${keyFile}: both are PEM files.`,
    };
  }
}
