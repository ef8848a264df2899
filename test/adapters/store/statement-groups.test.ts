// Groups of statements on PostgreSQL: one transaction for those of a turn, in which no member pays for another.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CompiledQuery } from 'kysely';
import pg from 'pg';
import type { Engine } from '../../../src/adapters/store/engine/engine.ts';
import { joinSets, MemberQuery } from '../../../src/adapters/store/engine/member-sets.ts';
import { postgresEngine } from '../../../src/adapters/store/engine/postgres.ts';
import { ODD } from '../../support/records.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';

const postgres = await sharedPostgres();
const url = await postgres.createDatabase();
const client = new pg.Client({ connectionString: url });
const MAX_CONNECTIONS = 10;
let engine: Engine;
let driver: ReturnType<Engine['dialect']['createDriver']>;

before(async () => {
  await client.connect();
  await client.query('create table thing (id text primary key, number bigint, bytes bytea)');
  engine = postgresEngine({ url, maxConnections: MAX_CONNECTIONS });
  driver = engine.dialect.createDriver();
  await driver.init();
});
after(async () => {
  await driver.destroy();
  await client.end();
  await postgres[Symbol.asyncDispose]();
});

const read = async (sql: string, ...values: unknown[]) => await engine.select(CompiledQuery.raw(sql, values));
const write = (sql: string, ...values: unknown[]) => engine.batches.run([CompiledQuery.raw(sql, values)]);
const insert = (id: string) => write('insert into thing (id) values ($1) returning id', id);
const TRANSACTION = 'select pg_current_xact_id()::text as id, $1::text as member';

test('statements of one turn are one transaction, and each gets its own rows', async () => {
  const rows = (await Promise.all(['a', 'b', 'c'].map((member) => write(TRANSACTION, member)))).flat();
  const [{ id }] = rows as [{ id: string }];
  assert.deepEqual(rows, [
    { id, member: 'a' },
    { id, member: 'b' },
    { id, member: 'c' },
  ]);
  assert.notDeepEqual(await write(TRANSACTION, 'a'), [{ id, member: 'a' }]);
});

test('many statements at once are all answered, and rows keep their types', async () => {
  const bytes = new Uint8Array([0, 255, 0]);
  const numbers = Array.from({ length: 300 }, (_, number) => number);
  await Promise.all(
    numbers.map((n) => write('insert into thing (id, number, bytes) values ($1, $2, $3)', `n${n}\0`, n, bytes)),
  );
  const select = 'select id, number, bytes, null as nothing from thing where id = $1';
  const rows = await Promise.all(numbers.map((n) => read(select, `n${n}\0`)));
  assert.deepEqual(
    rows,
    numbers.map((number) => [{ id: `n${number}\ufffd`, number, bytes: Buffer.from(bytes), nothing: null }]),
  );
});

test('a member that fails fails alone', async () => {
  await insert('taken');
  const outcomes = await Promise.allSettled(['before', 'taken', 'after'].map(insert));
  assert.deepEqual(
    outcomes.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.code)),
    [[{ id: 'before' }], '23505', [{ id: 'after' }]],
  );
});

test('members of the same statement run as one, each gets its own row, and none gets that of another with its key', async () => {
  const sql = `with member as (select id from unnest($1::text::text[]) as lists (id))
    insert into thing (id) select id from member on conflict (id) do nothing
    returning id as member, (select count(*) from member) as number`;
  const keys = ['s1', ODD, 's1', 's3'];
  const results = await Promise.all(
    keys.map((member) => engine.batches.run([new MemberQuery(CompiledQuery.raw(sql), sql, [member], member)])),
  );
  const row = (member: string) => [{ member, number: 2 }];
  assert.deepEqual(results, [row('s1'), row(ODD), [], row('s3')]);
});

test('a row of no member is an error, and does not tell a member that nothing was written', () => {
  const member = (key: string) => new MemberQuery(CompiledQuery.raw(''), 'the same', [key], key);
  const { split } = joinSets([member('one'), member('two')]);
  assert.deepEqual(split([[{ member: 'two' }]]), [[], [{ member: 'two' }]]);
  assert.throws(() => split([[{ member: 'three' }]]), /three, which is no member/);
});

test('a member whose row is locked delays no other', async () => {
  await insert('locked');
  await client.query('begin');
  await client.query("select 1 from thing where id = 'locked' for update");
  const waits = write("update thing set number = 1 where id = 'locked' returning number");
  assert.deepEqual(await Promise.all([insert('one'), insert('two')]), [[{ id: 'one' }], [{ id: 'two' }]]);
  await client.query('commit');
  assert.deepEqual(await waits, [{ number: 1 }]);
});

test('a lost connection fails its group only', async () => {
  const lost = [insert('undone'), write('select pg_terminate_backend(pg_backend_pid())'), insert('never')];
  const outcomes = await Promise.allSettled(lost);
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && engine.isUnavailable(outcome.reason));
  assert.deepEqual(await read("select id from thing where id in ('undone', 'never')"), []);
});

test('a table that has got a column while its statements were prepared', async () => {
  await client.query('create table growing (one text, last text)');
  await client.query("insert into growing values ('1', 'last')");
  const all = () => Promise.all([read('select * from growing'), read('select * from growing')]);
  assert.deepEqual((await all())[1], [{ one: '1', last: 'last' }]);
  await client.query('alter table growing drop column one');
  await client.query("alter table growing add column two text default '2'");
  for (let times = 0; times < 2 * MAX_CONNECTIONS; times += 1) {
    for (const rows of await all()) assert.deepEqual(rows, [{ last: 'last', two: '2' }]);
  }
});
