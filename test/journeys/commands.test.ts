// One command of each group, spawned as a user runs it: exit code and output equal those of the same command run
// in-process. So what the other journeys prove in-process holds for the real program.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { COMMANDS } from '../../src/cli/commands.ts';
import { startApp } from '../support/app.ts';
import { newCloudKey } from '../support/cloud-keys.ts';
import { reseal } from '../support/in-process.ts';
import { nameServer } from '../support/name-server.ts';
import { newOrder } from '../support/orders.ts';
import { type Finished, spawnReseal } from '../support/process.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const settings = { RESEAL_DATA_DIR: app.folder, RESEAL_DNS_SERVERS: await nameServer() };
const { key, id: order } = await newOrder(app);
const { key: holder } = await newCloudKey(app);
const blocklist = join(app.folder, 'blocklist.txt');
writeFileSync(blocklist, `${'ab'.repeat(32)}\n`);

/** None of them changes the output of the next. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  account: ['account', 'show', key.accountId],
  address: ['address', 'show'],
  key: ['key', 'list', key.accountId],
  acme: ['acme', 'key', 'list', key.accountId],
  product: ['product', 'show', 'ssl-dv'],
  order: ['order', 'show', key.accountId, order],
  cert: ['cert', 'revoke', key.accountId, 'nothing', '--json'],
  crl: ['crl', 'show'],
  lint: ['lint', 'refusals'],
  operator: ['operator', 'list'],
  console: ['console', 'sessions'],
  ca: ['ca', 'list'],
  blocklist: ['blocklist', 'import', blocklist],
  callback: ['callback', 'show', key.accountId, '--json'],
  'cloud-key': ['cloud-key', 'list', holder.accountId],
  backup: ['backup', 'verify', blocklist],
  restore: ['restore', blocklist, '--json'],
  audit: ['audit', '--order', order],
  find: ['find', order],
  seal: ['seal', 'status'],
  store: ['store', 'copy', '--to', app.folder, '--json'],
  doctor: ['doctor', '--json'],
  sandbox: ['sandbox', 'dns', 'list'],
};

/** Refused: nothing to revoke, no backup, and the store itself as the target. */
const EXPECTED_CODES: Readonly<Record<string, number>> = { cert: 1, backup: 1, restore: 1, store: 2 };

/** Ends only on a signal, and other journeys spawn it. */
const SERVES = 'serve';

test('every command group has one command that is spawned here', () => {
  const groups = Object.keys(COMMANDS).map((name) => name.split(' ')[0] ?? '');
  assert.deepEqual(new Set([...Object.keys(GROUPS), SERVES]), new Set(groups));
});

/** The doctor reports the clock, and hints say how the process was started. */
const comparable = ({ code, out, err }: Finished) => ({
  code,
  err: err.replaceAll('node bin/reseal.mjs ', 'reseal '),
  out: out.replaceAll('node bin/reseal.mjs ', 'reseal ').replace(/(?<="text": ")[\d-]+T[\d:.]+Z/, ''),
});

for (const [group, args] of Object.entries(GROUPS)) {
  test(`${group}: a spawned process gives the same result as in-process`, async () => {
    const spawned = await spawnReseal(args, settings);
    assert.deepEqual(comparable(spawned), comparable(await reseal(args, settings)));
    assert.equal(spawned.code, EXPECTED_CODES[group] ?? 0, spawned.out + spawned.err);
    assert.notEqual(spawned.out, '');
  });
}

test('usage errors and help are the same too', async () => {
  for (const args of [['account', 'create'], ['acount'], ['key', 'rotate', '--help'], [], ['--version']]) {
    const spawned = await spawnReseal(args, settings);
    assert.deepEqual(comparable(spawned), await reseal(args, settings), args.join(' '));
  }
  const { err } = await spawnReseal(['acount'], settings);
  assert.match(err, /What to do: See all of them: node bin\/reseal\.mjs --help/);
});
