// What a store contains: equal digests on both engines, and every sealed value in a column that is declared as sealed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, parseSealKeys, type Sealed, sealerWith } from '../../src/adapters/seal/seal.ts';
import { contentsOf, rowsOf, storeContents, storeDigest, tablesOf } from '../../src/adapters/store/engine/contents.ts';
import { type Engine, openEngine } from '../../src/adapters/store/engine/engine.ts';
import { migrate } from '../../src/adapters/store/engine/migrations.ts';
import type { Db, Schema } from '../../src/adapters/store/engine/schema.ts';
import {
  countSealed,
  findUnopenable,
  SEALED,
  SEALED_PLACES,
  type SealedTables,
  sealKeysInUse,
} from '../../src/adapters/store/engine/sealed.ts';
import { engineAt } from '../../src/adapters/store/store.ts';
import { bothEngines, type TestEngine } from '../support/engines.ts';
import { restoreFixture, storeFixtures } from '../support/store-fixture.ts';

const FIXTURE = storeFixtures().at(-1)!;
const ENGINES = await bothEngines();

/** Opens a store with contents of every kind, of the current schema. */
async function withStore(testEngine: TestEngine, work: (db: Db, engine: Engine) => Promise<void>): Promise<void> {
  const location = await testEngine.newEmptyLocation();
  await restoreFixture(location, FIXTURE);
  const migrator = engineAt(location, {}, true);
  const migrating = openEngine(migrator, () => {});
  await migrate(migrating, migrator, () => FIXTURE.now).finally(() => migrating.destroy());
  const engine = engineAt(location);
  const db = openEngine(engine, () => {});
  await work(db, engine).finally(() => db.destroy());
}

const run = (db: Db, statement: string) => sql.raw(statement).execute(db);

test('equal contents have equal digests on both engines', async () => {
  const seen: unknown[] = [];
  for (const engine of ENGINES) {
    await withStore(engine, async (db, engine) => {
      const contents = await storeContents(db, engine);
      seen.push({ contents, digest: storeDigest(contents) });
      const orders = contents.find(({ table }) => table === 'certificate_order');
      assert.equal(orders?.rows, FIXTURE.tables.certificate_order?.length);
    });
  }
  assert.deepEqual(seen[0], seen[1]);
});

/** The declared table, and one that a schema with a further sealed column would need. */
type Planted = Schema & { planted: { id: string; secret: Sealed | null } };
SEALED satisfies SealedTables<Schema>;
// @ts-expect-error A sealed column of a new table that nothing rotates does not compile.
SEALED satisfies SealedTables<Planted>;
// @ts-expect-error A sealed value does not fit into a column for text.
export const MISPLACED: Schema['setting'] = { name: 'a', value: sealerWith([newSealKey()]).seal('a', 'b') };

/** Columns with sealed values, or named as if they had some, that are not in the table of sealed columns. */
async function undeclaredColumns(db: Db, engine: Engine): Promise<string[]> {
  const declared = new Set(SEALED_PLACES.map(({ table, column }) => `${table}.${column}`));
  const found = new Set<string>();
  for (const table of await tablesOf(db, engine)) {
    for (const column of table.columns) if (/^sealed/.test(column)) found.add(`${table.name}.${column}`);
    for await (const rows of rowsOf(db, table)) {
      for (const [column, value] of rows.flatMap((row) => Object.entries(row))) {
        if (/^v1\.[0-9a-f]{8}\./.test(String(value))) found.add(`${table.name}.${column}`);
      }
    }
  }
  return [...found].filter((one) => !declared.has(one));
}

for (const testEngine of ENGINES) {
  describe(testEngine.name, () => {
    test('a digest changes with a value, a row, and a row moved to another key', async () => {
      await withStore(testEngine, async (db, engine) => {
        const accounts = (await tablesOf(db, engine)).find(({ name }) => name === 'account')!;
        const digests = new Set<string>();
        const note = async () => {
          const { digest } = await contentsOf(db, accounts);
          assert.ok(!digests.has(digest));
          digests.add(digest);
        };
        await note();
        await run(
          db,
          "insert into account (id, name, kind, locale, created_at) values ('x', 'ab', 'standard', 'en', 1)",
        );
        await note();
        await run(db, "update account set name = 'abc' where id = 'x'");
        await note();
        await run(db, "update account set id = 'xa', name = 'bc' where id = 'x'");
        await note();
        await run(db, "update account set created_at = 2 where id = 'xa'");
        await note();
      });
    });

    test('rows are streamed completely, in batches, with composite keys too', async () => {
      await withStore(testEngine, async (db, engine) => {
        for (let account = 0; account < 3; account += 1) {
          await run(
            db,
            `insert into account (id, name, kind, locale, created_at) values ('a${account}', 'x', 'standard', 'en', 1)`,
          );
          const rows = Array.from({ length: 400 }, (_, at) => `('a${account}', '${(at * 7919).toString(36)}', 1)`);
          await run(db, `insert into reported_key values ${rows.join(',')}`);
        }
        const table = (await tablesOf(db, engine)).find(({ name }) => name === 'reported_key')!;
        assert.deepEqual(table.key, ['account_id', 'fingerprint']);
        const sizes: number[] = [];
        const keys = new Set<string>();
        for await (const rows of rowsOf(db, table)) {
          sizes.push(rows.length);
          for (const row of rows) keys.add(`${row.account_id}/${row.fingerprint}`);
        }
        assert.equal(keys.size, 1_200 + (FIXTURE.tables.reported_key?.length ?? 0));
        assert.ok(sizes.length > 2 && Math.max(...sizes) <= 512, sizes.join(' '));
      });
    });

    test('every sealed value is in a declared column; planted columns are found', async () => {
      await withStore(testEngine, async (db, engine) => {
        assert.deepEqual(await undeclaredColumns(db, engine), []);
        const sealed = sealerWith([newSealKey()]).seal('a', 'b');
        await run(db, 'create table planted (id text primary key, sealed_thing text, payload text)');
        await run(db, `insert into planted values ('a', null, '${sealed}')`);
        const found = await undeclaredColumns(db, engine);
        assert.deepEqual(found.sort(), ['planted.payload', 'planted.sealed_thing']);
      });
    });

    test('sealed values are counted by key, and those that do not open are named', async () => {
      await withStore(testEngine, async (db) => {
        const keys = parseSealKeys(FIXTURE.sealKey)!;
        const counts = await countSealed(db);
        assert.deepEqual([...(await sealKeysInUse(db))], [keys[0]?.id]);
        assert.deepEqual(new Set(counts.map(({ keyId }) => keyId)), new Set([keys[0]?.id]));
        const issuers = counts.find(({ table }) => table === 'issuer');
        assert.equal(issuers?.values, FIXTURE.tables.issuer?.filter((row) => row.sealed_key !== null).length);
        assert.deepEqual(await findUnopenable(db, sealerWith(keys)), []);
        const all = counts.reduce((total, { values }) => total + values, 0);
        assert.equal((await findUnopenable(db, sealerWith([newSealKey()]), { limit: 1_000 })).length, all);
        await run(db, "update sealed_secret set name = 'elsewhere' where name = 'seal-check'");
        assert.match((await findUnopenable(db, sealerWith(keys))).join(), /^sealed_secret\.sealed of elsewhere: /);
      });
    });
  });
}
