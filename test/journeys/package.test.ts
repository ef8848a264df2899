// The package as npm packs it, below a node_modules folder, in a bare environment: what it contains, and that it serves. The
// dependencies are those of this checkout; campaign "package" installs it from the registry.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newFolder } from '../support/app.ts';
import { OLDER_NODE } from '../support/older-node.ts';
import { RunningProcess } from '../support/process.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const prefix = newFolder();
const HOME = newFolder();
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--json', '--pack-destination', prefix], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })
    // What scripts print comes first.
    .replace(/^[^[]*/, ''),
) as [{ filename: string; files: { path: string }[] }];
const modules = join(prefix, 'lib/node_modules/reseal');
mkdirSync(modules, { recursive: true });
execFileSync('tar', ['-xzf', join(prefix, packed.filename), '-C', modules, '--strip-components=1']);
symlinkSync(join(ROOT, 'node_modules'), join(modules, 'node_modules'));
mkdirSync(join(prefix, 'bin'));
symlinkSync(join(modules, 'bin/reseal.mjs'), join(prefix, 'bin/reseal'));
chmodSync(join(modules, 'bin/reseal.mjs'), 0o755);
// As a shell finds it: by its name, through a symbolic link, with whichever Node is on the PATH.
const node = OLDER_NODE ?? process.execPath;
const env = { PATH: [join(prefix, 'bin'), join(node, '..'), '/usr/bin', '/bin'].join(':'), HOME };
const run = (...args: string[]): string =>
  execFileSync('reseal', args, { cwd: HOME, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

test('the package has what the program needs, and no tests, benches or sources with types', () => {
  const paths = packed.files.map(({ path }) => path);
  for (const migration of globSync('migrations/*.sql', { cwd: ROOT })) assert.ok(paths.includes(migration), migration);
  for (const file of globSync('src/console/**/*.{ts,css,html}', { cwd: ROOT })) {
    assert.ok(paths.includes(file.replace('src', 'dist').replace(/\.ts$/, '.js')), file);
  }
  const needed = [
    'bin/reseal.mjs',
    'dist/main.js',
    'dist/adapters/workers/worker.js',
    'npm-shrinkwrap.json',
    'sbom.cdx.json',
    'bin/runtimes.json',
    'README.md',
  ];
  for (const file of [...needed, 'docs/operations.md', 'deploy/reseal.service']) assert.ok(paths.includes(file), file);
  const strays = paths.filter((path) => /^(src|test|bench|campaigns|scripts|data)\/|\.ts$|seal\.key|\.db$/.test(path));
  assert.deepEqual(strays, []);
  for (const path of paths.filter((one) => one.startsWith('dist/') && one.endsWith('.js'))) {
    assert.doesNotMatch(readFileSync(join(modules, path), 'utf8'), /['"`]\.{1,2}\/[^'"`\n]+\.ts['"`]/, path);
  }
});

test('its SBOM lists what an installation has, with digests, and nothing else', () => {
  const sbom = JSON.parse(readFileSync(join(modules, 'sbom.cdx.json'), 'utf8'));
  const { packages } = JSON.parse(readFileSync(join(modules, 'npm-shrinkwrap.json'), 'utf8'));
  const locked = Object.entries<{ version: string; dev?: true; integrity: string }>(packages)
    .filter(([path, { dev }]) => path !== '' && !dev)
    .map(
      ([path, { version, integrity }]) => `${path.replace(/^.*node_modules\//, '')}@${version} ${digestIn(integrity)}`,
    );
  const listed = sbom.components.map(
    ({ name, version, hashes }: { name: string; version: string; hashes: { alg: string; content: string }[] }) =>
      `${name}@${version} ${hashes.find(({ alg }) => alg === 'SHA-512')?.content}`,
  );
  assert.ok(listed.length > 50);
  assert.deepEqual(new Set(listed), new Set(locked));
  const { name, version } = sbom.metadata.component;
  assert.deepEqual(
    [sbom.bomFormat, name, version, sbom.metadata.timestamp],
    ['CycloneDX', 'reseal', packages[''].version, undefined],
    'the same sources give the same SBOM',
  );
});

const digestIn = (integrity: string): string => Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');

test('it runs by its name, and hints use that name', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.equal(run('--version'), `${version}\n`);
  assert.match(run('account', 'create', 'Acme'), /Next, a key for it: reseal key create /);
});

test('it serves: pages, migrations and worker threads are found', async (context) => {
  context.diagnostic(`started with ${node}${OLDER_NODE ? ', which switches to the pinned runtime' : ''}`);
  const data = newFolder();
  const settings = { ...env, RESEAL_DATA_DIR: data, RESEAL_PORT: '0' };
  const child = spawn('reseal', ['sandbox'], {
    cwd: HOME,
    env: settings,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  await using sandbox = new RunningProcess(child);
  await sandbox.said(/Start afresh with: (reseal sandbox reset)/);
  const { base_url: url, accounts, orders } = JSON.parse(readFileSync(join(data, 'sandbox.json'), 'utf8'));
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  const [, entry] = /<script type="module" src="([^"]+)"/.exec(await (await fetch(`${url}/docs`)).text()) ?? [];
  assert.equal(
    (await fetch(new URL(entry ?? '', `${url}/docs`))).headers.get('content-type'),
    'text/javascript; charset=utf-8',
  );
  const { key_id, auth_key } = accounts[0].credentials[0];
  const { id } = orders.find(({ product }: { product: string }) => product === 'document-signing');
  const answer = await fetch(`${url}/openapi/v3/orders/${id}/reissue`, {
    method: 'POST',
    headers: { 'X-CC-Key-ID': key_id, 'X-CC-Auth-Key': auth_key, 'Content-Type': 'application/json' },
    // The service makes the key, in a worker thread.
    body: JSON.stringify({
      certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' },
      sign_key_pin: 'my-access-code',
    }),
  });
  assert.equal(answer.status, 200, await answer.text());
  assert.equal(await sandbox.end('SIGTERM'), 0);
});
