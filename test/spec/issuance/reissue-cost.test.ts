// What a P-256 reissue costs, in counts that do not depend on the machine: statements, round trips, promises, writes.
// They may only fall: a change that lowers one lowers its bound here. The least of many reissues counts, because
// periodic work can only add.
import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { existsSync, readFileSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { test } from 'node:test';
import { ReissueClient } from '../../../campaigns/reissues.ts';
import { newFolder, startApp, TestApp } from '../../support/app.ts';
import { body, newOrder } from '../../support/orders.ts';
import { RoundTrips } from '../../support/postgres-wire.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

// Statements are exact; half of those that control transactions are the turnstile's, and spared while a turn lasts.
// Promises, write calls and bytes have some room: platforms have different runtimes and page sizes.
const MOST = {
  sqlite: { reads: 2, writes: 6, transactionControl: 8, promises: 135, writeCalls: 60, kibWritten: 32 },
  postgresql: { roundTrips: 4, promises: 165 },
} as const;

type Counts = Readonly<Record<string, number>>;
const REISSUES = 50;

/** One reissue at a time. The dispatcher is stopped, because a delivery is a cost of its own. */
async function leastCosts(app: TestApp, read: () => Counts): Promise<Counts> {
  await app.callbacks.dispatcher.stop(0);
  const order = await newOrder(app);
  const json = JSON.stringify(body());
  using client = new ReissueClient(1);
  const least: Record<string, number> = {};
  for (let count = 0; count < REISSUES; count += 1) {
    const before = read();
    const answer = await client.reissue(app.url, order, json);
    const now = read();
    assert.equal(answer?.status, 200, JSON.stringify(answer?.body));
    for (const [name, value] of Object.entries(now)) {
      least[name] = Math.min(value - (before[name] ?? 0), least[name] ?? Number.POSITIVE_INFINITY);
    }
  }
  return least;
}

let promises = 0;
createHook({
  init(_id, type) {
    if (type === 'PROMISE') promises += 1;
  },
}).enable();

const statements = { reads: 0, writes: 0, transactionControl: 0 };
function count(sql: string): void {
  if (/^\s*(begin|savepoint|release|rollback|commit)\b/i.test(sql)) statements.transactionControl += 1;
  else if (/\b(insert|update|delete|replace)\b/i.test(sql)) statements.writes += 1;
  else statements.reads += 1;
}
for (const method of ['all', 'get', 'iterate', 'run'] as const) {
  const real = StatementSync.prototype[method] as (...values: unknown[]) => unknown;
  Object.defineProperty(StatementSync.prototype, method, {
    value(this: StatementSync, ...values: unknown[]) {
      count(this.sourceSQL);
      return Reflect.apply(real, this, values);
    },
  });
}
const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  count(sql);
  exec.call(this, sql);
};

/** Of files and sockets, the client's included; Linux only. */
function writes(): { writeCalls: number; kibWritten: number } | undefined {
  if (!existsSync('/proc/self/io')) return undefined;
  const io = readFileSync('/proc/self/io', 'utf8');
  const value = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1]);
  return { writeCalls: value('syscw'), kibWritten: value('wchar') / 1024 };
}

function requireAtMost(most: Counts, counts: Counts, print: (line: string) => void): void {
  for (const [name, counted] of Object.entries(counts)) print(`${name}: ${Math.ceil(counted)}, at most ${most[name]}`);
  const grown = Object.entries(counts).filter(([name, counted]) => !(counted > 0 && counted <= (most[name] ?? 0)));
  assert.deepEqual(grown, [], 'more than before, or not counted any more');
}

test('a reissue on SQLite takes no more statements and promises than before', async (context) => {
  await using app = await startApp();
  const counts = await leastCosts(app, () => ({ ...statements, promises, ...writes() }));
  requireAtMost(MOST.sqlite, counts, (line) => context.diagnostic(line));
});

test('a reissue on PostgreSQL takes no more round trips and promises than before', async (context) => {
  await using postgres = await sharedPostgres();
  const database = new URL(await postgres.createDatabase());
  await using proxy = await TcpProxy.to(database.hostname, Number(database.port));
  const trips = new RoundTrips();
  proxy.tap = trips.tap;
  database.port = String(proxy.port);
  await using app = new TestApp(newFolder());
  await app.start({ RESEAL_DATABASE_URL: database.href });
  const counts = await leastCosts(app, () => ({ roundTrips: trips.count, promises }));
  requireAtMost(MOST.postgresql, counts, (line) => context.diagnostic(line));
});

test('pipelined messages are one round trip, however TCP cuts them', () => {
  const message = (type: string, content = '') => {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(4 + content.length);
    return Buffer.concat([Buffer.from(type), head, Buffer.from(content)]);
  };
  const trips = new RoundTrips();
  const { sent, received } = trips.tap();
  sent(message('', 'startup'));
  received(message('Z', 'I'));
  const pipelined = Buffer.concat(['P', 'B', 'E', 'S', 'P', 'B', 'E', 'S'].map((type) => message(type, 'Z and Q')));
  for (const byte of pipelined) sent(Buffer.of(byte));
  assert.equal(trips.count, 1);
  received(Buffer.concat([message('Z', 'T'), message('D', 'Q')]));
  sent(message('Q', 'still waits for the second'));
  assert.equal(trips.count, 1);
  received(Buffer.concat([message('Z', 'T'), message('Z', 'I')]));
  sent(message('Q', 'commit'));
  assert.equal(trips.count, 2);
});
