import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { type Migration, migrate, readMigrations } from '../../../src/adapters/store/engine/migrations.ts';
import { engineAt } from '../../../src/adapters/store/store.ts';
import { callbackBody } from '../../../src/domain/callbacks/callback.ts';
import { Problem } from '../../../src/kernel/problem.ts';
import { bothEngines } from '../../support/engines.ts';

const EXTRA: Migration = {
  number: readMigrations('sqlite').length + 1,
  name: 'extra',
  sha256: 'e'.repeat(64),
  statements: ['create table extra (id text primary key)', "insert into extra (id) values ('once')"],
};

const OLD_ROWS = [
  "insert into account values ('a', 'Name', 'standard', 'en', 0)",
  "insert into issuer values ('r', 'root', 'p256', 'active', null, '', null, 0)",
  "insert into issuer values ('i', 'issuing', 'p256', 'active', 'r', '', null, 0)",
  `insert into certificate_order (id, account_id, product_id, status, names, dcv_scope, persist_policy, term_ends_at,
    created_at, revision) values ('o', 'a', 'p', 'issued', '[]', 'fqdn', 'fqdn', 0, 0, 1)`,
  `insert into certificate (id, account_id, order_id, state, created_at, names, spki, key_type, key_bits, key_fingerprint,
    sign_hash, will_revoke, issuer_id) values ('c', 'a', 'o', 'issued', 0, '[]', '', 'p256', 256, '', 'sha256', '[]', 'i')`,
];

for (const engine of await bothEngines()) {
  describe(engine.name, () => {
    const KNOWN = readMigrations(engine.name);

    test('migrations are numbered from 1 without gaps, and each has statements', () => {
      assert.deepEqual(
        KNOWN.map(({ number }) => number),
        KNOWN.map((_, index) => index + 1),
      );
      for (const { name, statements } of KNOWN) assert.ok(statements.length > 0, name);
    });

    test('a rebuilt table keeps its rows and the references to them', async () => {
      const location = await engine.newEmptyLocation();
      const one = engineAt(location, {}, true);
      const db = openEngine(one, () => {});
      await migrate(db, one, () => 0, KNOWN.slice(0, 3));
      for (const row of OLD_ROWS) await sql.raw(row).execute(db);
      await migrate(db, one, () => 0, KNOWN);
      const { rows } = await sql`select c.id, i.id as issuer, r.id as root from certificate c
        join issuer i on i.id = c.issuer_id join issuer r on r.id = i.parent_id`.execute(db);
      assert.deepEqual(JSON.parse(JSON.stringify(rows)), [{ id: 'c', issuer: 'i', root: 'r' }]);
      const issuer = (id: string, keyType: string) =>
        sql
          .raw(
            `insert into issuer (id, role, key_type, state, certificate, created_at) values ('${id}', 'root', '${keyType}', 'retired', '', 0)`,
          )
          .execute(db);
      await issuer('s', 'sm2');
      await assert.rejects(issuer('x', 'dsa'));
      await db.destroy();
      // Foreign keys are enforced again once the store is open.
      const serving = openEngine(engineAt(location), () => {});
      await assert.rejects(sql`delete from issuer where id = 'r'`.execute(serving));
      await serving.destroy();
    });

    test('events written by an older version are kept and not sent', async () => {
      const location = await engine.newEmptyLocation();
      const one = engineAt(location, {}, true);
      const db = openEngine(one, () => {});
      const before = KNOWN.findIndex(({ name }) => name === 'callback-delivery');
      await migrate(db, one, () => 0, KNOWN.slice(0, before));
      const rows = [
        ...OLD_ROWS,
        "insert into account values ('z', 'Name', 'standard', 'zh-CN', 0)",
        "insert into outbox values ('e1', 'a', 'o', 'c', 'order:issued', 5)",
        "insert into outbox values ('e2', 'z', 'o', 'c', 'order:issued', 6)",
      ];
      for (const row of rows) await sql.raw(row).execute(db);
      await migrate(db, one, () => 0, KNOWN);
      const events = await db.selectFrom('outbox').selectAll().orderBy('id').execute();
      await db.destroy();
      const about = { orderId: 'o', orderStatus: 'issued', certificateId: 'c' } as const;
      for (const [index, locale] of (['en', 'zh-CN'] as const).entries()) {
        const { state, reason, settled_at, due_at, body } = events[index]!;
        assert.deepEqual([state, reason, settled_at, due_at], ['suppressed', 'before_delivery', 5 + index, null]);
        assert.equal(body, JSON.stringify(callbackBody('order:issued', about, locale)), 'in the current format');
      }
    });

    test('of several concurrent starts, one applies each migration and the others skip it', async () => {
      const location = await engine.newEmptyLocation();
      const applied = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const one = engineAt(location, {}, true);
          const db = openEngine(one, () => {});
          return await migrate(db, one, () => 0, [...KNOWN, EXTRA]).finally(() => db.destroy());
        }),
      );
      assert.deepEqual(
        applied.flat().sort((one, other) => one - other),
        [...KNOWN, EXTRA].map(({ number }) => number),
      );
    });

    const attempt = async (first: Migration[], second: Migration[]) => {
      const one = engineAt(await engine.newEmptyLocation(), {}, true);
      const db = openEngine(one, () => {});
      try {
        await migrate(db, one, () => 0, first);
        return await migrate(db, one, () => 0, second);
      } finally {
        await db.destroy();
      }
    };

    test('a database newer than the code is refused, with both numbers and a remedy', async () => {
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

    test('a later version applies only the new migrations', async () => {
      assert.deepEqual(await attempt(KNOWN, [...KNOWN, EXTRA]), [EXTRA.number]);
    });

    test('a failed migration is rolled back', async () => {
      const one = engineAt(await engine.newEmptyLocation(), {}, true);
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
