// Two writers of one SQLite file take turns.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SqliteConnection } from '../../../src/adapters/store/engine/sqlite-connection.ts';
import { newFolder } from '../../support/app.ts';

/** Longer than a turn. */
const TURN_MS = 20;

test('a writer that waits is next, whoever else asks first', async () => {
  const file = join(newFolder(), 'reseal.db');
  const [busy, patient] = [new SqliteConnection(file, 'write'), new SqliteConnection(file, 'write')];
  assert.ok(busy.tryBegin());
  assert.equal(patient.tryBegin(), false, 'the file is locked');
  assert.equal(existsSync(`${file}-turn-journal`), false, 'to wait creates no file, which a sync would wait for');
  await sleep(TURN_MS);
  busy.run('commit');
  assert.equal(busy.tryBegin(), false, 'another waits');
  assert.ok(patient.tryBegin());
  assert.equal(busy.tryBegin(), false, 'the file is locked');
  patient.run('commit');
  assert.ok(busy.tryBegin());
  busy.run('commit');
  busy.close();
  patient.close();
});

test('a writer that stops waiting lets the others pass', async () => {
  const file = join(newFolder(), 'reseal.db');
  const [busy, impatient] = [new SqliteConnection(file, 'write'), new SqliteConnection(file, 'write')];
  assert.ok(busy.tryBegin());
  assert.equal(impatient.tryBegin(), false);
  impatient.stopWaiting();
  await sleep(TURN_MS);
  busy.run('commit');
  assert.ok(busy.tryBegin());
  busy.run('commit');
  busy.close();
  impatient.close();
});
