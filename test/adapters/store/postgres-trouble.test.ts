// PostgreSQL outages: the service refuses as busy and recovers without a restart. A stuck transaction does not block the
// others.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import pg from 'pg';
import { newSealKey, sealerWith } from '../../../src/adapters/seal/seal.ts';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { migrate } from '../../../src/adapters/store/engine/migrations.ts';
import { postgresEngine } from '../../../src/adapters/store/engine/postgres.ts';
import { openStore } from '../../../src/adapters/store/store.ts';
import { newFolder, startApp, TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { damagePostgres } from '../../support/damage.ts';
import { reseal } from '../../support/in-process.ts';
import { startPostgres } from '../../support/postgres.ts';
import { spawnReseal } from '../../support/process.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

const postgres = await startPostgres();
after(() => postgres[Symbol.asyncDispose]());

const PATH = '/openapi/v3/account';

/** For engines with deliberately short limits: on a busy machine they would abort the migrations too. */
async function migratedDatabase(): Promise<string> {
  const url = await postgres.createDatabase();
  const store = await openStore({ kind: 'postgresql', url, maxConnections: 1 }, sealerWith([newSealKey()]), () => 0);
  await store.close();
  return url;
}

test('while the database is down the answer is service_busy; afterwards the service recovers', async (context) => {
  if (!postgres.kill || !postgres.start) {
    context.diagnostic('TEST_DATABASE_URL names a server that is not ours to kill');
    return;
  }
  await using app = await startApp({ RESEAL_DATABASE_URL: await postgres.createDatabase() });
  const key = await app.newKey();
  assert.equal((await app.call('PUT', PATH, { key, json: { name: 'before' } })).status, 200);
  await postgres.kill();
  for (const [method, path] of [
    ['GET', PATH],
    ['PUT', PATH],
    ['GET', '/readyz'],
  ] as const) {
    const { status, body, headers } = await app.call(method, path, {
      key,
      ...(method === 'PUT' && { json: { name: 'lost' } }),
    });
    assert.deepEqual([status, body.code, headers.get('retry-after')], [503, 'service_busy', '1'], `${method} ${path}`);
  }
  assert.equal((await app.call('GET', '/healthz')).status, 200);
  for (let times = 0; times < 30; times += 1) await app.call('GET', PATH, { key });
  const causes = app.lines.flatMap((line) => (line.event === 'store_unavailable' ? [line.text] : []));
  assert.ok(causes.length > 0 && causes.length <= 5, causes.join('; '));
  assert.deepEqual([...new Set(causes)], causes, 'each cause is logged once, however many requests meet it');
  assert.deepEqual(
    app.lines.filter(({ event }) => event === 'error'),
    [],
  );
  await postgres.start();
  const { status, body } = await app.call('GET', PATH, { key });
  assert.deepEqual([status, body.data?.account.name], [200, 'before']);
  assert.equal((await app.call('PUT', PATH, { key, json: { name: 'after' } })).status, 200);
});

rule('ops 43', 'reports damage in the files of the database', async (context) => {
  const { stop, start, dataFolder } = postgres;
  if (!stop || !start || !dataFolder) {
    context.diagnostic('TEST_DATABASE_URL names a server whose files are not ours to damage');
    return;
  }
  const settings = { RESEAL_DATABASE_URL: await postgres.createDatabase() };
  await using first = await startApp(settings);
  const key = await first.newKey();
  await first.call('PUT', PATH, { key, json: { name: 'audited' } });
  await first.stop();
  const client = new pg.Client({ connectionString: settings.RESEAL_DATABASE_URL });
  await client.connect();
  const { rows } = await client.query<{ path: string }>("select pg_relation_filepath('audit') as path");
  await client.query('checkpoint');
  await client.end();
  await stop();
  damagePostgres(join(dataFolder, rows[0]?.path ?? assert.fail()));
  await start();
  const app = new TestApp(first.folder);
  await app.start(settings);
  await using _app = app;
  assert.equal((await app.call('GET', '/openapi/v3/account/audit', { key })).status, 503);
  assert.equal((await app.call('GET', '/readyz')).status, 503);
  assert.ok(app.lines.some(({ event }) => event === 'store_damaged'));
  const { code, out } = await reseal(['doctor'], {
    ...settings,
    RESEAL_DATA_DIR: first.folder,
    RESEAL_DNS_SERVERS: '127.0.0.1:1',
  });
  assert.equal(code, 1);
  assert.match(out, /^PROBLEM {2}integrity +the database is damaged: \d+ pages of test_\w+ had a wrong checksum$/m);
});

test('the server ends an idle transaction, and the others continue', async () => {
  const url = await migratedDatabase();
  const db = openEngine(postgresEngine({ url, maxConnections: 2, maxHoldMs: 50 }), () => {});
  const { promise: forEver, resolve: atLast } = Promise.withResolvers<void>();
  /** Resolves when it holds the row, or when the server has ended it already, because this process was too slow. */
  const stick = async () => {
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    const stuck = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('setting').values({ name: 'x', value: 'stuck' }).execute();
      hold();
      await forEver;
      await transaction.insertInto('setting').values({ name: 'y', value: 'too late' }).execute();
    });
    const isHeld = await Promise.race([held.then(() => true), stuck.catch(() => false)]);
    return { stuck, isHeld };
  };
  // On its own connection, the next statement could otherwise run first.
  let { stuck, isHeld } = await stick();
  while (!isHeld) ({ stuck, isHeld } = await stick());
  stuck.catch(() => {});
  // Needs the row that the stuck transaction holds, and gets it once the server has ended that one.
  await db.insertInto('setting').values({ name: 'x', value: 'next' }).execute();
  atLast();
  await assert.rejects(stuck, { code: 'service_busy' });
  assert.deepEqual(await db.selectFrom('setting').selectAll().execute(), [{ name: 'x', value: 'next' }]);
  await db.destroy();
});

/** A new database, reached through a faulty network. */
async function overProxy(database = postgres.createDatabase()) {
  const url = new URL(await database);
  const proxy = await TcpProxy.to(url.hostname, Number(url.port));
  url.port = String(proxy.port);
  return { proxy, url: url.href };
}

rule('envelope 16', 'was made completely or not at all, and asking again shows which', async () => {
  const { proxy, url } = await overProxy();
  await using _proxy = proxy;
  await using app = await startApp({ RESEAL_DATABASE_URL: url });
  const key = await app.newKey({ name: 'before' });
  for (const [word, made] of [
    ['commit', 'made'],
    // A value of the audit row: the statement itself is named, and its text is sent only once per connection.
    ['account:changed', undefined],
  ] as const) {
    proxy.cutAfter = word;
    const name = made ? 'first' : 'second';
    const { status, body, headers } = await app.call('PUT', PATH, { key, json: { name } });
    assert.deepEqual([status, body.code], [503, 'service_busy'], word);
    proxy.cutAfter = undefined;
    const seen = (await app.call('GET', PATH, { key })).body.data.account.name;
    assert.equal(seen === name, made !== undefined, `after the wire was cut at "${word}" the name is "${seen}"`);
    const trail = await app.app.store.audit.listOf(key.accountId, { limit: 100 });
    const rows = trail.filter(({ requestId }) => requestId === headers.get('x-request-id'));
    assert.equal(rows.length, made === undefined ? 0 : 1, 'the audit row is committed or rolled back with the change');
  }
});

test('queries to a silent server time out, their connections are closed, and new ones work', async () => {
  const { proxy, url } = await overProxy(migratedDatabase());
  await using _proxy = proxy;
  const db = openEngine(postgresEngine({ url, maxConnections: 1, statementMs: 500 }), () => {});
  const read = () => db.selectFrom('setting').selectAll().execute();
  assert.deepEqual(await read(), []);
  proxy.isSilent = true;
  await assert.rejects(read(), { code: 'service_busy' });
  proxy.isSilent = false;
  assert.deepEqual(await read(), [], 'the only connection of the pool was replaced');
  await db.destroy();
});

test('a missing database or user is a Problem with a remedy, at start-up and for the doctor', async () => {
  for (const part of ['pathname', 'username'] as const) {
    const url = new URL(await postgres.createDatabase());
    url[part] = 'nobody_made_this';
    const settings = {
      RESEAL_DATA_DIR: newFolder(),
      RESEAL_PORT: '0',
      RESEAL_DATABASE_URL: url.href,
      RESEAL_DNS_SERVERS: '127.0.0.1:1',
    };
    const { code, err } = await spawnReseal(['serve'], settings);
    assert.equal(code, 4, err);
    assert.match(err, /PostgreSQL at .* cannot be used.*What to do/s);
    const { out } = await reseal(['doctor'], settings);
    assert.match(out, /PROBLEM +store +it cannot be used/);
  }
});

test('an error in a statement does not count as an unavailable database', async () => {
  const engine = postgresEngine({ url: await postgres.createDatabase(), maxConnections: 1 });
  const db = openEngine(engine, () => {});
  await migrate(db, engine, () => 0);
  await assert.rejects(
    db
      .insertInto('setting')
      .values({ name: 'x' } as never)
      .execute(),
    { code: '23502' },
  );
  await db.destroy();
});
