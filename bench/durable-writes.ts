// Acknowledged writes per second, compared with their upper bounds: the bare disk, the bare database, our store, our
// service, all in one run. The candidates are in raw.ts and own-store.ts.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VARIABLES } from '../src/config/variables.ts';
import { type Postgres, startPostgres } from '../test/support/postgres.ts';
import type { Bench, Print } from './bench.ts';
import { compare, tableOf } from './comparison.ts';
import { type Entry, ownService, ownStore } from './own-store.ts';
import { appending, overwriting, rawPostgres, rawSqlite } from './raw.ts';

// With a dozen candidates, this keeps the benchmark well below a minute.
const ROUNDS = { rounds: 3, roundMs: 300 } as const;
const LANES = 64;
const DEFAULT_CONNECTIONS = VARIABLES.RESEAL_DATABASE_CONNECTIONS.defaultValue;

type Row = Entry & { readonly name: string; readonly boundedBy?: string };

export const durableWrites: Bench = {
  about: 'durable writes per second, and their ratio to the upper bound',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    await using stack = new AsyncDisposableStack();
    const rows = [...(await onSqlite(folder.path, stack)), ...(await onPostgres(folder.path, stack, print))];
    for (const line of tableOf(await compare(rows, ROUNDS))) print(line);
    print('');
    for (const { name, groups } of rows) if (groups) print(`group sizes of "${name}": ${await groups()}`);
    print(`\nmedians of ${ROUNDS.rounds} rounds of ${ROUNDS.roundMs} ms each, interleaved, in ${tmpdir()}`);
  },
};

async function onSqlite(folder: string, stack: AsyncDisposableStack): Promise<Row[]> {
  const at = (name: string) => ({ RESEAL_DATA_DIR: join(folder, name) });
  const overwrite = 'disk: 4 KiB overwrite + fsync';
  const rawOne = 'node:sqlite, 1 insert per commit';
  const rawMany = `node:sqlite, ${LANES} inserts per commit`;
  const storeMany = `our store on SQLite, ${LANES} at once`;
  return [
    { name: 'disk: 4 KiB append + fdatasync', run: appending(join(folder, 'append'), stack) },
    { name: overwrite, run: overwriting(join(folder, 'overwrite'), stack) },
    { name: rawOne, boundedBy: overwrite, run: rawSqlite(join(folder, 'one.db'), 1, stack) },
    { name: rawMany, boundedBy: overwrite, run: rawSqlite(join(folder, 'many.db'), LANES, stack) },
    { name: 'our store on SQLite, 1 at a time', boundedBy: rawOne, ...(await ownStore(at('one'), 1, stack)) },
    { name: storeMany, boundedBy: rawMany, ...(await ownStore(at('many'), LANES, stack)) },
    {
      name: `our service over HTTP, ${LANES} at once`,
      boundedBy: storeMany,
      ...(await ownService(at('http'), LANES, stack)),
    },
  ];
}

async function onPostgres(folder: string, stack: AsyncDisposableStack, print: Print): Promise<Row[]> {
  let server: Postgres;
  try {
    server = stack.use(await startPostgres());
  } catch (error) {
    print(`PostgreSQL is left out: ${(error as Error).message}\n`);
    return [];
  }
  const ours = async (lanes: number, connections: number) => {
    const settings = {
      RESEAL_DATA_DIR: join(folder, `postgresql-${lanes}-${connections}`),
      RESEAL_DATABASE_URL: await server.createDatabase(),
      RESEAL_DATABASE_CONNECTIONS: String(connections),
    };
    // PostgreSQL does its own group commit and does not report group sizes.
    const { run } = await ownStore(settings, lanes, stack);
    return { run };
  };
  const rawOne = 'pg, 1 connection';
  const rawMany = `pg, ${LANES} connections`;
  const store = 'our store on PostgreSQL';
  return [
    { name: rawOne, run: await rawPostgres(await server.createDatabase(), 1, stack) },
    { name: rawMany, run: await rawPostgres(await server.createDatabase(), LANES, stack) },
    { name: `${store}, 1 at a time`, boundedBy: rawOne, ...(await ours(1, DEFAULT_CONNECTIONS)) },
    {
      name: `${store}, ${LANES} at once, ${DEFAULT_CONNECTIONS} connections`,
      boundedBy: rawMany,
      ...(await ours(LANES, DEFAULT_CONNECTIONS)),
    },
    {
      name: `${store}, ${LANES} at once, ${LANES} connections`,
      boundedBy: rawMany,
      ...(await ours(LANES, LANES)),
    },
  ];
}
