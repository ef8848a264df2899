// Copies of a store between engines: complete, verified, resumed after an interruption, and never onto other data. The
// heavy version is `npm run campaign -- store-copy`.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, parseSealKeys, sealerWith } from '../../src/adapters/seal/seal.ts';
import { storeContents, type TableContents } from '../../src/adapters/store/engine/contents.ts';
import { type CopyProgress, copyStore } from '../../src/adapters/store/engine/copy.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import type { Db } from '../../src/adapters/store/engine/schema.ts';
import { type DatabaseLocation, engineAt, openStore } from '../../src/adapters/store/store.ts';
import { Problem } from '../../src/kernel/problem.ts';
import { bothEngines, type TestEngine } from '../support/engines.ts';
import { restoreFixture, storeFixtures } from '../support/store-fixture.ts';

const FIXTURE = storeFixtures().at(-1)!;
const now = () => FIXTURE.now;
const sealer = () => sealerWith(parseSealKeys(FIXTURE.sealKey)!);
const ENGINES = await bothEngines();
const [SQLITE, POSTGRES] = ENGINES as [TestEngine, TestEngine];
const isProblem = (pattern: RegExp) => (error: unknown) => error instanceof Problem && pattern.test(error.message);

async function withDb<T>(location: DatabaseLocation, work: (db: Db) => Promise<T>, isMigrating = false): Promise<T> {
  const db = openEngine(engineAt(location, {}, isMigrating), () => {});
  return await work(db).finally(() => db.destroy());
}
const run = (location: DatabaseLocation, statement: string) =>
  withDb(location, (db) => sql.raw<{ value: unknown }>(statement).execute(db));
const contents = (location: DatabaseLocation) => withDb(location, (db) => storeContents(db, engineAt(location)));

/** A store of the current schema with contents of every kind, and enough rows for several batches. */
async function filled(engine: TestEngine): Promise<DatabaseLocation> {
  const location = await engine.newEmptyLocation();
  await restoreFixture(location, FIXTURE);
  const store = await openStore(location, sealer(), now);
  for (let row = 0; row < 300; row += 1) await store.settings.put(`row-${row}` as 'mode', 'x'.repeat(row));
  await store.close();
  return location;
}

async function copy(
  from: DatabaseLocation,
  to: DatabaseLocation,
  onProgress: (progress: CopyProgress) => void = () => {},
): Promise<TableContents[]> {
  const [source, target] = [engineAt(from), engineAt(to, {}, true)];
  return await withDb(from, async (sourceDb) => {
    const targetDb = openEngine(target, () => {});
    const options = { now, onProgress, requireStopped: async () => {} };
    return await copyStore({ engine: source, db: sourceDb }, { engine: target, db: targetDb }, options).finally(() =>
      targetDb.destroy(),
    );
  });
}

test('there are no sequences to set: the service makes all ids', async () => {
  const location = await filled(POSTGRES);
  const { rows } = await run(location, 'select count(*) as value from pg_sequences');
  assert.equal(Number(rows[0]?.value), 0, 'store copy must set them');
});

for (const [from, to] of [
  [SQLITE, POSTGRES],
  [POSTGRES, SQLITE],
  [SQLITE, SQLITE],
] as const) {
  describe(`${from.name} to ${to.name}`, () => {
    test('everything is copied, and the copy is a store of its own', async () => {
      const [source, target] = [await filled(from), await to.newEmptyLocation()];
      const before = await contents(source);
      assert.deepEqual(await copy(source, target), before);
      assert.deepEqual(await contents(target), before);
      const store = await openStore(target, sealer(), now);
      await store.sealing.confirm();
      assert.ok((await store.issuers.list()).some(({ privateKey }) => privateKey));
      // Foreign keys are back.
      await assert.rejects(store.proofs.record('nobody', 'example.com', 'dns', now()));
      await store.close();
    });

    test('an interrupted copy cannot be opened, and continues where it was', async () => {
      const [source, target] = [await filled(from), await to.newEmptyLocation()];
      const firstTables: (string | undefined)[] = [];
      for (const last of ['certificate', 'setting']) {
        const seen: string[] = [];
        await assert.rejects(
          copy(source, target, ({ table }) => {
            seen.push(table);
            if (table === last) throw new Error('interrupted');
          }),
          /interrupted/,
        );
        firstTables.push(seen[0]);
        await assert.rejects(openStore(target, sealer(), now), isProblem(/copy into this store is not finished/));
      }
      assert.equal(firstTables[0], 'account');
      assert.ok((firstTables[1] ?? '') > 'certificate', `it went on with ${firstTables[1]}`);
      assert.deepEqual(await copy(source, target), await contents(source));
      assert.deepEqual(await contents(target), await contents(source));
    });
  });
}

test('a target that has data, or other tables, is refused and left alone', async () => {
  const source = await filled(SQLITE);
  for (const engine of ENGINES) {
    const used = await engine.newLocation();
    const store = await openStore(used, sealerWith([newSealKey()]), now);
    await store.accounts.insert({ id: 'a', name: 'x', kind: 'standard', locale: 'en', createdAt: 1 });
    await store.close();
    const before = await contents(used);
    await assert.rejects(copy(source, used), isProblem(/not empty: it has rows in account/));
    assert.deepEqual(await contents(used), before);
    const foreign = await engine.newEmptyLocation();
    await run(foreign, 'create table other (id text primary key)');
    await assert.rejects(copy(source, foreign), isProblem(/not empty: it has other tables/));
  }
});

test('a source that changes meanwhile, or is another one, is noticed', async () => {
  const [source, target] = [await filled(SQLITE), await SQLITE.newEmptyLocation()];
  let change: Promise<unknown> | undefined;
  await assert.rejects(
    copy(source, target, ({ table }) => {
      if (table !== 'certificate_order') return;
      change ??= run(source, "update account set name = 'changed'");
    }),
    isProblem(/differ in account \(\d+ and \d+ rows\)/),
  );
  await change;
  await assert.rejects(openStore(target, sealer(), now), isProblem(/not finished/));
  const other = await SQLITE.newEmptyLocation();
  const store = await openStore(other, sealerWith([newSealKey()]), now);
  await store.sealing.confirm();
  await store.close();
  await assert.rejects(copy(other, target), isProblem(/copy of another store/));
});
