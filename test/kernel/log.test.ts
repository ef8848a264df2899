// How log lines reach their stream: together where they end together, whole, and none kept back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { logTo, type RequestLine } from '../../src/kernel/log.ts';

const REQUEST: RequestLine = {
  ...{ event: 'request', request_id: 'r', method: 'GET', route: '/', status: 200, code: 'success', ms: 1 },
  ...{ account_id: null, key_id: null, remote: '127.0.0.1' },
} as RequestLine;

function newLog() {
  const writes: string[] = [];
  const log = logTo({ write: (text) => writes.push(text) }, { format: 'json' }, () => 0);
  return { writes, log };
}
const linesIn = (text: string | undefined) => (text ?? '').trimEnd().split('\n').length;

test('lines of requests that end in one turn are one write, and another line takes them along at once', async () => {
  const { writes, log } = newLog();
  log(REQUEST);
  log(REQUEST);
  assert.equal(writes.length, 0);
  await setImmediate();
  assert.deepEqual(writes.map(linesIn), [2]);
  log(REQUEST);
  log({ event: 'warning', text: 'now' });
  assert.deepEqual(writes.map(linesIn), [2, 2]);
  await setImmediate();
  assert.equal(writes.length, 2);
});

test('a write of several lines stays below what a pipe takes in one piece, and ends with a whole line', async () => {
  const { writes, log } = newLog();
  for (let count = 0; count < 100; count += 1) log(REQUEST);
  await setImmediate();
  assert.equal(
    writes.map(linesIn).reduce((sum, one) => sum + one),
    100,
  );
  for (const text of writes) assert.ok(text.length <= 4_096 && text.endsWith('}\n'), `${text.length}`);
});

test('what waits is written when the process exits, and an idle log leaves no listener behind', async () => {
  const before = process.listenerCount('exit');
  const { writes, log } = newLog();
  log(REQUEST);
  const listeners = process.listeners('exit');
  assert.equal(listeners.length, before + 1);
  listeners.at(-1)?.call(process, 0);
  assert.equal(writes.length, 1);
  await setImmediate();
  assert.equal(process.listenerCount('exit'), before);
});
