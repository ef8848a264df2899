import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openEngine } from '../../src/adapters/store/engine.ts';
import { type Migration, migrate, readMigrations } from '../../src/adapters/store/migrations.ts';
import { engineAt } from '../../src/adapters/store/store.ts';
import { Problem } from '../../src/problem.ts';
import { bothEngines } from '../support/engines.ts';

const KNOWN = readMigrations();
const EXTRA: Migration = {
  number: KNOWN.length + 1,
  name: 'extra',
  sha256: 'e'.repeat(64),
  statements: ['create table extra (id text primary key)', "insert into extra (id) values ('once')"],
};

test('migrations are numbered from 1 without gaps, and each has statements', () => {
  assert.deepEqual(
    KNOWN.map(({ number }) => number),
    KNOWN.map((_, index) => index + 1),
  );
  for (const { name, statements } of KNOWN) assert.ok(statements.length > 0, name);
});

for (const engine of await bothEngines()) {
  describe(engine.name, () => {
    test('of several that start at once, one applies each migration and the others find it done', async () => {
      const location = await engine.newLocation();
      const applied = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const one = engineAt(location, {}, true);
          const db = openEngine(one, () => {});
          return await migrate(db, one, () => 0, [...KNOWN, EXTRA]).finally(() => db.destroy());
        }),
      );
      assert.deepEqual(
        applied.flat().sort(),
        [...KNOWN, EXTRA].map(({ number }) => number),
      );
    });

    const attempt = async (first: Migration[], second: Migration[]) => {
      const one = engineAt(await engine.newLocation());
      const db = openEngine(one, () => {});
      try {
        await migrate(db, one, () => 0, first);
        return await migrate(db, one, () => 0, second);
      } finally {
        await db.destroy();
      }
    };

    test('a database newer than the code is refused, with both numbers and what to do', async () => {
      await assert.rejects(attempt([...KNOWN, EXTRA], KNOWN), (error) => {
        assert.ok(error instanceof Problem);
        assert.match(error.message, new RegExp(`newer.*migration ${EXTRA.number} \\(extra\\).*up to ${KNOWN.length}`));
        assert.match(error.remedy, /Run the version/);
        return true;
      });
    });

    test('a migration that was edited after it was applied is refused', async () => {
      await assert.rejects(attempt([...KNOWN, EXTRA], [...KNOWN, { ...EXTRA, sha256: 'f'.repeat(64) }]), Problem);
    });

    test('a later version applies only what is new', async () => {
      assert.deepEqual(await attempt(KNOWN, [...KNOWN, EXTRA]), [EXTRA.number]);
    });

    test('a migration that fails leaves nothing behind', async () => {
      const one = engineAt(await engine.newLocation());
      const db = openEngine(one, () => {});
      const broken = { ...EXTRA, statements: [...EXTRA.statements, 'this is not SQL'] };
      await assert.rejects(migrate(db, one, () => 0, [...KNOWN, broken]));
      assert.deepEqual(
        await migrate(db, one, () => 0, [...KNOWN, EXTRA]),
        [...KNOWN, EXTRA].map(({ number }) => number),
      );
      await db.destroy();
    });
  });
}
