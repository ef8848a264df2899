// Executes docs/operations.md against Debian's own PostgreSQL, literally: dump and restore with its client, and
// point-in-time recovery with its server, under load. Every shell block of the document that names this campaign is run.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { environmentFor } from '../test/support/callback-app.ts';
import { HOST, Outside } from '../test/support/outside.ts';
import {
  type Fact,
  judgeRestored,
  type Load,
  mirror,
  subscribe,
  textOf,
  untilMore,
  writeUntil,
} from './backup-load.ts';
import type { Campaign, Print } from './campaign.ts';
import { placeOrders } from './reissues.ts';
import { type Settings, startService } from './service.ts';

const DOCUMENT = new URL('../docs/operations.md', import.meta.url);
const LAUNCHER = fileURLToPath(new URL('../bin/reseal.mjs', import.meta.url));
/** The server refuses to run as root. */
const isRoot = process.getuid?.() === 0;
const NOBODY = { uid: 65_534, gid: 65_534 };
const identity = isRoot ? NOBODY : {};
const ORDERS = 8;
const BETWEEN = 60;

/** The shell block of the document that follows the campaign's mark. */
function blockOf(name: string): string {
  const text = readFileSync(DOCUMENT, 'utf8');
  const mark = `<!-- executed by campaign backup-postgres: ${name} -->\n\`\`\`sh\n`;
  const start = text.indexOf(mark);
  if (start < 0) throw new Error(`docs/operations.md has no block "${name}"`);
  return text.slice(start + mark.length, text.indexOf('\n```', start + mark.length));
}

class Debian implements AsyncDisposable {
  readonly bin: string;
  readonly folder: string;
  readonly #servers: string[] = [];

  constructor(folder: string) {
    const [bin] = globSync('/usr/lib/postgresql/*/bin').sort().reverse();
    if (!bin || !existsSync(join(bin, 'pg_dump'))) throw new Error('Debian’s postgresql is not installed');
    this.bin = bin;
    this.folder = folder;
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin/reseal'), `#!/bin/sh\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`, {
      mode: 0o755,
    });
  }

  /** Runs a program of the distribution as the server's user. */
  run(program: string, args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(join(this.bin, program), args, {
      ...identity,
      cwd: '/',
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`${program} failed: ${stderr}`);
    return stdout;
  }

  /** Runs a block of the document with `sh -e`. */
  async block(name: string, environment: Settings, asServer = false): Promise<string> {
    const env = { PATH: `${join(this.folder, 'bin')}:${this.bin}:/usr/bin:/bin`, HOME: this.folder, ...environment };
    const shell = spawn('/bin/sh', ['-e', '-c', blockOf(name)], {
      ...(asServer ? identity : {}),
      ...{ env, cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] },
    });
    let output = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk) => (output += chunk));
    const [code] = await once(shell, 'close');
    if (code !== 0) throw new Error(`the block "${name}" ended with ${code}: ${output}`);
    return output;
  }

  /** A new cluster that archives its WAL. */
  async start(data: string, archive: string): Promise<string> {
    const port = await freePort();
    this.run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale']);
    writeFileSync(
      join(data, 'postgresql.auto.conf'),
      [
        `port = ${port}`,
        "listen_addresses = '127.0.0.1'",
        "unix_socket_directories = ''",
        'archive_mode = on',
        `archive_command = 'test ! -f ${archive}/%f && cp %p ${archive}/%f'`,
        '',
      ].join('\n'),
    );
    this.adopt(data);
    this.run('pg_ctl', ['-D', data, '-l', join(data, 'log'), '-w', 'start']);
    return `postgres://postgres@127.0.0.1:${port}/`;
  }

  /** Stopped in the end, whoever started it. */
  adopt(data: string): void {
    this.#servers.push(data);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const data of this.#servers) {
      spawnSync(join(this.bin, 'pg_ctl'), ['-D', data, '-m', 'fast', '-w', 'stop'], { ...identity, cwd: '/' });
    }
  }
}

async function freePort(): Promise<number> {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as net.AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

const crlsIn = (folder: string): Map<string, Buffer> =>
  new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));

async function executeDocument(dumps: number, print: Print): Promise<string[]> {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'reseal-debian-'));
  const folder = temporary.path;
  chmodSync(folder, 0o755);
  const [archive, servers] = [join(folder, 'archive'), join(folder, 'servers')];
  for (const one of [archive, servers]) {
    mkdirSync(one);
    if (isRoot) chownSync(one, NOBODY.uid, NOBODY.gid);
  }
  await using debian = new Debian(folder);
  await using outside = await Outside.open();
  const receiver = await outside.receiver();
  const server = await debian.start(join(servers, 'data'), archive);
  print(debian.run('postgres', ['--version']).trim());
  const admin = { ADMIN_URL: `${server}postgres` };
  debian.run('psql', [admin.ADMIN_URL, '-c', 'create database reseal']);
  const live = join(folder, 'live');
  const settings = {
    ...{ RESEAL_DATA_DIR: live, RESEAL_DATABASE_URL: `${server}reseal`, ...(environmentFor(outside) as Settings) },
  };
  const orders = await placeOrders(settings, ORDERS);
  await subscribe(settings, orders, `https://${HOST}:${receiver.port}/`);
  const broken: string[] = [];
  const load: Load = { facts: [], isPaused: false };
  const { facts } = load;
  const stopping = new AbortController();
  const service = await startService(settings);
  const writing = writeUntil(service, orders, load, stopping.signal);

  async function judge(name: string, url: string, known: readonly Fact[], crls: string): Promise<void> {
    const dataDir = join(folder, name);
    mkdirSync(dataDir, { recursive: true });
    copyFileSync(join(live, 'seal.key'), join(dataDir, 'seal.key'));
    const restored = { ...settings, RESEAL_DATA_DIR: dataDir, RESEAL_DATABASE_URL: url };
    const judgement = await judgeRestored({ settings: restored, facts: known, crls: crlsIn(crls) });
    broken.push(...judgement.broken);
    print(`${name}: ${textOf(judgement)}`);
  }

  try {
    await debian.block('base', { ...admin, BASE: join(servers, 'base') }, true);
    for (let round = 1; round <= dumps; round += 1) {
      await untilMore(load, BETWEEN);
      const known = [...facts];
      const backup = { ...settings, BACKUP: join(folder, `dump-${round}`) };
      await debian.block('dump', backup);
      const crls = join(folder, `crls-${round}`);
      await mirror(service, settings, crls);
      const restored = { ...backup, ...admin, RESTORED_URL: `${server}reseal_restored`, CRLS: crls };
      await debian.block('restore', restored);
      load.isPaused = true;
      await judge(`dump ${round}`, restored.RESTORED_URL, known, crls);
      debian.run('psql', [admin.ADMIN_URL, '-c', 'drop database reseal_restored with (force)']);
    }
    await untilMore(load, BETWEEN);
    const known = [...facts];
    await sleep(1_000);
    const target = new Date().toISOString().replace('T', ' ').replace('Z', '+00');
    await untilMore(load, BETWEEN);
    stopping.abort();
    await writing;
    const crls = join(folder, 'crls');
    await mirror(service, settings, crls);
    debian.run('psql', [admin.ADMIN_URL, '-c', 'select pg_switch_wal()']);
    debian.run('pg_ctl', ['-D', join(servers, 'data'), '-m', 'fast', '-w', 'stop']);
    const port = String(await freePort());
    const recovered = { data: join(servers, 'recovered'), url: `postgres://postgres@127.0.0.1:${port}/` };
    debian.adopt(recovered.data);
    await debian.block(
      'recover',
      {
        ...{ BASE: join(servers, 'base'), RECOVERED: recovered.data, ARCHIVE: archive, TARGET: target, PORT: port },
        RECOVERED_ADMIN_URL: `${recovered.url}postgres`,
      },
      true,
    );
    await debian.block('import', { ...settings, RECOVERED_URL: `${recovered.url}reseal`, CRLS: crls });
    await judge(`recovered to ${target}`, `${recovered.url}reseal`, known, crls);
  } finally {
    stopping.abort();
    await service.process.end('SIGKILL');
  }
  return broken;
}

export const backupPostgres: Campaign = {
  about: 'docs/operations.md executed with Debian’s PostgreSQL under load: N dumps, and recovery to a point in time',
  defaultN: 3,
  run: executeDocument,
};
