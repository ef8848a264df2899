// A damaged database and a full disk, as operators meet them: at a start, in /readyz, in the log and from the doctor.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { newUsedFolder, startApp, TestApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { damageSqlite } from '../support/damage.ts';
import { reseal } from '../support/in-process.ts';
import { spawnReseal, startReseal } from '../support/process.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/reseal.mjs', import.meta.url));
/** An index that no start and no chore reads. */
const QUIET = 'sqlite_autoindex_callback_settings_1';
const READ_IT = '/openapi/v3/account/callback';

async function damagedFolder(name: string): Promise<string> {
  const folder = await newUsedFolder();
  damageSqlite(join(folder, 'reseal.db'), name);
  return folder;
}

/** No file may grow beyond 512 bytes, which SQLite reports like any other failure to write. */
function onFullDisk(args: readonly string[], folder: string) {
  const env = { PATH: process.env.PATH ?? '', RESEAL_DATA_DIR: folder, RESEAL_PORT: '0', RESEAL_WORKERS: '0' };
  const script = 'ulimit -f 1; exec "$@"';
  const { status, stderr } = spawnSync('/bin/sh', ['-c', script, 'sh', process.execPath, LAUNCHER, ...args], {
    env,
    encoding: 'utf8',
  });
  return { code: status, err: stderr };
}

/** A result of /readyz may be a second old. */
async function until503(ask: () => Promise<number>): Promise<void> {
  while ((await ask()) !== 503) await sleep(20);
}

rule('ops 42', 'ends with exit code 4 and one message that says so, with a remedy', async () => {
  const damaged = await damagedFolder('setting');
  const { code, err } = await spawnReseal(['serve'], { RESEAL_DATA_DIR: damaged, RESEAL_PORT: '0' });
  assert.equal(code, 4, err);
  assert.match(
    err,
    /^reseal: the database \S+reseal\.db is damaged: database disk image is malformed\nWhat to do: .*restore FILE/,
  );
  assert.equal(err.trim().split('\n').length, 2, err);
  const several = await spawnReseal(['serve', '--workers', '1'], { RESEAL_DATA_DIR: damaged, RESEAL_PORT: '0' });
  assert.deepEqual([several.code, /is damaged: .*\nWhat to do: /.test(several.err)], [4, true], several.err);
  const command = await reseal(['account', 'create', 'Acme'], {
    RESEAL_DATA_DIR: await damagedFolder('sqlite_autoindex_account_1'),
  });
  assert.deepEqual([command.code, /is damaged: .*\nWhat to do: /.test(command.err)], [4, true], command.err);

  const full = onFullDisk(['serve'], await newUsedFolder());
  assert.equal(full.code, 4, full.err);
  assert.match(full.err, /^reseal: .* cannot be (used|written).*\nWhat to do: Check that the disk has space/);
  assert.equal(full.err.trim().split('\n').length, 2, full.err);
});

rule('ops 41', 'once any statement of any process of the service has met damage', async () => {
  await using first = await startApp();
  const key = await first.newKey();
  await first.stop();
  damageSqlite(join(first.folder, 'reseal.db'), QUIET);
  const app = new TestApp(first.folder);
  await app.start({});
  await using _app = app;
  assert.equal((await app.call('GET', '/readyz')).status, 200, 'nothing has met it yet');
  assert.equal((await app.call('GET', READ_IT, { key })).status, 503);
  const readiness = async () => (await app.call('GET', '/readyz')).status;
  await until503(readiness);
  await app.app.store.probeWrite();
  assert.equal(await readiness(), 503, 'although a write works');
  assert.equal((await app.call('GET', '/openapi/v3/account', { key })).status, 200, 'the rest goes on');
  for (let times = 0; times < 20; times += 1) await app.call('GET', READ_IT, { key });
  const events = app.lines.map(({ event }) => event).filter((event) => event.startsWith('store_'));
  assert.deepEqual(events, ['store_unavailable', 'store_damaged'], 'logged once, however often it is met');
  assert.match((await app.call('GET', '/metrics')).text, /^reseal_store_damaged 1$/m);

  await app.stop();
  await using service = startReseal(['serve', '--workers', '2'], { RESEAL_DATA_DIR: app.folder, RESEAL_PORT: '0' });
  const url = await service.listening();
  // Each connection goes to the next worker.
  const ask = async (path: string, headers = {}) =>
    (await fetch(url + path, { headers: { Connection: 'close', ...headers } })).status;
  assert.deepEqual([await ask('/readyz'), await ask('/readyz')], [200, 200]);
  const own = { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey };
  assert.equal(await ask(READ_IT, own), 503);
  await service.said(/(?:"store_damaged".*\s*[\s\S]*?){3}/);
  await until503(async () => Math.min(await ask('/readyz'), await ask('/readyz')));
});

rule('ops 43', 'reports damage in the files of the database', async () => {
  const settings = { RESEAL_DATA_DIR: await damagedFolder(QUIET), RESEAL_DNS_SERVERS: '127.0.0.1:1' };
  const { code, out } = await reseal(['doctor'], settings);
  assert.equal(code, 1);
  assert.match(out, /^PROBLEM {2}integrity +the database is damaged: .*\n +What to do: .*reseal restore FILE/m);
});

test('the doctor says that the header of the database is damaged', async () => {
  const folder = await damagedFolder('the schema itself');
  const { code, out } = await reseal(['doctor'], { RESEAL_DATA_DIR: folder, RESEAL_DNS_SERVERS: '127.0.0.1:1' });
  assert.deepEqual([code, /^PROBLEM {2}store .*\n +What to do: .*reseal restore FILE/m.test(out)], [1, true], out);
});
