// Failures of the disk, the lock or a transaction under the embedded store: nothing is acknowledged that is not stored,
// the refusal is `service_busy`, and the store recovers without a restart.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import {
  DEFAULT_LIMITS,
  GroupCommit,
  type GroupCommitLimits,
} from '../../../src/adapters/store/engine/group-commit.ts';
import { migrate } from '../../../src/adapters/store/engine/migrations.ts';
import type { Db } from '../../../src/adapters/store/engine/schema.ts';
import { sqliteEngine } from '../../../src/adapters/store/engine/sqlite.ts';
import { SqliteConnection } from '../../../src/adapters/store/engine/sqlite-connection.ts';
import { isSqliteUnavailable } from '../../../src/adapters/store/engine/sqlite-errors.ts';
import { newFolder } from '../../support/app.ts';

const BUSY = { code: 'service_busy' };

async function opened(limits: Partial<GroupCommitLimits> = {}) {
  const file = join(newFolder(), 'reseal.db');
  const groups: number[] = [];
  const failures: unknown[] = [];
  const engine = sqliteEngine({
    file,
    limits: { ...DEFAULT_LIMITS, ...limits },
    onCommit: (size) => groups.push(size),
  });
  const db = openEngine(engine, (error) => failures.push(error));
  await migrate(db, engine, () => 0);
  groups.length = 0;
  return { db, file, groups, failures, [Symbol.asyncDispose]: () => db.destroy() };
}

const write = (db: Db, name: string, value = name) => db.insertInto('setting').values({ name, value }).execute();
const count = async (db: Db) =>
  Number(
    (
      await db
        .selectFrom('setting')
        .select((all) => all.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
    ).n,
  );

/** Another process that holds the write lock. */
function lockedBy(file: string) {
  const other = new DatabaseSync(file);
  other.exec('begin immediate');
  return { release: () => other.close() };
}

test('on a full disk writes are refused, acknowledged ones are kept, and writes resume once there is space', async () => {
  await using store = await opened();
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(store.db);
  await sql.raw(`pragma max_page_count = ${rows[0]!.page_count + 20}`).execute(store.db);
  const writes = Array.from({ length: 64 }, (_, index) => write(store.db, `w${index}`, 'x'.repeat(3_000)));
  const results = await Promise.allSettled(writes);
  const acknowledged = results.filter(({ status }) => status === 'fulfilled').length;
  assert.equal(await count(store.db), acknowledged);
  assert.ok(acknowledged < 64, 'the disk did get full');
  for (const result of results) if (result.status === 'rejected') assert.equal(result.reason.code, 'service_busy');
  assert.ok(store.failures.length > 0);
  await sql.raw('pragma max_page_count = 1000000').execute(store.db);
  await write(store.db, 'after', 'x'.repeat(3_000));
  assert.equal(await count(store.db), acknowledged + 1);
});

test('a disk that is full at the commit fails every member of the group', async () => {
  await using store = await opened();
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(store.db);
  // Small writes fit in the page cache until one needs a new page.
  await sql.raw(`pragma max_page_count = ${rows[0]!.page_count + 1}`).execute(store.db);
  let stored = 0;
  for (let round = 0; round < 40; round += 1) {
    const writes = Array.from({ length: 8 }, (_, index) => write(store.db, `${round}-${index}`, 'y'.repeat(60)));
    const results = await Promise.allSettled(writes);
    stored += results.filter(({ status }) => status === 'fulfilled').length;
    assert.equal(await count(store.db), stored, `round ${round}`);
  }
  assert.ok(stored < 320, 'the disk did get full');
});

test('a read-only database is unavailable for writes until it is writable again', async () => {
  await using store = await opened();
  const writer = new SqliteConnection(store.file, 'write');
  const groups = new GroupCommit(writer, DEFAULT_LIMITS, () => {});
  writer.run('pragma query_only = 1');
  await assert.rejects(groups.begin(), isSqliteUnavailable);
  assert.equal(await count(store.db), 0);
  writer.run('pragma query_only = 0');
  const ticket = await groups.begin();
  writer.run("insert into setting (name, value) values ('after', '')");
  await groups.commit(ticket);
  assert.equal(await count(store.db), 1);
  writer.close();
});

test('after an automatic rollback by SQLite the transaction cannot write, even if it catches the error', async () => {
  await using store = await opened();
  const transaction = store.db.transaction().execute(async (trx) => {
    await trx.insertInto('setting').values({ name: 'first', value: '' }).execute();
    // Simulates the automatic rollback of a failing disk.
    await sql`rollback`.execute(trx);
    await trx
      .insertInto('setting')
      .values({ name: 'second', value: '' })
      .execute()
      .catch(() => {});
  });
  await assert.rejects(transaction, BUSY);
  assert.equal(await count(store.db), 0);
  await write(store.db, 'next');
  assert.equal(await count(store.db), 1);
});

test('a group that was opened but not joined releases the lock', async () => {
  await using store = await opened();
  class FailsOnce extends SqliteConnection {
    isFailing = true;
    override run<R>(statement: string, parameters?: readonly unknown[]) {
      if (statement === 'savepoint work' && this.isFailing) {
        this.isFailing = false;
        throw Object.assign(new Error('disk I/O error'), { errcode: 10 });
      }
      return super.run<R>(statement, parameters);
    }
  }
  const writer = new FailsOnce(store.file, 'write');
  const groups = new GroupCommit(writer, DEFAULT_LIMITS, () => {});
  await assert.rejects(groups.begin(), isSqliteUnavailable);
  await groups.drain();
  assert.equal(writer.inTransaction, false);
  await write(store.db, 'next');
  assert.equal(await count(store.db), 1);
  writer.close();
});

test('a commit that fails and cannot be rolled back fails its group but not the next one', async () => {
  await using store = await opened();
  class FailsTwice extends SqliteConnection {
    failing = ['commit', 'rollback'];
    override run<R>(statement: string, parameters?: readonly unknown[]) {
      if (this.failing.includes(statement)) {
        this.failing = this.failing.filter((one) => one !== statement);
        throw Object.assign(new Error('disk I/O error'), { errcode: 10 });
      }
      return super.run<R>(statement, parameters);
    }
  }
  const writer = new FailsTwice(store.file, 'write');
  const groups = new GroupCommit(writer, DEFAULT_LIMITS, () => {});
  const insert = (name: string) => writer.run('insert into setting (name, value) values (?, ?)', [name, '']);
  const first = await groups.begin();
  insert('refused');
  await assert.rejects(groups.commit(first), isSqliteUnavailable);
  const second = await groups.begin();
  insert('kept');
  await groups.commit(second);
  assert.deepEqual(
    (await store.db.selectFrom('setting').select('name').execute()).map(({ name }) => name),
    ['kept'],
  );
  writer.close();
});

test('waiting for another process’s write lock does not block the event loop', async () => {
  await using store = await opened();
  const lock = lockedBy(store.file);
  let isDone = false;
  const pending = write(store.db, 'patient').then(() => {
    isDone = true;
  });
  // Each iteration is one that the waiting writer did not block.
  for (let turn = 0; turn < 20; turn += 1) await sleep(1);
  assert.equal(isDone, false);
  lock.release();
  await pending;
  assert.equal(await count(store.db), 1);
});

test('a lock that another process never releases is service_busy after the timeout', async () => {
  await using store = await opened({ maxWaitMs: 50 });
  const lock = lockedBy(store.file);
  await assert.rejects(write(store.db, 'impatient'), BUSY);
  lock.release();
  await write(store.db, 'later');
  assert.equal(await count(store.db), 1);
});

test('transactions beyond the queue’s limit are refused at once; those queued are served', async () => {
  await using store = await opened({ maxWaiting: 5 });
  const transactions = Array.from({ length: 20 }, (_, index) =>
    store.db.transaction().execute((transaction) => write(transaction, `w${index}`)),
  );
  const results = await Promise.allSettled(transactions);
  const served = results.filter(({ status }) => status === 'fulfilled').length;
  assert.ok(served >= 6 && served < 20, `${served} were served`);
  assert.equal(await count(store.db), served);
});

test('a transaction that does not end is rolled back, and the others continue', async () => {
  await using store = await opened({ maxHoldMs: 50 });
  const { promise: forEver, resolve: atLast } = Promise.withResolvers<void>();
  const stuck = store.db.transaction().execute(async (transaction) => {
    await transaction.insertInto('setting').values({ name: 'stuck', value: '' }).execute();
    await forEver;
    await transaction.insertInto('setting').values({ name: 'too late', value: '' }).execute();
  });
  stuck.catch(() => {});
  await write(store.db, 'next');
  assert.equal(await count(store.db), 1);
  atLast();
  await assert.rejects(stuck, BUSY);
  assert.equal(await count(store.db), 1);
});

test('a nested transaction cannot deadlock the store', async () => {
  await using store = await opened({ maxHoldMs: 200, maxWaitMs: 50 });
  await assert.rejects(
    store.db.transaction().execute(async () => {
      await write(store.db, 'on the wrong handle');
    }),
    BUSY,
  );
  await write(store.db, 'next');
  assert.equal(await count(store.db), 1);
});

test('concurrent transactions share commits; a single one is not delayed', async () => {
  await using store = await opened();
  await Promise.all(Array.from({ length: 64 }, (_, index) => write(store.db, `w${index}`)));
  assert.equal(
    store.groups.reduce((sum, size) => sum + size, 0),
    64,
  );
  assert.ok(store.groups.length <= 4, `64 transactions took ${store.groups.length} commits`);
  store.groups.length = 0;
  await write(store.db, 'alone');
  assert.deepEqual(store.groups, [1]);
});

test('closing waits for transactions in progress', async () => {
  const store = await opened();
  const pending = Promise.all(Array.from({ length: 10 }, (_, index) => write(store.db, `w${index}`)));
  // The writes are queued once the microtasks have run.
  await sleep(0);
  await store.db.destroy();
  await pending;
  const reopened = new DatabaseSync(store.file);
  assert.equal(reopened.prepare('select count(*) as n from setting').get()?.n, 10);
  reopened.close();
});

test('every commit is synced to the disk: PRAGMA synchronous is 2, the journal mode is WAL', async () => {
  await using store = await opened();
  const { rows: synchronous } = await sql<{ synchronous: number }>`pragma synchronous`.execute(store.db);
  assert.equal(synchronous[0]?.synchronous, 2);
  const { rows: journal } = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(store.db);
  assert.equal(journal[0]?.journal_mode, 'wal');
});

test('rows keep their columns while another process migrates the table', () => {
  const file = join(newFolder(), 'rows.db');
  const connection = new SqliteConnection(file, 'write');
  connection.run('create table thing (first text, second text)');
  connection.run('insert into thing values (?, ?)', ['1', '2']);
  const rows = (text: string) => connection.run(text).rows.map((row) => ({ ...(row as object) }));
  const [all, named] = ['select thing.*, 7 as last from thing', 'select second, first, 7 as last from thing'];
  assert.deepEqual(rows(all), [{ first: '1', second: '2', last: 7 }]);
  assert.deepEqual(rows(named), [{ second: '2', first: '1', last: 7 }]);
  using other = new DatabaseSync(file);
  other.exec("alter table thing add column third text default '3'");
  assert.deepEqual(rows(all), [{ first: '1', second: '2', third: '3', last: 7 }]);
  other.exec('alter table thing drop column third');
  other.exec("alter table thing drop column second; alter table thing add column second text default 'new'");
  assert.deepEqual(rows(all), [{ first: '1', second: 'new', last: 7 }]);
  assert.deepEqual(rows(named), [{ second: 'new', first: '1', last: 7 }]);
  connection.close();
});
