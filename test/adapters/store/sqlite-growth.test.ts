// The WAL of the embedded store under a reader that keeps its snapshot: bounded, refused as busy at the limit, and small
// again once the reader has gone.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { migrate } from '../../../src/adapters/store/engine/migrations.ts';
import type { Db } from '../../../src/adapters/store/engine/schema.ts';
import { sqliteEngine } from '../../../src/adapters/store/engine/sqlite.ts';
import { newFolder } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const MIB = 1024 * 1024;

async function opened(walLimitBytes?: number) {
  const file = join(newFolder(), 'reseal.db');
  const failures: string[] = [];
  const engine = sqliteEngine({ file, walLimitBytes });
  const db = openEngine(engine, (error) => failures.push((error as Error).message));
  await migrate(db, engine, () => 0);
  return { db, file, failures, walBytes: () => engine.walBytes() ?? 0, [Symbol.asyncDispose]: () => db.destroy() };
}

/** Each write replaces the same row, so that only the WAL grows; pages that do not change are not written. */
let letter = 0;
function write(db: Db, bytes: number): Promise<unknown> {
  letter += 1;
  const value = String.fromCharCode(97 + (letter % 26)).repeat(bytes);
  return db
    .insertInto('setting')
    .values({ name: 'x', value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute();
}

/** A backup, a shell with an open transaction, or a replicator that is behind. */
function longReader(file: string) {
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec('begin');
  reader.prepare('select count(*) from setting').get();
  return { end: () => reader.close() };
}

rule('ops 40', 'writes are refused with 503 `service_busy` until that reader has ended', async () => {
  const limit = 2 * MIB;
  await using store = await opened(limit);
  const reader = longReader(store.file);
  let written = 0;
  const fill = async () => {
    for (; written < 200; written += 1) await write(store.db, 64 * 1024);
  };
  await assert.rejects(fill(), { code: 'service_busy' });
  assert.ok(store.walBytes() < 2 * limit, `${store.walBytes()} bytes`);
  assert.match(
    store.failures[0] ?? '',
    /^the WAL is beyond RESEAL_WAL_LIMIT_MIB, because a reader keeps an old snapshot$/,
  );
  await assert.rejects(write(store.db, 1), { code: 'service_busy' }, 'for as long as the reader is there');
  assert.equal((await store.db.selectFrom('setting').select('name').execute()).length, 1, 'reads go on');
  reader.end();
  await write(store.db, 1);
  assert.ok(store.walBytes() < limit / 2, 'the WAL begins anew');
});

test('a WAL that a reader has let grow does not keep its size', async () => {
  await using store = await opened();
  const reader = longReader(store.file);
  while (store.walBytes() < 48 * MIB) await write(store.db, 4 * MIB);
  reader.end();
  // The first copies what the reader held back, the second begins the WAL anew.
  await write(store.db, 1);
  await write(store.db, 1);
  assert.ok(store.walBytes() <= 32 * MIB, `${store.walBytes()} bytes`);
});
