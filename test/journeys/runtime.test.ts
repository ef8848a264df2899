// The pinned runtime: recorded for every platform, the installed one is the recorded one, and any other is not started.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newFolder } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';
import { OLDER_NODE } from '../support/older-node.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (file: string) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));

interface Recorded {
  readonly package: string;
  readonly version: string;
  readonly file: string;
  readonly sha256: string;
}
const RUNTIMES: Readonly<Record<string, Recorded>> = read('bin/runtimes.json');
const HERE = `${process.platform}-${process.arch}`;

test('the record names the packages and versions that are installed, one version per family of systems', () => {
  // The other optional one is a library, for keys in tokens.
  const { koffi: _, ...optionalDependencies } = read('package.json').optionalDependencies;
  const { packages } = read('package-lock.json');
  const recorded = Object.values(RUNTIMES);
  assert.deepEqual(Object.fromEntries(recorded.map((one) => [one.package, one.version])), optionalDependencies);
  for (const { package: name, version, sha256 } of recorded) {
    const locked = packages[`node_modules/${name}`];
    assert.deepEqual([locked.version, /^sha512-/.test(locked.integrity)], [version, true], name);
    assert.match(sha256, /^[0-9a-f]{64}$/);
  }
  const versionsOf = (isMac: boolean) =>
    new Set(
      Object.entries(RUNTIMES).flatMap(([key, one]) => (key.startsWith('darwin') === isMac ? [one.version] : [])),
    );
  // No 24 that is new enough is packaged for macOS (ADR 0048).
  assert.deepEqual([versionsOf(false).size, versionsOf(true).size], [1, 1]);
});

/** An installation with another binary under the name of the pinned one. */
function installation(binary: string): string {
  const folder = newFolder();
  cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true });
  const { package: name, file } = RUNTIMES[HERE] ?? assert.fail(`nothing is recorded for ${HERE}`);
  const path = join(folder, 'node_modules', name);
  mkdirSync(join(path, 'bin'), { recursive: true });
  writeFileSync(join(path, 'package.json'), '{}');
  writeFileSync(join(path, file), binary);
  chmodSync(join(path, file), 0o755);
  return folder;
}

const TAMPERED = '#!/bin/sh\necho tampered\n';

rule('ops 44', 'only if its SHA-256 is the recorded one', async (context) => {
  const { isAsRecorded } = await import(join(ROOT, 'bin/pinned-runtime.mjs'));
  const folder = installation(TAMPERED);
  const binary = join(folder, 'node_modules', RUNTIMES[HERE]?.package ?? '', RUNTIMES[HERE]?.file ?? '');
  const sha256 = createHash('sha256').update(TAMPERED).digest('hex');
  const cache = newFolder();
  assert.equal(isAsRecorded({ binary, sha256: RUNTIMES[HERE]?.sha256 }, cache), false);
  for (const time of ['first', 'remembered']) assert.equal(isAsRecorded({ binary, sha256 }, cache), true, time);
  assert.equal(isAsRecorded({ binary, sha256: '0'.repeat(64) }, cache), false, 'remembered for that digest only');
  // Replaced by a file of the same size and date.
  const dated = new Date(1_000_000_000_000);
  utimesSync(binary, dated, dated);
  assert.equal(isAsRecorded({ binary, sha256 }, cache), true);
  writeFileSync(binary, TAMPERED.replace('tampered', 'TAMPERED'));
  utimesSync(binary, dated, dated);
  assert.equal(isAsRecorded({ binary, sha256 }, cache), false, 'the memory is not fooled by size and date');

  context.diagnostic(OLDER_NODE ? 'with the launcher on an older Node' : 'no older Node here: without the launcher');
  if (!OLDER_NODE) return;
  const started = spawnSync(OLDER_NODE, [join(folder, 'bin/reseal.mjs'), '--version'], { encoding: 'utf8' });
  assert.deepEqual([started.status, started.stdout], [3, '']);
  assert.match(started.stderr, /is not the one that was recorded: its SHA-256 is not [0-9a-f]{64}\.\nWhat to do: /);
});

test('the doctor says which runtime it is', async () => {
  const { out } = await reseal(['doctor'], { RESEAL_DATA_DIR: newFolder(), RESEAL_DNS_SERVERS: '127.0.0.1:1' });
  const line = /^\S+ +runtime +(.*)$/m.exec(out)?.[1];
  const isPinned = process.execPath.includes(RUNTIMES[HERE]?.package ?? '?');
  assert.equal(
    line,
    `Node ${process.versions.node}${isPinned ? ', bundled, with the recorded digest' : ' of this machine'}`,
  );
});
