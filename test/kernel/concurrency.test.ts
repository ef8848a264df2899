// The fair semaphore and the fair queue: shares, turns, and that nothing is left behind.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { batches, FairPermits, fairSemaphore, keyedMutex } from '../../src/kernel/concurrency.ts';
import { FairQueue } from '../../src/kernel/fair-queue.ts';

test('a key holds at most as many permits as it leaves free, and the others do not wait for it', async () => {
  const acquire = fairSemaphore(8);
  const held: [string, Disposable][] = [];
  const ask = (key: string, count: number) => {
    for (let index = 0; index < count; index += 1) void acquire(key).then((permit) => held.push([key, permit]));
  };
  const counts = () =>
    Object.fromEntries(
      Array.from(
        Map.groupBy(held, ([key]) => key),
        ([key, list]) => [key, list.length],
      ),
    );
  ask('a', 20);
  await setImmediate();
  assert.deepEqual(counts(), { a: 4 });
  ask('b', 20);
  ask('c', 20);
  ask('d', 20);
  ask('e', 20);
  await setImmediate();
  assert.deepEqual(counts(), { a: 4, b: 2, c: 1, d: 1 });
  // A permit that becomes free goes to the key that waits longest, not back to the one that had it.
  held.shift()?.[1][Symbol.dispose]();
  await setImmediate();
  assert.deepEqual(counts(), { a: 3, b: 2, c: 1, d: 1, e: 1 });
  // Everything is served in the end, and afterwards every permit is free.
  let served = 0;
  for (; held.length > 0; served += 1) {
    held.shift()?.[1][Symbol.dispose]();
    await setImmediate();
  }
  assert.equal(served + 1, 100);
  ask('z', 8);
  await setImmediate();
  assert.deepEqual(counts(), { z: 4 });
});

test('work that ends at once gives its permit to the next, however much of it waits', () => {
  const permits = new FairPermits(2);
  permits.take('a', () => {});
  const waiting = 5_000;
  let done = 0;
  for (let index = 0; index < waiting; index += 1) {
    permits.take('a', () => {
      done += 1;
      permits.release('a');
    });
  }
  assert.equal(done, 0);
  permits.release('a');
  assert.equal(done, waiting);
});

test('work of one key runs in the order of calls, after the call and whatever became of the one before', async () => {
  const withLock = keyedMutex();
  const seen: string[] = [];
  const work = (name: string, key: string) =>
    withLock(key, async () => {
      seen.push(`${name} begins`);
      await setImmediate();
      seen.push(`${name} ends`);
      if (name === 'first') throw new Error(name);
      return name;
    });
  const first = work('first', 'a');
  const others = [work('second', 'a'), work('third', 'a'), work('beside', 'b')];
  assert.equal(seen.length, 0);
  await assert.rejects(first, /first/);
  assert.deepEqual(await Promise.all(others), ['second', 'third', 'beside']);
  assert.deepEqual(
    seen.filter((line) => !line.startsWith('beside')),
    ['first', 'second', 'third'].flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
  assert.ok(seen.indexOf('beside begins') < seen.indexOf('first ends'));
  assert.equal(await work('later', 'a'), 'later');
});

test('a queue gives keys their turns, and drops from the longest', () => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.push(item.charAt(0), item);
  assert.equal(queue.shift(), 'a1');
  assert.equal(
    queue.shift((key) => key !== 'b'),
    'c1',
  );
  assert.deepEqual([queue.shift(), queue.shift()], ['b1', 'a2']);
  queue.push('c', 'c2');
  assert.equal(queue.dropLongest(), 'c2', 'of equals, the last that came');
  queue.push('b', 'b3');
  assert.equal(queue.dropLongest(), 'b3');
  assert.deepEqual(
    [queue.size, queue.shift(), queue.shift(), queue.shift(), queue.dropLongest(), queue.size],
    [2, 'b2', 'a3', undefined, undefined, 0],
  );
});

test('a batch ends with its turn, and the rest runs in the next', async () => {
  const inBatch = batches(0);
  const turns: number[] = [];
  let turn = 0;
  const work = ['a', 'b', 'c'].map(() => inBatch(() => turns.push(turn)));
  const failing = assert.rejects(
    inBatch(() => assert.fail('its own')),
    /its own/,
  );
  for (; turns.length < 3; turn += 1) await setImmediate();
  await Promise.all([...work, failing]);
  assert.equal(new Set(turns).size, 3);
});
