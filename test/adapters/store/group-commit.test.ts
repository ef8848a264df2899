// Works of the group commit, which run back to back in one transaction: one that fails fails alone, a disk failure fails
// all, and none is acknowledged before it is on disk. For transactions that await, see sqlite-trouble.test.ts.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { LockTimeout } from '../../../src/adapters/store/engine/fifo-lock.ts';
import {
  DEFAULT_LIMITS,
  GroupCommit,
  type GroupCommitLimits,
} from '../../../src/adapters/store/engine/group-commit.ts';
import { SqliteConnection } from '../../../src/adapters/store/engine/sqlite-connection.ts';
import { isSqliteUnavailable } from '../../../src/adapters/store/engine/sqlite-errors.ts';
import { newFolder } from '../../support/app.ts';

/** A disk that fails at a statement, as often as it is listed; and what was sent to it. */
class FaultyConnection extends SqliteConnection {
  readonly failing: string[] = [];
  readonly sent: string[] = [];

  override run<R>(statement: string, parameters?: readonly unknown[]) {
    this.sent.push(statement);
    const index = this.failing.indexOf(statement);
    if (index < 0) return super.run<R>(statement, parameters);
    this.failing.splice(index, 1);
    throw Object.assign(new Error('disk I/O error'), { errcode: 10 });
  }
}

const INSERT = 'insert into setting (name) values (?)';

function opened(limits: Partial<GroupCommitLimits> = {}) {
  const file = join(newFolder(), 'reseal.db');
  using setup = new DatabaseSync(file);
  setup.exec('create table setting (name text primary key) strict');
  const writer = new FaultyConnection(file, 'write');
  const sizes: number[] = [];
  const groups = new GroupCommit(writer, { ...DEFAULT_LIMITS, ...limits }, (size) => sizes.push(size));
  const other = new DatabaseSync(file);
  return {
    ...{ writer, groups, sizes, other },
    /** What another connection sees, in the order of their insertion. */
    stored: () =>
      other
        .prepare('select name from setting order by rowid')
        .all()
        .map(({ name }) => String(name)),
    insert: (name: string) => groups.run((connection) => connection.run(INSERT, [name])),
    [Symbol.dispose]() {
      other.close();
      writer.close();
    },
  };
}

const namesUpTo = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index}`);
const outcomesOf = async (works: Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(works)).map(({ status }) => status);

test('works of one turn share a transaction without savepoints, and return their results', async () => {
  using store = opened();
  const results = await Promise.all(
    namesUpTo(5).map((name) =>
      store.groups.run((writer) => {
        writer.run(INSERT, [name]);
        return `result of ${name}`;
      }),
    ),
  );
  assert.deepEqual(
    results,
    namesUpTo(5).map((name) => `result of ${name}`),
  );
  assert.deepEqual(store.stored(), namesUpTo(5));
  assert.deepEqual(store.sizes, [5]);
  assert.deepEqual(
    store.writer.sent.filter((statement) => statement !== INSERT),
    ['begin immediate', 'commit'],
  );
});

test('a work is acknowledged after the commit', async () => {
  using store = opened();
  let seen: string[] | undefined;
  const done = store.insert('w0').then(() => {
    seen = store.stored();
  });
  while (!store.writer.sent.includes(INSERT)) await setImmediate();
  await done;
  assert.deepEqual(seen, ['w0']);
});

test('one that fails among many fails alone, and the others are durable', async () => {
  using store = opened();
  await store.insert('w3');
  const works = namesUpTo(6).map(store.insert);
  const [, , , duplicate] = works;
  await assert.rejects(duplicate!, { errcode: 1555 });
  const outcomes = await outcomesOf(works);
  assert.deepEqual(
    outcomes.map((one) => one === 'rejected'),
    [false, false, false, true, false, false],
  );
  assert.deepEqual(store.stored().sort(), namesUpTo(6));
});

test('one that throws after having written leaves nothing', async () => {
  using store = opened();
  const throwing = (name: string) =>
    store.groups.run((writer) => {
      writer.run(INSERT, [name]);
      throw new Error('changed its mind');
    });
  await assert.rejects(throwing('alone'), /changed its mind/);
  assert.deepEqual([store.stored(), store.writer.inTransaction], [[], false]);
  const works = [store.insert('before'), throwing('among others'), store.insert('after')];
  assert.deepEqual(await outcomesOf(works), ['fulfilled', 'rejected', 'fulfilled']);
  assert.deepEqual(store.stored(), ['before', 'after']);
});

test('a disk that fails at the commit fails all and stores nothing; the next ones are written', async () => {
  using store = opened();
  store.writer.failing.push('commit');
  const works = namesUpTo(4).map(store.insert);
  for (const work of works) await assert.rejects(work, isSqliteUnavailable);
  assert.deepEqual(store.stored(), []);
  await store.insert('next');
  assert.deepEqual(store.stored(), ['next']);
});

test('a disk that fails in the middle acknowledges what is stored, and nothing else', async () => {
  for (const failing of [
    // The first run, and the first member of the second.
    [INSERT, 'savepoint work'],
    // The second member can neither be written nor undone: all of the group fails.
    [INSERT, 'rollback to work'],
    [INSERT, 'release work'],
    [INSERT, 'rollback'],
    [INSERT, 'begin immediate'],
    ['begin immediate'],
    ['savepoint work', 'commit', INSERT],
  ]) {
    using store = opened();
    await store.insert('w1');
    store.writer.failing.push(...failing);
    const names = namesUpTo(4);
    const outcomes = await outcomesOf(names.map(store.insert));
    const acknowledged = names.filter((_, index) => outcomes[index] === 'fulfilled');
    assert.deepEqual(store.stored().sort(), ['w1', ...acknowledged].sort(), failing.join());
    store.writer.failing.length = 0;
    await store.insert('next');
    assert.ok(store.stored().includes('next'), failing.join());
    assert.equal(store.writer.inTransaction, false);
  }
});

test('after an automatic rollback nothing of the group is acknowledged, or written outside of a transaction', async () => {
  for (const place of [0, 1, 2]) {
    using store = opened();
    await store.insert('taken');
    // As SQLite does when the disk fails. The duplicate makes each of them run in a savepoint.
    const works = ['w0', 'taken', 'w1'].map((name) => () => store.insert(name));
    works.splice(place, 0, () => store.groups.run((writer) => writer.run('rollback')));
    const outcomes = await outcomesOf(works.map((work) => work()));
    assert.deepEqual(store.stored(), ['taken'], String(place));
    assert.deepEqual(new Set(outcomes), new Set(['rejected']), String(place));
    await store.insert('next');
    assert.deepEqual(store.stored(), ['taken', 'next']);
  }
});

test('works beside transactions that await: each fails alone, and they share commits', async () => {
  using store = opened();
  const transaction = async (name: string) => {
    const ticket = await store.groups.begin();
    store.writer.run(INSERT, [name]);
    await setImmediate();
    if (name.startsWith('bad')) {
      store.groups.rollback(ticket);
      throw new Error('rolled back');
    }
    await store.groups.commit(ticket);
  };
  await store.insert('taken');
  store.sizes.length = 0;
  const works = namesUpTo(8).flatMap((name) => [store.insert(name), transaction(`t of ${name}`)]);
  const bad = [store.insert('taken'), transaction('bad one')];
  const outcomes = await outcomesOf([...works, ...bad]);
  assert.deepEqual(outcomes, [...works.map(() => 'fulfilled'), 'rejected', 'rejected']);
  const expected = ['taken', ...namesUpTo(8), ...namesUpTo(8).map((name) => `t of ${name}`)];
  assert.deepEqual(store.stored().sort(), expected.sort());
  assert.equal(
    store.sizes.reduce((sum, size) => sum + size, 0),
    16,
  );
  assert.ok(store.sizes.length < 16, `${store.sizes.length} commits`);
});

test('more works than one round takes are all written, in their order', async () => {
  using store = opened();
  const names = namesUpTo(1_000);
  await Promise.all(names.map(store.insert));
  assert.deepEqual(store.stored(), names);
  assert.ok(store.sizes.length > 1 && store.sizes.length < 10, `${store.sizes.length} rounds`);
});

test('works beyond the queue’s limit are refused at once; those queued are written', async () => {
  using store = opened({ maxWaiting: 3 });
  const works = namesUpTo(5).map(store.insert);
  for (const work of works.slice(3)) await assert.rejects(work, LockTimeout);
  await Promise.all(works.slice(0, 3));
  assert.deepEqual(store.stored(), namesUpTo(3));
  await store.insert('next');
});

test('draining waits for works that are queued, however many rounds they take', async () => {
  using store = opened();
  const names = namesUpTo(600);
  const works = names.map(store.insert);
  await store.groups.drain();
  assert.equal(store.stored().length, names.length);
  await Promise.all(works);
});

test('works wait for another process’s write lock without blocking the event loop', async () => {
  using store = opened();
  store.other.exec('begin immediate');
  let isDone = false;
  const work = store.insert('patient').then(() => {
    isDone = true;
  });
  const attempts = () => store.writer.sent.filter((statement) => statement === 'begin immediate').length;
  // Between two attempts the event loop has turned.
  while (attempts() < 5) await setImmediate();
  assert.equal(isDone, false);
  store.other.exec('rollback');
  await work;
  assert.deepEqual(store.stored(), ['patient']);
});

test('works fail when another process does not release the write lock in time, and later ones are written', async () => {
  using store = opened({ maxWaitMs: 20 });
  store.other.exec('begin immediate');
  for (const work of namesUpTo(3).map(store.insert)) await assert.rejects(work, LockTimeout);
  store.other.exec('rollback');
  await store.insert('later');
  assert.deepEqual(store.stored(), ['later']);
});

test('works fail when a transaction holds the writer too long, and later ones are written', async () => {
  using store = opened({ maxWaitMs: 20 });
  const ticket = await store.groups.begin();
  for (const work of namesUpTo(3).map(store.insert)) await assert.rejects(work, LockTimeout);
  store.groups.rollback(ticket);
  await store.insert('later');
  assert.deepEqual(store.stored(), ['later']);
});
