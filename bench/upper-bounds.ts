// What no reissue can do without, measured in the process that runs the bench while nothing else runs: the cryptography in
// it, and the disk's fsync.
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export type Kind = 'p256' | 'rsa2048';

const MESSAGE = Buffer.alloc(1_000, 1);
const REQUESTERS = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  rsa2048: generateKeyPairSync('rsa', { modulusLength: 2048 }),
} satisfies Record<Kind, unknown>;
/** As the service makes them: its RSA issuers have 3072 bits, and sign three times as long as with 2048. */
const ISSUERS = {
  p256: REQUESTERS.p256,
  rsa2048: generateKeyPairSync('rsa', { modulusLength: 3072 }),
} satisfies Record<Kind, unknown>;
const SIGNATURES = {
  p256: sign('sha256', MESSAGE, REQUESTERS.p256.privateKey),
  rsa2048: sign('sha256', MESSAGE, REQUESTERS.rsa2048.privateKey),
} satisfies Record<Kind, unknown>;
const LOOP = { p256: 1_000, rsa2048: 200 } satisfies Record<Kind, number>;

/** CPU of one verify and one sign, in a hot loop. */
export function verifyAndSign(kind: Kind): number {
  const { publicKey } = REQUESTERS[kind];
  const { privateKey } = ISSUERS[kind];
  const before = process.cpuUsage();
  for (let count = 0; count < LOOP[kind]; count += 1) {
    verify('sha256', MESSAGE, publicKey, SIGNATURES[kind]);
    sign('sha256', MESSAGE, privateKey);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / LOOP[kind];
}

const PAGE = Buffer.alloc(4_096, 1);
const PAGES = 32;
/** More than the granularity of a file's times. */
const PAUSE_MS = 5;

/**
 * Milliseconds of overwriting a page and syncing it, as a commit to the WAL does. Paced as single commits are: of syncs in
 * a tight loop, most find the file's times unchanged and skip the file system's journal.
 */
export async function fsyncTimes(folder: string): Promise<number[]> {
  const descriptor = openSync(join(folder, 'fsync'), 'w');
  try {
    writeSync(descriptor, Buffer.alloc(PAGE.length * PAGES));
    fsyncSync(descriptor);
    const times: number[] = [];
    for (let page = 0; page < PAGES; page += 1) {
      await sleep(PAUSE_MS);
      const begun = performance.now();
      writeSync(descriptor, PAGE, 0, PAGE.length, PAGE.length * page);
      fsyncSync(descriptor);
      times.push(performance.now() - begun);
    }
    return times;
  } finally {
    closeSync(descriptor);
  }
}
