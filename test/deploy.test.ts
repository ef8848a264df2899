// What can be checked of deploy/ without a container engine: the rules that linters of Dockerfiles have, variables that exist,
// a settings file that commands read, and the unit, by systemd itself where it is installed.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../src/config/config.ts';
import { readEnvFile } from '../src/config/env-file.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { newFolder } from './support/app.ts';

const ROOT = new URL('../', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const DOCKERFILE = read('deploy/Dockerfile');
const COMPOSE = read('deploy/compose.yaml');
const UNIT = read('deploy/reseal.service');

/** Instructions with their continuation lines joined. */
const INSTRUCTIONS = DOCKERFILE.replace(/^#.*\n/gm, '')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line.trim() !== '');
const instruction = (name: string): string[] =>
  INSTRUCTIONS.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1).trim());

test('variables that deploy files set exist', () => {
  // Names of the compose project's own, from its .env file.
  const own = ['RESEAL_SITE', 'RESEAL_PKI_SITE'];
  for (const file of globSync('deploy/**/*', { cwd: ROOT, withFileTypes: true }).filter((one) => one.isFile())) {
    const text = readFileSync(join(file.parentPath, file.name), 'utf8');
    for (const [name] of text.matchAll(/\bRESEAL_[A-Z_]+\b/g)) {
      assert.ok(name in VARIABLES || own.includes(name), `${file.name} has ${name}`);
    }
  }
});

test('images are pinned to a version, and Node is 24', () => {
  const images = [...instruction('FROM'), ...[...COMPOSE.matchAll(/^ +image: (.+)$/gm)].map(([, image = '']) => image)];
  for (const image of images.filter((one) => !one.endsWith(':local'))) {
    assert.match(image, /^[a-z]+:\d+(\.\d+)+-[a-z-]+( AS [a-z]+)?$/, image);
  }
  for (const base of instruction('FROM')) assert.match(base, /^node:24\./);
});

test('the container does not run as root, and its process gets the signals', () => {
  const [user = ''] = instruction('USER');
  assert.match(user, /^[1-9]\d*:[1-9]\d*$/);
  const last = INSTRUCTIONS.findIndex((line) => line.startsWith('USER '));
  assert.ok(
    INSTRUCTIONS.slice(last).every((line) => !/^(RUN|COPY|ADD) /.test(line)),
    'nothing is built as that user',
  );
  for (const form of [...instruction('ENTRYPOINT'), ...instruction('CMD')]) assert.ok(Array.isArray(JSON.parse(form)));
  assert.deepEqual(
    [JSON.parse(instruction('ENTRYPOINT')[0] ?? ''), instruction('STOPSIGNAL')],
    [['reseal'], ['SIGTERM']],
  );
  assert.equal(instruction('ADD').length, 0);
  // A service in compose.yaml ends where the next begins.
  const shared = /^x-reseal:.*?^services:/ms.exec(COMPOSE)?.[0] ?? '';
  for (const line of ['read_only: true', 'cap_drop: [ALL]', 'no-new-privileges:true'])
    assert.ok(shared.includes(line), line);
});

test('the resolver validates, forgets soon, and is the one that the service asks', (context) => {
  const settings = read('deploy/unbound.conf');
  for (const line of [
    'cache-max-ttl: 30',
    'cache-max-negative-ttl: 5',
    'module-config: "validator iterator"',
    'ede: yes',
  ])
    assert.ok(settings.includes(`\n    ${line}\n`), line);
  assert.ok(
    COMPOSE.includes('RESEAL_DNS_SERVERS: 172.30.77.53:5353\n') && COMPOSE.includes('ipv4_address: 172.30.77.53\n'),
  );
  const image = read('deploy/Dockerfile.unbound');
  assert.match(image, /^FROM debian:\d+\.\d+-slim$/m);
  assert.ok(image.includes('port: 5353') && image.includes('COPY deploy/unbound.conf '));
  const file = join(newFolder(), 'unbound.conf');
  // The trust anchor is in another package.
  writeFileSync(file, settings.replace(/^ +trust-anchor-file:.*$/m, ''));
  const { error, status, stdout, stderr } = spawnSync('unbound-checkconf', [file], { encoding: 'utf8' });
  if (error) return context.diagnostic('there is no unbound-checkconf on this machine');
  assert.equal(status, 0, stdout + stderr);
});

test('the health check runs, and tells a listening service from none', () => {
  const [check = ''] = instruction('HEALTHCHECK');
  const [, script = ''] = /CMD (\[.*\])$/.exec(check) ?? [];
  const [program, ...args] = JSON.parse(script) as string[];
  assert.equal(program, 'node');
  const none = spawnSync(process.execPath, args, { env: { RESEAL_PORT: '1' }, timeout: 10_000 });
  assert.equal(none.status, 1);
  const server = `require('http').createServer((q, a) => a.writeHead(q.url === '/healthz' ? 200 : 404).end()).listen(0, '127.0.0.1', function () {
    const env = { RESEAL_PORT: String(this.address().port) };
    require('child_process').spawn(process.execPath, ${JSON.stringify(args)}, { env }).on('exit', (code) => process.exit(code));
  })`;
  assert.equal(spawnSync(process.execPath, ['-e', server], { timeout: 10_000 }).status, 0);
});

test('the build context has what npm packs', () => {
  const allowed: readonly string[] = read('.dockerignore').match(/(?<=^!).+$/gm) ?? [];
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  const made = ['dist', 'npm-shrinkwrap.json', 'sbom.cdx.json'];
  for (const file of [...files.filter((one) => !made.includes(one)), 'src', 'scripts', 'package-lock.json']) {
    assert.ok(allowed.includes(file), file);
  }
});

test('the settings file is read by commands as by systemd, and is a valid configuration', () => {
  const values = readEnvFile(join(ROOT, 'deploy/reseal.env'), {});
  const { config, warnings } = readConfig(values);
  assert.deepEqual(
    [warnings, config.authority.organization, config.publicUrl],
    [[], 'Example Ltd', 'https://certs.example.com'],
  );
});

test('the unit is hardened, and valid where systemd can tell', (context) => {
  for (const line of [
    'User=reseal',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
    'CapabilityBoundingSet=',
    'UMask=0077',
  ]) {
    assert.ok(UNIT.includes(`\n${line}\n`), line);
  }
  assert.ok(UNIT.includes('\nEnvironmentFile=/etc/reseal/reseal.env\n'));
  const file = join(newFolder(), 'reseal.service');
  writeFileSync(file, UNIT.replace('/usr/local/bin/reseal', '/bin/true'));
  const { error, stdout, stderr, status } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  if (error) return context.diagnostic('there is no systemd-analyze on this machine');
  assert.deepEqual([status, stdout + stderr], [0, '']);
  const security = execFileSync('systemd-analyze', ['security', '--offline=true', '--no-pager', file], {
    encoding: 'utf8',
  });
  const [, exposure = '10'] = /exposure level for reseal\.service: ([\d.]+)/.exec(security) ?? [];
  context.diagnostic(`exposure ${exposure} of 10`);
  assert.ok(Number(exposure) < 2, security);
});
