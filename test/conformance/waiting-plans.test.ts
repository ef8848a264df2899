// Claiming due certificates reads only due rows, however many wait, by the query plan of the repository's statement.
// WAITING_ROWS=1000000 runs it on a large table.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CompiledQuery, Kysely, sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import type { Engine } from '../../src/adapters/store/engine/engine.ts';
import type { Db, Schema } from '../../src/adapters/store/engine/schema.ts';
import { engineAt, openStore } from '../../src/adapters/store/store.ts';
import { waitingIn } from '../../src/adapters/store/validation/waiting.ts';
import { bothEngines } from '../support/engines.ts';

const ROWS = Number(process.env.WAITING_ROWS ?? 20_000);
/** Row i is due at time i. */
const [NOW, UNTIL, LIMIT] = [50, 10 * ROWS, 16];

/** One account and one order with many waiting certificates. */
async function fill(db: Db): Promise<void> {
  const numbers = sql.raw(`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})`);
  await sql`insert into account (id, name, kind, locale, created_at) values ('a', 'Name', 'standard', 'en', 0)`.execute(
    db,
  );
  await sql`insert into certificate_order (id, account_id, product_id, status, names, dcv_scope, persist_policy,
    term_ends_at, created_at, revision) values ('o', 'a', 'ssl-dv', 'reissuing', '[]', 'fqdn', 'fqdn', 0, 0, 1)`.execute(
    db,
  );
  await sql`${numbers} insert into certificate (id, account_id, order_id, state, created_at, names, spki, key_type,
    key_bits, key_fingerprint, sign_hash, will_revoke)
    select 'c' || i, 'a', 'o', 'pending', 0, '[]', '', 'p256', 256, 'f', 'sha256', '[]' from n`.execute(db);
  await sql`${numbers} insert into waiting_certificate (certificate_id, account_id, order_id, due_at, tries,
    expires_at, findings) select 'c' || i, 'a', 'o', i, 0, 0, '{}' from n`.execute(db);
  await sql`analyze`.execute(db);
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly Plans?: readonly Node[];
}
const allIn = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(allIn)];

/** Fails unless due rows are found through the index, without a full scan. */
const REQUIRE_LOOK_UPS: Readonly<Record<Engine['name'], (db: Db, query: CompiledQuery) => Promise<void>>> = {
  async sqlite(db, { sql: text, parameters }) {
    const plan = CompiledQuery.raw(`explain query plan ${text}`, [...parameters]);
    const { rows } = await db.executeQuery<{ detail: string }>(plan);
    const steps = rows.map(({ detail }) => detail);
    assert.deepEqual(
      steps.filter((step) => /^SCAN (?!due\b)|TEMP B-TREE/.test(step)),
      [],
      steps.join('\n'),
    );
    assert.ok(
      steps.some((step) => /USING (COVERING )?INDEX waiting_certificate_due \(due_at<\?\)/.test(step)),
      steps.join('\n'),
    );
  },
  /** Runs the statement and rolls it back: EXPLAIN ANALYZE reports the rows that each step read. */
  async postgresql(db, { sql: text, parameters }) {
    await sql`begin`.execute(db);
    const plan = CompiledQuery.raw(`explain (analyze, format json) ${text}`, [...parameters]);
    const { rows } = await db.executeQuery<{ 'QUERY PLAN': { Plan: Node }[] }>(plan);
    await sql`rollback`.execute(db);
    const nodes = rows[0]!['QUERY PLAN'].flatMap(({ Plan }) => allIn(Plan));
    const nodesText = JSON.stringify(nodes.map(({ Plans: _, ...node }) => node));
    assert.ok(!nodes.some((node) => node['Node Type'] === 'Seq Scan'), nodesText);
    assert.ok(
      nodes.some((node) => node['Index Name'] === 'waiting_certificate_due'),
      nodesText,
    );
    const read = nodes.map((node) => (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1));
    assert.ok(Math.max(...read) <= LIMIT, nodesText);
  },
};

for (const { name, newLocation } of await bothEngines()) {
  describe(`${name}, ${ROWS} that wait`, async () => {
    const location = await newLocation();
    await (await openStore(location, sealerWith([newSealKey()]), Date.now)).close();
    // One connection with a long timeout: filling takes long, and the transaction must span all statements.
    const engine = engineAt(location, {}, true);
    const sent: CompiledQuery[] = [];
    const db = new Kysely<Schema>({ dialect: engine.dialect, log: ({ query }) => void sent.push(query) });

    test('filling', () => fill(db));

    test('only due rows are read, and no more than the limit', async () => {
      sent.length = 0;
      const { length } = await waitingIn(db, engine).claim(NOW, UNTIL, LIMIT);
      assert.equal(length, LIMIT);
      const [query, ...others] = [...sent];
      assert.ok(query && others.length === 0, 'one statement');
      await REQUIRE_LOOK_UPS[name](db, query);
      // Exactly the due rows were moved.
      assert.equal((await waitingIn(db, engine).claim(NOW, UNTIL, 1_000)).length, NOW - LIMIT);
      assert.deepEqual(await waitingIn(db, engine).claim(NOW, UNTIL, LIMIT), []);
    });

    test('closing', () => db.destroy());
  });
}
