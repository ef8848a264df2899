// Backups of PostgreSQL: the manifest of a snapshot, verified over a physical copy of the database, and a restore that
// revokes again what was revoked since. Campaign `backup-postgres` does it with Debian's server, pg_dump and PITR.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import pg from 'pg';
import { readConfig } from '../../src/config/config.ts';
import { backupCommands } from '../../src/wiring/backup.ts';
import { newFolder, newUsedFolder, TestApp } from '../support/app.ts';
import { knownCertificate, mirrorCrls, resealJson, revoke, worldView } from '../support/backups.ts';
import { reseal } from '../support/in-process.ts';
import { show } from '../support/orders.ts';
import { inDatabase, startPostgres } from '../support/postgres.ts';
import { restoreFixture, storeFixtures } from '../support/store-fixture.ts';

const [fixture = assert.fail()] = storeFixtures();
const { issued, dual } = fixture.contents;
const original = await startPostgres();
after(() => original[Symbol.asyncDispose]());
const url = await original.createDatabase();
await restoreFixture({ kind: 'postgresql', url, maxConnections: 1 }, fixture);

function folderWithKey(): string {
  const folder = newFolder();
  writeFileSync(join(folder, 'seal.key'), `${fixture.sealKey}\n`, { mode: 0o600 });
  return folder;
}
const settings = { RESEAL_DATA_DIR: folderWithKey(), RESEAL_DATABASE_URL: url };
const manifest = join(newFolder(), 'reseal.manifest.json');

async function startOn(databaseUrl: string): Promise<TestApp> {
  const app = new TestApp(folderWithKey());
  app.advance(Date.now() - app.now());
  await app.start({ RESEAL_DATABASE_URL: databaseUrl });
  return app;
}

test('a physical copy verifies against the manifest, and a restore revokes again what was revoked since', async () => {
  // Of a store that an earlier version wrote, as before an upgrade.
  const taken = await resealJson(['backup', manifest], settings);
  assert.equal(taken.manifest.schema, fixture.schema);
  await original.stop?.();
  await using copy = await startPostgres(original.dataFolder);
  await original.start?.();
  const copied = new URL(copy.url);
  copied.pathname = new URL(url).pathname;
  const onCopy = { ...settings, RESEAL_DATABASE_URL: copied.href };

  const verify = () => reseal(['backup', 'verify', manifest], onCopy);
  const verified = await verify();
  assert.equal(verified.code, 0, verified.out);
  assert.equal(verified.out.match(/^ok/gm)?.length, 5, verified.out);
  await inDatabase(copied.href, "update account set name = name || '!'");
  const altered = await verify();
  assert.deepEqual([altered.code, /rows of account were altered/.test(altered.out)], [1, true], altered.out);
  assert.equal((await reseal(['restore', manifest, '--without-crl'], onCopy)).code, 1);
  await inDatabase(copied.href, 'update account set name = left(name, -1)');

  // Meanwhile the world goes on.
  const app = await startOn(url);
  const known = await Promise.all([issued, dual].map((order) => knownCertificate(app, order)));
  await revoke(app, issued, 'key_compromise');
  await revoke(app, dual, 'superseded');
  const expected = await Promise.all(known.map((one) => worldView(app, one)));
  const { folder, numbers } = await mirrorCrls(app);
  await app.stop();
  const differing = await reseal(['backup', 'verify', manifest], settings);
  assert.deepEqual([differing.code, /schema \d+ instead of/.test(differing.out)], [1, true], differing.out);

  const report = await resealJson(['restore', manifest, '--crl', folder], onCopy);
  assert.deepEqual(report.without_certificate, []);
  await using restored = await startOn(copied.href);
  for (const [index, one] of known.entries()) {
    const { number, ...seen } = await worldView(restored, one);
    const { number: before, ...was } = expected[index] ?? assert.fail();
    assert.deepEqual(seen, was);
    assert.ok(number > before);
  }
  assert.equal((await show(restored, dual)).status, 'revoked');
  const { numbers: served } = await mirrorCrls(restored);
  for (const [name, number] of numbers) assert.ok((served.get(name) ?? 0) > number, name);
  // Without a manifest, as after point-in-time recovery: everything but the comparison.
  const bare = await reseal(['backup', 'verify'], onCopy);
  assert.deepEqual([bare.code, /compared with nothing/.test(bare.out)], [0, true], bare.out);
});

test('a held snapshot is what the manifest describes, whatever is written meanwhile', async () => {
  await using app = await startOn(url);
  const file = join(newFolder(), 'held.json');
  const { config } = readConfig(settings);
  const { promise: announced, resolve: announce } = Promise.withResolvers<string>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const taking = backupCommands(config, Date.now).take(file, { announce, released: () => released }, () => {});
  const snapshot = await announced;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const countAccounts = async () => Number((await client.query('select count(*) from account')).rows[0]?.count);
  const before = await countAccounts();
  await app.newKey();
  assert.equal(await countAccounts(), before + 1);
  // As pg_dump --snapshot does.
  await client.query(`begin isolation level repeatable read; set transaction snapshot '${snapshot}'`);
  assert.equal(await countAccounts(), before);
  await client.end();
  release();
  const { tables } = await taking;
  assert.equal(tables.find(({ table }) => table === 'account')?.rows, before);
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).format, 'reseal backup 1');
  const refused = await reseal(['backup', file], settings);
  assert.deepEqual([refused.code, /exists already/.test(refused.err)], [2, true]);
});

test('a manifest without its database is a usage error that says so', async () => {
  const { code, err } = await reseal(['backup', 'verify', manifest], { RESEAL_DATA_DIR: settings.RESEAL_DATA_DIR });
  assert.deepEqual([code, /RESEAL_DATABASE_URL is not set/.test(err)], [2, true], err);
  const held = await reseal(['backup', `${manifest}2`, '--hold'], { RESEAL_DATA_DIR: await newUsedFolder() });
  assert.deepEqual([held.code, /--hold is for PostgreSQL/.test(held.err)], [2, true], held.err);
});
