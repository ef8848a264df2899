// What no reissue can do without, measured in the process that runs the bench while nothing else runs: the cryptography in
// it, and the disk's fsync.
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { medianOf } from './comparison.ts';

export type Kind = 'p256' | 'rsa2048';

const MESSAGE = Buffer.alloc(1_000, 1);
const KEYS = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  rsa2048: generateKeyPairSync('rsa', { modulusLength: 2048 }),
} satisfies Record<Kind, unknown>;
const SIGNATURES = {
  p256: sign('sha256', MESSAGE, KEYS.p256.privateKey),
  rsa2048: sign('sha256', MESSAGE, KEYS.rsa2048.privateKey),
} satisfies Record<Kind, unknown>;
const LOOP = { p256: 1_000, rsa2048: 200 } satisfies Record<Kind, number>;

/** CPU of one verify and one sign, in a hot loop. */
export function verifyAndSign(kind: Kind): number {
  const { privateKey, publicKey } = KEYS[kind];
  const before = process.cpuUsage();
  for (let count = 0; count < LOOP[kind]; count += 1) {
    verify('sha256', MESSAGE, publicKey, SIGNATURES[kind]);
    sign('sha256', MESSAGE, privateKey);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / LOOP[kind];
}

const PAGE = Buffer.alloc(4_096, 1);
const PAGES = 256;

/** Median milliseconds of overwriting a page and syncing it, as a commit to the WAL does. */
export function fsyncMs(folder: string): number {
  const descriptor = openSync(join(folder, 'fsync'), 'w');
  try {
    for (let page = 0; page < PAGES; page += 1) writeSync(descriptor, PAGE, 0, PAGE.length, PAGE.length * page);
    fsyncSync(descriptor);
    const durations: number[] = [];
    for (let page = 0; page < PAGES; page += 1) {
      const begun = performance.now();
      writeSync(descriptor, PAGE, 0, PAGE.length, PAGE.length * page);
      fsyncSync(descriptor);
      durations.push(performance.now() - begun);
    }
    return medianOf(durations.sort((one, other) => one - other));
  } finally {
    closeSync(descriptor);
  }
}
