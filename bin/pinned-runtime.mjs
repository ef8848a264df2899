// The runtime that npm brought along, and whether it is the one that was recorded. Plain JavaScript, as the launcher.
// Hashing it takes a third of a second, so the result is remembered for as long as the file stays the same. What this
// detects, and what it cannot, is in docs/adr/0048-supply-chain.md.
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, readSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const CACHE = fileURLToPath(new URL('../node_modules/.cache/reseal', import.meta.url));
const RUNTIMES = JSON.parse(readFileSync(new URL('./runtimes.json', import.meta.url), 'utf8'));
const CHUNK_BYTES = 1024 * 1024;

/** Undefined where there is none for the platform, or where it is not installed. */
export function pinnedRuntime() {
  const recorded = RUNTIMES[`${process.platform}-${process.arch}`];
  if (!recorded) return undefined;
  try {
    const manifest = module.createRequire(import.meta.url).resolve(`${recorded.package}/package.json`);
    return { binary: realpathSync(join(dirname(manifest), recorded.file)), sha256: recorded.sha256 };
  } catch {
    return undefined;
  }
}

/** Whether the file has the recorded digest. Throws if it cannot be read. */
export function isAsRecorded({ binary, sha256 }, cache = CACHE) {
  const { size, mtimeNs, ctimeNs, ino } = statSync(binary, { bigint: true });
  // The time of the last change cannot be set, other than that of the last modification.
  const state = `${sha256} ${ino} ${size} ${mtimeNs} ${ctimeNs} ${binary}`;
  const file = join(cache, 'runtime');
  try {
    if (readFileSync(file, 'utf8') === state) return true;
  } catch {
    // Not examined yet.
  }
  if (digestOf(binary) !== sha256) return false;
  try {
    mkdirSync(cache, { recursive: true });
    writeFileSync(file, state);
  } catch {
    // In a folder that is not writable it is hashed at every start.
  }
  return true;
}

function digestOf(binary) {
  const hash = createHash('sha256');
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const descriptor = openSync(binary, 'r');
  try {
    for (let read = readSync(descriptor, chunk); read > 0; read = readSync(descriptor, chunk)) {
      hash.update(chunk.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest('hex');
}
