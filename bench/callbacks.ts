// Latency from a commit to the first attempt of its callback, on an idle service and with a backlog of ten thousand events
// for a receiver that hangs; and deliveries per second to a fast receiver, compared with a bare HTTPS client. Receiver and
// name server run in another process; on two cores they still compete.
import { mkdtempDisposableSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { sql } from 'kysely';
import { placeOrders, ReissueClient } from '../campaigns/reissues.ts';
import { type Settings, withStore, withTables } from '../campaigns/service.ts';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { readConfig } from '../src/config/config.ts';
import { type App, openApp } from '../src/wiring/app.ts';
import { openCallbacks } from '../src/wiring/callbacks.ts';
import { serve } from '../src/wiring/serve.ts';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import { HOST } from '../test/support/outside.ts';
import type { Bench, Print } from './bench.ts';
import { type Candidate, compare, medianOf, runConcurrently, tableOf } from './comparison.ts';
import { type OutsideProcess, startOutside } from './outside.ts';

const ROUNDS = { rounds: 3, roundMs: 1_500 } as const;
const LANES = 32;
const SAMPLES = 100;
const BACKLOG = 10_000;
const EVENTS = 40_000;
const STOP_MS = 15_000;
const EVENT = JSON.stringify({ action_type: 'order', action_id: 'order:issued', order_id: 'x'.repeat(26) });

export const callbacks: Bench = {
  about: 'commit to first attempt, idle and with a hanging receiver; deliveries per second compared with a bare client',
  async run(print) {
    await using stack = new AsyncDisposableStack();
    const outside = await startOutside(stack);
    await firstAttempts(outside, print);
    print('');
    await sustained(outside, print);
    print(`\n${availableParallelism()} cores; the receiver runs in another process and shares them`);
  },
};

/** Gives the accounts of the orders a callback address. */
export async function subscribe(settings: Settings, orders: readonly PlacedOrder[], url: string): Promise<void> {
  await withStore(settings, async (app) => {
    const { callbacks } = openCallbacks(app, readConfig(settings).config, Date.now);
    for (const { key } of orders) {
      await callbacks.save({ accountId: key.accountId, actor: 'cli', requestId: null }, { url, access_key: 'bench' });
    }
  });
}

/** Adds events as that many issuances would have written them. */
async function addEvents(db: Db, { key, id, certificateId }: PlacedOrder, count: number): Promise<void> {
  await sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${sql.lit(count)})
    insert into outbox (id, account_id, order_id, order_status, certificate_id, action, created_at, body, state, is_new)
    select 'bench' || ${id} || i, ${key.accountId}, ${id}, 'issued', ${certificateId}, 'order:issued', 0, ${EVENT},
    'pending', 1 from n`.execute(db);
}

async function firstAttempts({ port, settings: outside }: OutsideProcess, print: Print): Promise<void> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
  const settings: Settings = {
    ...outside,
    RESEAL_DATA_DIR: folder.path,
    RESEAL_PORT: '0',
    RESEAL_SHUTDOWN_SECONDS: '0',
  };
  const [quick, slow] = (await placeOrders(settings, 2)) as [PlacedOrder, PlacedOrder];
  await subscribe(settings, [quick], `https://${HOST}:${port}/fast`);
  await subscribe(settings, [slow], `https://${HOST}:${port}/hangs`);
  const running = await serve(readConfig(settings).config, { now: Date.now, log: () => {} });
  using client = new ReissueClient(1);
  const json = JSON.stringify(body());
  const sample = async (): Promise<number[]> => {
    const ids: string[] = [];
    for (let count = 0; count < SAMPLES; count += 1) {
      const answer = await client.reissue(running.url, quick, json);
      if (answer?.status !== 200) throw new Error(`a reissue was answered with ${JSON.stringify(answer)}`);
      ids.push(answer.body.data.certificate.id);
    }
    return await withTables(settings, (db) => latencies(db, ids));
  };
  try {
    await sample();
    const alone = medianOf(await sample());
    await withTables(settings, (db) => addEvents(db, slow, BACKLOG));
    // Wait until the slow account has used up its slots.
    await withTables(settings, async (db) => {
      const leased = () => db.selectFrom('outbox').select('id').where('lease', 'is not', null).execute();
      while ((await leased()).length < LANES) await new Promise((resolve) => setTimeout(resolve, 50));
    });
    const beside = medianOf(await sample());
    print(`commit to first attempt, idle service            ${alone} ms (median of ${SAMPLES})`);
    print(
      `with ${BACKLOG} events for a hanging receiver            ${beside} ms, ratio ${(beside / Math.max(alone, 1)).toFixed(2)}`,
    );
  } finally {
    await running.stop();
  }
}

/** Waits until all of them have been attempted; returns the sorted latencies. */
async function latencies(db: Db, ids: readonly string[]): Promise<number[]> {
  for (;;) {
    const rows = await db
      .selectFrom('outbox')
      .innerJoin('delivery_attempt', 'event_id', 'outbox.id')
      .select(['delivery_attempt.at', 'created_at'])
      .where('certificate_id', 'in', ids)
      .where('number', '=', 1)
      .execute();
    if (rows.length === ids.length) return rows.map(({ at, created_at }) => at - created_at).sort((a, b) => a - b);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function sustained({ port, root, settings: outside }: OutsideProcess, print: Print): Promise<void> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
  const settings: Settings = { ...outside, RESEAL_DATA_DIR: folder.path };
  const [order] = (await placeOrders(settings, 1)) as [PlacedOrder];
  await subscribe(settings, [order], `https://${HOST}:${port}/fast`);
  await withTables(settings, (db) => addEvents(db, order, EVENTS));
  const app = await openApp(readConfig(settings).config, { now: Date.now, log: () => {} });
  // Built once, as the service does: reading the roots would dominate the bare client's time.
  const secureContext = createSecureContext({ ca: root });
  const kept = new Agent({ keepAlive: true, maxSockets: LANES });
  const bare = 'node:https, a connection each';
  const keptAlive = 'node:https, connections kept';
  const candidates: Candidate[] = [
    { name: bare, run: bareClient(port, { agent: false, secureContext }) },
    { name: keptAlive, run: bareClient(port, { agent: kept, secureContext }) },
    { name: `deliveries, ${LANES} at once`, boundedBy: keptAlive, run: deliveries(app, settings) },
  ];
  try {
    for (const line of tableOf(await compare(candidates, ROUNDS))) print(line.replace('writes/s', '  sent/s'));
    print(`medians of ${ROUNDS.rounds} rounds of ${ROUNDS.roundMs} ms each, interleaved, in ${tmpdir()}`);
  } finally {
    kept.destroy();
    await app.close();
  }
}

function deliveries(app: App, settings: Settings): Candidate['run'] {
  const { config } = readConfig(settings);
  const delivered = async () =>
    Number(/^reseal_callback_attempts_total\{outcome="delivered"\} (\d+)$/m.exec(await app.metrics.text())?.[1] ?? 0);
  return async (deadline) => {
    const before = await delivered();
    // The dispatcher of the round before left its lane to be due in two seconds, and no chore polls here.
    await withTables(settings, (db) => db.updateTable('callback_lane').set({ due_at: 0 }).execute());
    const { dispatcher } = openCallbacks(app, config, Date.now);
    dispatcher.wake();
    await new Promise((resolve) => setTimeout(resolve, deadline - performance.now()));
    await dispatcher.stop(STOP_MS);
    return (await delivered()) - before;
  };
}

function bareClient(port: number, options: { agent: Agent | false; secureContext: SecureContext }): Candidate['run'] {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(EVENT), Host: HOST };
  const send = () =>
    new Promise<void>((resolve, reject) => {
      const target = { host: '127.0.0.1', port, servername: HOST, path: '/fast', method: 'POST', headers, ...options };
      const sent = request(target, (response) => {
        response.resume().once('end', () => (response.statusCode === 200 ? resolve() : reject(response.statusCode)));
      });
      sent.once('error', reject);
      sent.end(EVENT);
    });
  return (deadline) => runConcurrently(LANES, deadline, send);
}
