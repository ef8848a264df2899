// A store that was put back to an earlier state by any means, on both engines: no CRL number goes down, also where the clock
// does not help; CRLs of issuers whose key is elsewhere are checked and not made; the doctor says so by itself.
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import pg from 'pg';
import { servedNumbers } from '../../../src/adapters/ca/status/served-numbers.ts';
import { newFolder, newUsedFolder, TestApp } from '../../support/app.ts';
import { mirrorCrls, resealJson, revoke } from '../../support/backups.ts';
import { rule } from '../../support/contract.ts';
import { reseal } from '../../support/in-process.ts';
import { newOrder } from '../../support/orders.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';

const DAY_MS = 86_400_000;
/** The clock was ahead when the last CRLs were published: afterwards its milliseconds are below their numbers. */
const AHEAD_MS = 30 * DAY_MS;
const postgres = await sharedPostgres();
test.after(() => postgres[Symbol.asyncDispose]());

interface RolledBack {
  readonly environment: Record<string, string>;
  newFolder(): Promise<string>;
  /** Keeps the store as it is now; what is returned puts it back. */
  snapshot(folder: string): Promise<() => Promise<void>>;
}

const sqlite: RolledBack = {
  environment: {},
  newFolder: newUsedFolder,
  async snapshot(folder) {
    const [file, copy] = [join(folder, 'reseal.db'), join(newFolder(), 'copy.db')];
    copyFileSync(file, copy);
    return async () => {
      for (const suffix of ['-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
      copyFileSync(copy, file);
    };
  },
};

/** As a restored dump: another database with what the first one had. */
async function onPostgres(): Promise<RolledBack> {
  const url = new URL(await postgres.createDatabase());
  const copy = `${url.pathname.slice(1)}_copy`;
  const inMaintenance = async (...statements: string[]) => {
    const client = new pg.Client({ connectionString: new URL('/postgres', url).href });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  const name = url.pathname.slice(1);
  return {
    environment: { RESEAL_DATABASE_URL: url.href },
    newFolder: async () => newFolder(),
    async snapshot() {
      await inMaintenance(`create database ${copy} template ${name}`);
      return () =>
        inMaintenance(
          `drop database ${name} with (force)`,
          `create database ${name} template ${copy}`,
          `drop database ${copy}`,
        );
    },
  };
}

async function started(folder: string, environment: Record<string, string>, now: number): Promise<TestApp> {
  const app = new TestApp(folder);
  app.advance(now - app.now());
  await app.start(environment);
  return app;
}

/** The number of every CRL that the service serves. */
async function served(app: TestApp): Promise<Map<string, number>> {
  const heads = await app.app.store.crls.heads();
  const numbers = heads.map(async ({ issuerId, shard }) => {
    const { status, headers } = await app.call('GET', `/crl/${issuerId}/${shard}.crl`);
    assert.equal(status, 200);
    return [`${issuerId}/${shard}`, Number(headers.get('etag')?.replaceAll('"', ''))] as const;
  });
  return new Map(await Promise.all(numbers));
}

const rollbackLine = async (folder: string, environment: Record<string, string>): Promise<string | undefined> => {
  const settings = { ...environment, RESEAL_DATA_DIR: folder, RESEAL_DNS_SERVERS: '127.0.0.1:1' };
  return /^\S+ +rollback .*$/m.exec((await reseal(['doctor'], settings)).out)?.[0];
};

for (const name of ['sqlite', 'postgresql'] as const) {
  rule('ops 47', 'no CRL is served with a lower number than before', async () => {
    const { environment, newFolder: folderFor, snapshot } = name === 'sqlite' ? sqlite : await onPostgres();
    const folder = await folderFor();
    const noon = Date.now();
    const before = await started(folder, environment, noon);
    for (const _ of [1, 2]) await revoke(before, await newOrder(before), 'superseded');
    const first = await served(before);
    await before.stop();
    const putBack = await snapshot(folder);

    const ahead = await started(folder, environment, noon + AHEAD_MS);
    await revoke(ahead, await newOrder(ahead), 'superseded');
    const seen = await served(ahead);
    await ahead.stop();
    assert.match((await rollbackLine(folder, environment)) ?? '', /^ok .* no CRL was served with a higher number/);
    await putBack();
    assert.match(
      (await rollbackLine(folder, environment)) ?? '',
      /^PROBLEM .* looks rolled back: \d CRLs were served with a higher number/,
    );

    const after = await started(folder, environment, noon + 60_000);
    await using _after = after;
    const now = await served(after);
    assert.ok(now.size >= first.size && first.size > 0);
    for (const [key, number] of now)
      assert.ok(number > (seen.get(key) ?? 0), `${key}: ${number} after ${seen.get(key)}`);
    assert.match(after.output, /the store looks rolled back: \d CRLs were served with a higher number/);
    assert.match(
      (await rollbackLine(folder, environment)) ?? '',
      /^PROBLEM .* was rolled back/,
      'published anew, and still so',
    );
    const { folder: mirror } = await mirrorCrls(after);
    await resealJson(['crl', 'import', mirror], { ...environment, RESEAL_DATA_DIR: folder });
    await after.issuance.crls.publishDue();
    assert.doesNotMatch((await rollbackLine(folder, environment)) ?? '', /was rolled back/);
  });
}

rule('ops 48', 'is served as it is, and not at all if a newer one was served before', async () => {
  const folder = await newUsedFolder();
  const now = Date.now();
  const setUp = await started(folder, {}, now);
  await revoke(setUp, await newOrder(setUp), 'superseded');
  const [head = assert.fail()] = await setUp.app.store.crls.heads();
  await setUp.stop();
  // As with a root that is kept offline, whose CRL was imported.
  const alter = (statement: string) => {
    const database = new DatabaseSync(join(folder, 'reseal.db'));
    database.exec(statement);
    database.close();
  };
  alter(`update issuer set sealed_key = null where id = '${head.issuerId}'; update crl set number = 5`);
  const path = `/crl/${head.issuerId}/${head.shard}.crl`;
  {
    const app = await started(folder, {}, now);
    await using _app = app;
    const { status, headers } = await app.call('GET', path);
    assert.deepEqual([status, headers.get('etag')], [200, '"5"'], 'not made anew');
    assert.equal((await app.app.store.crls.heads())[0]?.thisUpdate, head.thisUpdate, 'not made due');
    await app.app.store.crls.adopt({ ...head, number: 6, der: Uint8Array.of(1) });
    assert.equal((await app.call('GET', path)).headers.get('etag'), '"6"');
    assert.deepEqual(
      app.lines.filter(({ event }) => event === 'warning'),
      [],
    );
  }
  alter('update crl set number = 5');
  const app = await started(folder, {}, now + 8 * DAY_MS);
  await using _app = app;
  assert.equal((await app.call('GET', path)).status, 503);
  assert.match(
    app.output,
    /number 5, whose issuer’s key is not here, is older than one served before, and is not served/,
  );
  assert.match((await rollbackLine(folder, {})) ?? '', /^PROBLEM .* rolled back/);
});

test('without the file numbers follow the store and the clock, and a damaged file is said', async () => {
  const folder = newFolder();
  const [warnings, list] = [[] as string[], { issuerId: 'i', shard: 0 }];
  const opened = () => servedNumbers(folder, (text) => warnings.push(text));
  using first = { ...opened(), [Symbol.dispose]: () => {} };
  assert.deepEqual([first.nextOf(list), first.isOutdated(list, 1)], [0, false]);
  first.note(list, 5_000, true);
  first.note(list, 5_999, true);
  assert.deepEqual([first.nextOf(list), first.isOutdated(list, 4_999)], [6_000, true]);
  first.close();
  const second = opened();
  assert.equal(second.nextOf(list), 6_000, 'what was not written is below');
  second.close();
  cpSync(join(folder, 'crl-numbers.db'), join(folder, 'kept'));
  writeFileSync(join(folder, 'crl-numbers.db'), 'x'.repeat(4_096));
  const third = opened();
  third.note(list, 9_000, true);
  assert.deepEqual([third.nextOf(list), warnings.length], [9_001, 1]);
  assert.match(warnings[0] ?? '', /^crl-numbers\.db cannot be used \(file is not a database\)/);
});
