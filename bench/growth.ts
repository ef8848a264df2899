// The cost of a reissue in a large store, divided by its cost in a small one; one engine at a time. Certificates and their
// orders are copies of one that the service has issued, written by SQL. Takes a while and gigabytes: never run by default.
import type { ChildProcess } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { placeOrders } from '../campaigns/reissues.ts';
import { type Settings, withTables } from '../campaigns/service.ts';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import type { PlacedOrder } from '../test/support/orders.ts';
import { inDatabase, startPostgres } from '../test/support/postgres.ts';
import { type Row, tableOf } from './aims.ts';
import type { Bench } from './bench.ts';
import { startChild } from './child.ts';
import { medianOf } from './comparison.ts';
import { hasWorkers, sample, startContender } from './contender.ts';
import { startOutside } from './outside.ts';
import { verifyAndSign } from './upper-bounds.ts';

const SMALL = 1_000;
const LARGE = Number(process.env.BENCH_CERTIFICATES ?? 2_000_000);
const PER_COMMIT = 20_000;
const WARM_UP = Number(process.env.BENCH_WARM_UP ?? 5_000);
const ROUNDS = 5;
const REQUESTS = 1_000;

interface Place {
  readonly settings: Settings;
  /** Of the database server, if it is a process of its own. */
  readonly processes: readonly number[];
  /** An SQL expression: 32 random hexadecimal digits. */
  readonly randomHex: string;
  /** Does what the database would do in time by itself. */
  settle(): Promise<void>;
}

/** CPU of a reissue, in units of verify + sign at that time, because the machine changes its speed; a median of rounds. */
interface Measured {
  readonly small: number;
  readonly large: number;
}

const ROWS: readonly Row<Measured>[] = [
  {
    about: `CPU of a reissue ÷ verify + sign, with ${LARGE} certificates ÷ with ${SMALL}`,
    aim: { atMost: 1.3 },
    ratio: ({ small, large }) => ({ value: large, by: small, unit: '' }),
  },
];

export const growth: Bench = {
  about: `cost of a reissue with ${LARGE} certificates in the store, compared with ${SMALL}`,
  isOptional: true,
  async run(print) {
    for (const [name, open] of Object.entries({ SQLite: onSqlite, PostgreSQL: onPostgres })) {
      using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
      await using stack = new AsyncDisposableStack();
      const callers = startChild('./callers.ts', stack);
      const outside = await startOutside(stack);
      const place = await open({ ...outside.settings, RESEAL_DATA_DIR: folder.path }, stack);
      const [template] = await placeOrders(place.settings, 1);
      const costs: number[] = [];
      for (const [from, to] of [
        [0, SMALL],
        [SMALL, LARGE],
      ] as const) {
        const begun = performance.now();
        for (let done = from; done < to; done += PER_COMMIT) {
          await withTables(place.settings, (db) => fill(db, place, template!, [done, Math.min(done + PER_COMMIT, to)]));
        }
        await place.settle();
        print(`${name}: filled up to ${to} certificates in ${((performance.now() - begun) / 1_000).toFixed(0)} s`);
        costs.push(await costIn(place, callers));
      }
      const [small = 0, large = 0] = costs;
      for (const line of ['', ...tableOf(ROWS, { small, large }), '']) print(line);
    }
  },
};

async function onSqlite(settings: Settings): Promise<Place> {
  return { settings, processes: [], randomHex: 'lower(hex(randomblob(16)))', async settle() {} };
}

async function onPostgres(settings: Settings, stack: AsyncDisposableStack): Promise<Place> {
  const server = stack.use(await startPostgres());
  const url = await server.createDatabase();
  return {
    settings: { ...settings, RESEAL_DATABASE_URL: url },
    processes: server.processId ? [server.processId] : [],
    randomHex: `md5(random()::text || i)`,
    settle: async () => void (await inDatabase(url, 'vacuum analyze')),
  };
}

async function costIn({ settings, processes }: Place, callers: ChildProcess): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const service = await startContender(settings, (await hasWorkers()) ? 1 : undefined, stack);
  const contender = { ...service, processes: [...service.processes, ...processes] };
  await sample(callers, contender, WARM_UP);
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const bound = verifyAndSign('p256');
    ratios.push((await sample(callers, contender, REQUESTS)).cpuMicros / bound);
  }
  return medianOf(ratios.sort((one, other) => one - other));
}

/** Copies one order and its certificate, each pair with ids, serial number and key of its own. */
async function fill(db: Db, { randomHex }: Place, template: PlacedOrder, [after, to]: readonly [number, number]) {
  const newId = `'fill' || (1000000000 + i)`;
  const changes = {
    certificate_order: { id: newId, current_certificate_id: newId },
    certificate: { id: newId, order_id: newId, serial: randomHex, key_fingerprint: `${randomHex} || ${randomHex}` },
  };
  const sources = { certificate_order: template.id, certificate: template.certificateId };
  const tables = await db.introspection.getTables();
  for (const [name, changed] of Object.entries<Record<string, string>>(changes)) {
    const columns = tables.find((table) => table.name === name)?.columns.map((column) => column.name) ?? [];
    const values = columns.map((column) => changed[column] ?? `source.${column}`);
    await sql`with recursive n (i) as (select ${sql.lit(after + 1)} union all select i + 1 from n where i < ${sql.lit(to)})
      insert into ${sql.table(name)} (${sql.raw(columns.join())}) select ${sql.raw(values.join())}
      from n, ${sql.table(name)} source where source.id = ${sources[name as keyof typeof sources]}`.execute(db);
  }
}
