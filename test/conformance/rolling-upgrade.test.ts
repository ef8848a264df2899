// A rolling restart across an additive migration: instances of the older version keep working after the first instance of the
// newer one has added tables and columns, until they are replaced. An older version does not start on a newer store.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { type Migration, migrate, readMigrations } from '../../src/adapters/store/engine/migrations.ts';
import { engineAt } from '../../src/adapters/store/store.ts';
import { readConfig } from '../../src/config/config.ts';
import { newFolder, newUsedFolder, TestApp } from '../support/app.ts';
import { newCloudKey } from '../support/cloud-keys.ts';
import { bothEngines } from '../support/engines.ts';
import { body, newOrder, reissue, show } from '../support/orders.ts';
import { spawnReseal } from '../support/process.ts';

const ROUNDS = 8;
const MAX_TRIES = 10;

/** Everything that an additive migration may do. */
const additive = (number: number, tables: readonly string[]): Migration => ({
  number,
  name: 'additive',
  sha256: 'a'.repeat(64),
  statements: [
    `create table added_${number} (id text primary key)`,
    ...tables.flatMap((table) => [
      `alter table ${table} add column added_later text`,
      `alter table ${table} add column counted_later bigint not null default 7`,
      `create index ${table}_added_later on ${table} (added_later)`,
    ]),
  ],
});

/** What a caller does all day; every repository on the way runs its statements. */
async function work(app: TestApp): Promise<void> {
  const order = await newOrder(app);
  const { key } = order;
  const settings = { url: 'https://receiver.example.com/hook', access_key: 'access-key-0123456789' };
  const calls: [string, string, unknown?][] = [
    ['PUT', 'account/callback', settings],
    ['GET', 'account'],
    ['GET', 'orders'],
    ['GET', `certs/${order.certificateId}`],
    ['GET', 'account/callback/deliveries'],
  ];
  for (const [method, path, json] of calls) {
    const { status, text } = await app.call(method, `/openapi/v3/${path}`, { key, json });
    assert.equal(status, 200, `${path}: ${text}`);
  }
  const { status, text, body: answer } = await reissue(app, order, body());
  assert.equal(status, 200, text);
  const revoke = `/openapi/v3/certs/${answer.data.certificate.id}/revoke`;
  assert.equal((await app.call('POST', revoke, { key })).status, 200);
  assert.equal((await show(app, order)).status, 'issued');
}

/** As a caller does that is answered 503: a transaction under way may be lost to the migration, and is then tried again. */
async function persistently<T>(act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await act();
    } catch (error) {
      if (tries === MAX_TRIES || !/service_busy/.test(String(error))) throw error;
    }
  }
}

for (const engine of await bothEngines()) {
  describe(engine.name, () => {
    test('an instance works through an additive migration, and after it', async () => {
      const location = await engine.newEmptyLocation();
      const environment: Record<string, string> =
        location.kind === 'postgresql' ? { RESEAL_DATABASE_URL: location.url } : {};
      await using app = new TestApp(location.kind === 'postgresql' ? newFolder() : await newUsedFolder());
      await app.start(environment);
      // Statements that the instance has prepared must survive the change of their tables.
      await work(app);

      const settings = { RESEAL_DATA_DIR: app.folder, ...environment };
      const one = engineAt(readConfig(settings).config.database, {}, true);
      const db = openEngine(one, () => {});
      const tables = (await db.introspection.getTables())
        .map(({ name }) => name)
        .filter((name) => name !== 'migration');
      const known = readMigrations(one.name);
      // Under load one table, so that callers lose few transactions to it; then the rest.
      const busiest = 'certificate';
      const last = Math.max(...known.map(({ number }) => number));
      const newer = [...known, additive(last + 1, [busiest])];
      const [applied] = await Promise.all([
        persistently(() => migrate(db, one, app.now, newer)),
        ...Array.from({ length: ROUNDS }, () => persistently(() => work(app))),
      ]);
      assert.deepEqual(applied, [last + 1]);
      const rest = additive(
        last + 2,
        tables.filter((name) => name !== busiest),
      );
      assert.deepEqual(await migrate(db, one, app.now, [...newer, rest]), [rest.number]);

      await persistently(() => work(app));
      await work(app);
      await newCloudKey(app);
      await app.issuance.sweep();
      assert.equal((await app.call('GET', '/readyz')).status, 200);
      const { rows } = await sql<{ n: number }>`select count(*) as n from certificate where counted_later = 7`.execute(
        db,
      );
      assert.ok(Number(rows[0]?.n) > ROUNDS, 'rows of the older version have the default');
      assert.equal(app.lines.filter(({ event }) => event === 'error').length, 0, app.output);
      await db.destroy();

      const { code, err } = await spawnReseal(['serve'], { ...settings, RESEAL_PORT: '0' });
      assert.equal(code, 4);
      assert.match(err, new RegExp(`newer than this Reseal: it has migration ${last + 1} \\(additive\\)`));
      assert.match(err, /What to do: Run the version of Reseal that last used this database, or a newer one\./);
    });

    test('a migration that deadlocks with a transaction of an older instance is applied after it', async () => {
      const location = await engine.newLocation();
      // SQLite has a single writer, which cannot deadlock.
      if (location.kind !== 'postgresql') return;
      const migrator = engineAt(location, {}, true);
      const faults: unknown[] = [];
      await using migrating = openEngine(migrator, (error) => faults.push(error));
      await using older = openEngine(engineAt(location), () => {});
      const known = readMigrations(migrator.name);
      const last = Math.max(...known.map(({ number }) => number));
      const newer = additive(last + 1, ['certificate_order', 'certificate']);
      let migrated: Promise<number[]> | undefined;
      await older.transaction().execute(async (transaction) => {
        // The migration shall be the one that notices, and is undone.
        await sql`set local deadlock_timeout = '60s'`.execute(transaction);
        await sql`lock table certificate in row exclusive mode`.execute(transaction);
        migrated = migrate(migrating, migrator, () => 1, [...known, newer]);
        for (let waiting = 0; waiting === 0; ) {
          const { rows } = await sql`select 1 from pg_locks where not granted
            and relation = 'certificate'::regclass`.execute(transaction);
          waiting = rows.length;
        }
        await sql`lock table certificate_order in row exclusive mode`.execute(transaction);
      });
      assert.deepEqual(await migrated, [newer.number]);
      assert.deepEqual(
        faults.map((error) => (error as { code?: string }).code),
        ['40P01'],
      );
    });
  });
}
