// Upper bounds of durable writes on this machine, from the bare file upwards, without our code except the table
// definitions. Every candidate syncs before it counts a write.
import { randomBytes } from 'node:crypto';
import { closeSync, fdatasyncSync, fsyncSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { readMigrations } from '../src/adapters/store/engine/migrations.ts';
import { type Candidate, runConcurrently } from './comparison.ts';

const PAGE = Buffer.alloc(4_096, 1);
const OVERWRITTEN_PAGES = 1_024;

const ACCOUNT = `insert into account values ('account', 'name', 'standard', 'en', 0)`;
const auditRow = (id: string, requestId: string): string =>
  `insert into audit values (${id}, 0, 'account', 'actor', 'account:changed', 'account', ${requestId}, '{"name":"a"}')`;

/** Unique and time-ordered, like our ids. */
let ids = 0;
function newRow(): [id: string, requestId: string] {
  ids += 1;
  return [`${String(ids).padStart(12, '0')}${randomBytes(7).toString('hex')}`, `request ${ids}`];
}

/** Appends pages to a growing file. */
export function appending(file: string, stack: AsyncDisposableStack): Candidate['run'] {
  return writing(file, Number.POSITIVE_INFINITY, fdatasyncSync, stack);
}

/** Overwrites pages in place, as SQLite does after a WAL reset; with fsync, which Node's SQLite calls. */
export function overwriting(file: string, stack: AsyncDisposableStack): Candidate['run'] {
  return writing(file, OVERWRITTEN_PAGES, fsyncSync, stack);
}

function writing(file: string, pages: number, sync: (descriptor: number) => void, stack: AsyncDisposableStack) {
  writeFileSync(file, Buffer.alloc(Number.isFinite(pages) ? PAGE.length * pages : 0));
  const descriptor = openSync(file, 'r+');
  stack.defer(() => closeSync(descriptor));
  fsyncSync(descriptor);
  let page = 0;
  return async (deadline: number) => {
    let writes = 0;
    for (; performance.now() < deadline; writes += 1) {
      writeSync(descriptor, PAGE, 0, PAGE.length, PAGE.length * page);
      sync(descriptor);
      page = page + 1 < pages ? page + 1 : 0;
    }
    return writes;
  };
}

/** Our tables and pragmas on the bare driver; many inserts in one commit are the upper bound of a group commit. */
export function rawSqlite(file: string, perCommit: number, stack: AsyncDisposableStack): Candidate['run'] {
  const database = new DatabaseSync(file);
  stack.defer(() => database.close());
  database.exec('pragma journal_mode = wal; pragma synchronous = full');
  for (const statement of tables('sqlite')) database.exec(statement);
  database.exec(ACCOUNT);
  const begin = database.prepare('begin immediate');
  const commit = database.prepare('commit');
  const insert = database.prepare(auditRow('?', '?'));
  return async (deadline) => {
    let writes = 0;
    for (; performance.now() < deadline; writes += perCommit) {
      begin.run();
      for (let index = 0; index < perCommit; index += 1) insert.run(...newRow());
      commit.run();
    }
    return writes;
  };
}

/** One statement, one round trip, one commit: the minimum of a PostgreSQL client. */
export async function rawPostgres(url: string, lanes: number, stack: AsyncDisposableStack): Promise<Candidate['run']> {
  const clients: pg.Client[] = [];
  for (let lane = 0; lane < lanes; lane += 1) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    clients.push(client);
  }
  for (const statement of [...tables('postgresql'), ACCOUNT]) await clients[0]!.query(statement);
  const insert = { name: 'insert', text: auditRow('$1', '$2') };
  return (deadline) =>
    runConcurrently(lanes, deadline, async (lane) => {
      await clients[lane]!.query({ ...insert, values: newRow() });
    });
}

const tables = (engine: 'sqlite' | 'postgresql'): string[] =>
  readMigrations(engine).flatMap(({ statements }) => [...statements]);
