// Installs the package as an operator does: packed here, installed from the registry into an empty folder, started in a bare
// environment by its name. Needs the network; test/journeys/package.test.ts is the version without.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Campaign } from './campaign.ts';

const ROOT = new URL('../', import.meta.url).pathname;
const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin';
const START_MS = 60_000;

export const packageInstall: Campaign = {
  about: 'installs the package from the registry into an empty folder, and serves in a bare environment',
  defaultN: 1,
  async run(n, print) {
    const broken: string[] = [];
    for (let round = 1; round <= n; round += 1) broken.push(...(await install(print)));
    return broken;
  },
};

async function install(print: (line: string) => void): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-package-'));
  try {
    execFileSync('npm', ['pack', '--pack-destination', folder], { cwd: ROOT, stdio: 'pipe' });
    const [tarball = ''] = readdirSync(folder);
    const options = ['--global', '--prefix', folder, '--no-audit', '--no-fund'];
    // Not with this Node, which npm has put on the PATH: the launcher must find a runtime by itself.
    const own = { ...process.env, PATH: SYSTEM_PATH };
    execFileSync('npm', ['install', ...options, join(folder, tarball)], { env: own, stdio: 'pipe' });
    const env = { PATH: `${join(folder, 'bin')}:${SYSTEM_PATH}`, HOME: folder };
    const version = execFileSync('reseal', ['--version'], { cwd: folder, env, encoding: 'utf8' }).trim();
    print(`${tarball}: reseal --version says ${version}`);
    const service = spawn('reseal', ['serve'], { cwd: folder, env: { ...env, RESEAL_PORT: '0' }, stdio: 'pipe' });
    const ended = once(service, 'exit');
    try {
      const url = await listening(service.stdout);
      const { status } = await fetch(`${url}/healthz`);
      print(`GET ${url}/healthz: ${status}`);
      return status === 200 ? [] : [`/healthz answered ${status}`];
    } finally {
      service.kill('SIGTERM');
      await ended;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function listening(output: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  const deadline = AbortSignal.timeout(START_MS);
  for (;;) {
    const [chunk] = await once(output, 'data', { signal: deadline });
    text += chunk;
    const url = /"listening","text":"(http:[^ ]+)/.exec(text)?.[1];
    if (url) return url;
  }
}
