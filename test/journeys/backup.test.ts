// Backups of the embedded database: taken from a running service, verified, refused when they are anything else, and
// restored into a service that knows everything, seal key apart. Campaign `backup` does it under load.
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { readMigrations } from '../../src/adapters/store/engine/migrations.ts';
import { newFolder, startApp, TestApp } from '../support/app.ts';
import { emptyFolderFor, mirrorCrls, resealJson, revoke } from '../support/backups.ts';
import { newDualOrder, newSm2Csr } from '../support/dual.ts';
import { reseal } from '../support/in-process.ts';
import { newOrder } from '../support/orders.ts';
import { spawnReseal } from '../support/process.ts';
import { restoreFixture, storeFixtures } from '../support/store-fixture.ts';

const app = await startApp();
// Commands use the real clock.
app.advance(Date.now() - app.now());
after(() => app[Symbol.asyncDispose]());
const settings = { RESEAL_DATA_DIR: app.folder };
await newOrder(app);
await newDualOrder(app, await newSm2Csr());
const revoked = await newOrder(app);
await revoke(app, revoked, 'superseded');
const file = join(newFolder(), 'backup.db');
const taken = await resealJson(['backup', file], settings);

const verify = async (path: string, dataDir = app.folder) => {
  const { code, out } = await reseal(['backup', 'verify', path], { RESEAL_DATA_DIR: dataDir });
  return { code, out };
};

/** A copy of the backup, altered. */
function altered(statement: string): string {
  const copy = join(newFolder(), 'altered.db');
  copyFileSync(file, copy);
  const database = new DatabaseSync(copy, { enableForeignKeyConstraints: false });
  database.exec(statement);
  database.close();
  return copy;
}

/** A copy of the backup in which a page of an index lists nothing. */
function withDamagedIndex(name: string): string {
  const copy = altered('select 1');
  const database = new DatabaseSync(copy, { readOnly: true });
  const row = database.prepare('select rootpage from sqlite_master where name = ?').get(name);
  const size = Number(database.prepare('pragma page_size').get()?.page_size);
  database.close();
  const bytes = readFileSync(copy);
  // The number of cells in the header of a b-tree page.
  bytes.writeUInt16BE(0, (Number(row?.rootpage) - 1) * size + 3);
  writeFileSync(copy, bytes);
  return copy;
}

describe('a backup', () => {
  test('of a running service verifies, and its manifest says what is in it', async () => {
    const { manifest } = taken;
    assert.deepEqual([manifest.format, manifest.schema], ['reseal backup 1', readMigrations('sqlite').length]);
    const rows = new Map(manifest.tables.map((one: { table: string; rows: number }) => [one.table, one.rows]));
    assert.deepEqual(
      ['certificate_order', 'certificate', 'revocation', 'revoked_serial'].map((table) => rows.get(table)),
      [3, 3, 1, 1],
    );
    assert.equal(manifest.crls.length, 1);
    assert.equal(manifest.seal_key_ids.length, 1);
    const { code, out } = await verify(file);
    assert.equal(code, 0, out);
    assert.equal(out.match(/^ok/gm)?.length, 5, out);
    const findings = await resealJson(['doctor', '--backup', file], settings);
    assert.ok(findings.findings.some((one: { check: string }) => one.check === 'contents'));
    assert.ok(Number(await app.app.store.settings.get('last_backup_at')) > 0);
  });

  test('has no trace of the seal key, is one private file, and replaces none', async () => {
    const bytes = readFileSync(file);
    const text = readFileSync(join(app.folder, 'seal.key'), 'utf8').trim();
    const key = Buffer.from(text, 'base64');
    for (const form of [key, key.toString('base64'), key.toString('base64url'), key.toString('hex')]) {
      assert.equal(bytes.indexOf(form), -1);
    }
    assert.deepEqual(readdirSync(join(file, '..')), ['backup.db']);
    const { code, err } = await reseal(['backup', file], settings);
    assert.deepEqual([code, /exists already/.test(err)], [2, true], err);
    assert.ok(readFileSync(file).equals(bytes));
  });

  test('is made by a process of its own, and a missing database is not created', async () => {
    const other = join(newFolder(), 'other.db');
    const { code, out, err } = await spawnReseal(['backup', other], settings);
    assert.equal(code, 0, err);
    assert.match(out, /Prove it: node bin\/reseal\.mjs backup verify/);
    const nowhere = join(newFolder(), 'data');
    assert.equal((await reseal(['backup', `${other}2`], { RESEAL_DATA_DIR: nowhere })).code, 3);
    assert.equal(existsSync(nowhere), false);
  });
});

describe('verify refuses', () => {
  const refusals: readonly [what: string, make: () => string, says: RegExp][] = [
    [
      'the live file, copied with cp',
      () => {
        const copy = join(newFolder(), 'copy.db');
        copyFileSync(join(app.folder, 'reseal.db'), copy);
        return copy;
      },
      /no valid manifest: it was copied from a data folder/,
    ],
    [
      'all live files, copied with cp',
      () => {
        const copy = newFolder();
        cpSync(app.folder, copy, { recursive: true });
        return join(copy, 'reseal.db');
      },
      /no valid manifest/,
    ],
    ['a lost row', () => altered('delete from revocation'), /revocation has 0 rows instead of 1/],
    ['an altered row', () => altered("update account set name = 'Mallory'"), /rows of account were altered/],
    ['a foreign table', () => altered('create table extra (id text primary key)'), /unexpected table extra/],
    ['a newer schema', () => altered("insert into migration values (999, 'x', 'x', 0)"), /newer than this Reseal/],
    ['an altered manifest', () => altered("update backup_manifest set manifest = '{}'"), /no valid manifest/],
    ['a damaged index', () => withDamagedIndex('certificate_by_key'), /damaged: .*certificate_by_key/],
    [
      'half a file',
      () => {
        const half = join(newFolder(), 'half.db');
        const bytes = readFileSync(file);
        writeFileSync(half, bytes.subarray(0, bytes.length / 2));
        return half;
      },
      /no valid manifest|damaged|cannot be read/,
    ],
    [
      'a text',
      () => {
        const text = join(newFolder(), 'text');
        writeFileSync(text, 'not a backup');
        return text;
      },
      /neither a backup nor a manifest/,
    ],
  ];
  for (const [what, make, says] of refusals) {
    test(what, async () => {
      const { code, out } = await verify(make());
      assert.equal(code, 1, out);
      assert.match(out, says);
    });
  }

  test('a backup whose seal key is not at hand', async () => {
    const other = newFolder();
    writeFileSync(join(other, 'seal.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
    for (const dataDir of [other, newFolder()]) {
      const { code, out } = await verify(file, dataDir);
      assert.equal(code, 1);
      assert.match(out, /sealed values need the keys [0-9a-f]{8}/);
    }
  });
});

test('a store of an earlier version is backed up before its upgrade, and restored with it', async () => {
  const [fixture = assert.fail()] = storeFixtures();
  const [old, target] = [newFolder(), newFolder()];
  for (const folder of [old, target]) {
    writeFileSync(join(folder, 'seal.key'), `${fixture.sealKey}\n`, { mode: 0o600 });
  }
  await restoreFixture({ kind: 'sqlite', file: join(old, 'reseal.db') }, fixture);
  const earlier = join(newFolder(), 'earlier.db');
  const { manifest } = await resealJson(['backup', earlier], { RESEAL_DATA_DIR: old });
  assert.equal(manifest.schema, fixture.schema);
  assert.match((await verify(earlier, old)).out, /which the next start migrates/);
  await resealJson(['restore', earlier, '--without-crl'], { RESEAL_DATA_DIR: target });
  const { code, out } = await reseal(['doctor'], { RESEAL_DATA_DIR: target });
  assert.match(out, /^ok {7}store +up to date/m, `${code}`);
});

test('a backup is not served before it was restored', async () => {
  const folder = emptyFolderFor(app);
  copyFileSync(file, join(folder, 'reseal.db'));
  const { code, err } = await reseal(['account', 'list'], { RESEAL_DATA_DIR: folder });
  assert.equal(code, 1);
  assert.match(err, /is a backup/);
  // It is still one afterwards.
  assert.equal((await verify(join(folder, 'reseal.db'))).code, 0);
});

describe('a restore', () => {
  test('fills an empty folder only, and says what is lost without CRLs', async () => {
    const full = emptyFolderFor(app);
    writeFileSync(join(full, 'something'), '');
    const refused = await reseal(['restore', file, '--without-crl'], { RESEAL_DATA_DIR: full });
    assert.deepEqual([refused.code, /is not empty: something/.test(refused.err)], [1, true], refused.err);
    const empty = emptyFolderFor(app);
    const unasked = await reseal(['restore', file], { RESEAL_DATA_DIR: empty });
    assert.deepEqual([unasked.code, /would be valid again/.test(unasked.err)], [1, true], unasked.err);
    assert.deepEqual(readdirSync(empty), ['seal.key']);
  });

  test('refuses a backup that does not verify, and a CRL of another authority, and leaves the folder empty', async () => {
    const empty = emptyFolderFor(app);
    const damaged = altered('delete from revocation');
    const refused = await reseal(['restore', damaged, '--without-crl'], { RESEAL_DATA_DIR: empty });
    assert.deepEqual([refused.code, /is not restored:/.test(refused.err)], [1, true], refused.err);
    const { folder } = await mirrorCrls(app);
    const [name = ''] = readdirSync(folder);
    const bytes = readFileSync(join(folder, name));
    const forged = join(newFolder(), 'forged.crl');
    for (const position of [60, bytes.length - 5]) {
      const copy = Buffer.from(bytes);
      copy.writeUInt8((copy[position] ?? 0) ^ 1, position);
      writeFileSync(forged, copy);
      const { code, err } = await reseal(['restore', file, '--crl', forged], { RESEAL_DATA_DIR: empty });
      assert.deepEqual([code, /is not used: /.test(err)], [1, true], err);
    }
    const missing = await reseal(['restore', file, '--crl', '/nowhere/0.crl'], { RESEAL_DATA_DIR: empty });
    assert.deepEqual([missing.code, /ENOENT/.test(missing.err)], [2, true], missing.err);
    assert.deepEqual(readdirSync(empty), ['seal.key']);
  });
});

test('a start publishes every CRL anew, so that a store put back by other means serves no earlier number', async () => {
  const folder = newFolder();
  const source = await startApp();
  const one = await newOrder(source);
  await revoke(source, one, 'superseded');
  await source.stop();
  // Put back by other means than a restore: all files of the stopped service, as they were before the last revocations.
  cpSync(source.folder, folder, { recursive: true });
  const ahead = new TestApp(source.folder);
  ahead.advance(60_000);
  await ahead.start({});
  const { numbers } = await mirrorCrls(ahead);
  await ahead.stop();
  const back = new TestApp(folder);
  back.advance(120_000);
  await back.start({});
  const { numbers: served } = await mirrorCrls(back);
  await back.stop();
  assert.ok(numbers.size > 0);
  for (const [name, number] of numbers) assert.ok((served.get(name) ?? 0) > number, name);
});
