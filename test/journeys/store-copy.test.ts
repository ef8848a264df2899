// A small run of the store-copy campaign, and what an operator sees when a store must not be copied or forgotten.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { copyThereAndBack } from '../../campaigns/store-copy.ts';
import { newFolder, startApp } from '../support/app.ts';
import { reseal } from '../support/in-process.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const postgres = await sharedPostgres();
after(() => postgres[Symbol.asyncDispose]());

test('a store goes from SQLite to PostgreSQL and back, and services work on both', async (context) => {
  const url = await postgres.createEmptyDatabase();
  const print = (line: string) => context.diagnostic(line);
  assert.deepEqual(await copyThereAndBack({ orders: 40, url, killsFirst: false, print }), []);
});

test('the store of a running service is not copied', async () => {
  await using app = await startApp();
  // Commands use the real clock.
  app.advance(Date.now() - app.now());
  const target = join(newFolder(), 'copy');
  await app.app.store.sealing.announce({ id: 'running', name: 'this test' });
  const running = await reseal(['store', 'copy', '--to', target], { RESEAL_DATA_DIR: app.folder });
  assert.equal(running.code, 1);
  assert.match(running.err, /the service runs on .*reseal\.db: this test/);
  const nothing = newFolder();
  const absent = await reseal(['store', 'copy', '--to', target], { RESEAL_DATA_DIR: nothing });
  assert.deepEqual([absent.code, existsSync(join(nothing, 'reseal.db'))], [3, false]);
  const itself = await reseal(['store', 'copy', '--to', app.folder], { RESEAL_DATA_DIR: app.folder });
  assert.deepEqual([itself.code, /is the store itself/.test(itself.err)], [2, true]);
});

test('an empty PostgreSQL beside a populated reseal.db stops a start, and names both', async () => {
  const app = await startApp();
  await app.stop();
  const url = await postgres.createEmptyDatabase();
  const settings = { RESEAL_DATA_DIR: app.folder, RESEAL_DATABASE_URL: url };
  const name = new URL(url).pathname.slice(1);
  const started = await reseal(['account', 'list'], settings);
  assert.equal(started.code, 3);
  assert.match(started.err, new RegExp(`PostgreSQL at .*/${name} is empty, and .*reseal\\.db has data`));
  const { out } = await reseal(['doctor', '--json'], settings);
  assert.match(out, /is empty, and .*reseal\.db has data/);
  // Without the file, or on a database in use, there is nothing to confuse.
  const elsewhere = { ...settings, RESEAL_DATA_DIR: newFolder() };
  assert.equal((await reseal(['account', 'create', 'Acme'], elsewhere)).code, 0);
  const key = { RESEAL_SEAL_KEY_FILE: join(elsewhere.RESEAL_DATA_DIR, 'seal.key') };
  assert.equal((await reseal(['account', 'list'], { ...settings, ...key })).code, 0);
});
