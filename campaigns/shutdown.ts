// Shutdowns under load. Part one ends a service by SIGTERM while clients are busy on kept connections: every request is answered, until
// a connection is refused because the service is gone; none is reset. Part two restarts three instances one after the
// other, behind a proxy with a health check: every request through the proxy succeeds.
import { randomInt } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import { BusyClient, type Exchange } from './busy-client.ts';
import type { Campaign, Print } from './campaign.ts';
import { startProxy } from './health-checking-proxy.ts';
import { ENGINES } from './kill.ts';
import { fraction } from './random.ts';
import { placeOrders } from './reissues.ts';
import { type Service, type Settings, startService, withTables } from './service.ts';

interface ShutdownPlan {
  /** Shutdowns, or rounds of restarts of all instances. */
  readonly times: number;
  /** Processes that answer requests, in turn over the shutdowns or by instance. 0 for a service in one process. */
  readonly workers: readonly number[];
  readonly clients: number;
  readonly drainSeconds: number;
  /** The longest pause of a client. Below a second, which is what the service promises to bear. */
  readonly pauseMs: number;
  /** Seeds the timing of the signals. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface ShutdownReport {
  readonly broken: string[];
  answered: number;
  shutdowns: number;
}

const MAX_BROKEN = 20;
/** The signal comes at least and at most so long after the clients have begun. */
const [LEAST_MS, MOST_MS] = [100, 900];
const BODY = JSON.stringify(body());

/** Clients, each with an order of its own. Those with an even number never pause. */
async function busy(
  orders: readonly PlacedOrder[],
  { pauseMs, url }: { readonly pauseMs: number; readonly url: string },
  onExchange: (exchange: Exchange) => 'go on' | 'stop',
): Promise<void> {
  const loop = async (order: PlacedOrder, index: number) => {
    using client = new BusyClient(url, order.key);
    for (let count = 0; ; count += 1) {
      const isReissue = (index + count) % 3 === 0;
      const path = isReissue ? `/openapi/v3/orders/${order.id}/reissue` : `/openapi/v3/orders/${order.id}`;
      if (onExchange(await client.exchange(path, isReissue ? BODY : undefined)) === 'stop') return;
      if (index % 2 === 1) await sleep(randomInt(pauseMs));
    }
  };
  await Promise.all(orders.map(loop));
}

/** Ids of certificates that were acknowledged and are not in the store. */
async function lost(settings: Settings, acknowledged: readonly string[]): Promise<string[]> {
  const rows = await withTables(settings, (db) =>
    db.selectFrom('certificate').select('id').where('state', '=', 'issued').execute(),
  );
  const issued = new Set(rows.map(({ id }) => id));
  return acknowledged.filter((id) => !issued.has(id)).map((id) => `${id} was acknowledged and is lost`);
}

const certificateIn = ({ body: answer }: Exchange): string[] =>
  answer?.data?.certificate?.id && !answer.data.status ? [answer.data.certificate.id] : [];

export async function endUnderLoad(plan: ShutdownPlan): Promise<ShutdownReport> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-shutdown-'));
  const settings = { RESEAL_DATA_DIR: folder.path, RESEAL_DRAIN_SECONDS: String(plan.drainSeconds) };
  const orders = await placeOrders(settings, plan.clients);
  const report: ShutdownReport = { broken: [], answered: 0, shutdowns: 0 };
  const acknowledged: string[] = [];
  for (let round = 1; round <= plan.times && report.broken.length < MAX_BROKEN; round += 1) {
    const workers = plan.workers[round % plan.workers.length] ?? 0;
    const service = await startService(settings, undefined, ['--workers', String(workers)]);
    await using _ended = service.process;
    let isSignalled = false;
    let answered = 0;
    const load = busy(orders, { pauseMs: plan.pauseMs, url: service.url }, (exchange) => {
      if (exchange.status === 200) {
        answered += 1;
        acknowledged.push(...certificateIn(exchange));
        return 'go on';
      }
      if (exchange.error !== 'ECONNREFUSED' || !isSignalled)
        report.broken.push(`round ${round}, ${workers} workers: ${JSON.stringify(exchange)}`);
      return 'stop';
    });
    await sleep(LEAST_MS + fraction(`${plan.seed} ${round}`) * (MOST_MS - LEAST_MS));
    isSignalled = true;
    const code = await service.process.end('SIGTERM');
    await load;
    if (code !== 0) report.broken.push(`round ${round}: it ended with code ${code}: ${service.process.output}`);
    report.shutdowns += 1;
    report.answered += answered;
    plan.print(
      `SIGTERM ${round}/${plan.times}, ${workers} workers: ${answered} answered, ${report.broken.length} broken`,
    );
  }
  report.broken.push(...(await lost(settings, acknowledged)));
  return report;
}

export async function restartInTurn(
  plan: ShutdownPlan,
  { settings }: { readonly settings: Settings },
): Promise<ShutdownReport> {
  using folders = mkdtempDisposableSync(join(tmpdir(), 'reseal-rolling-'));
  const shared = {
    ...settings,
    RESEAL_SEAL_KEY: Buffer.alloc(32, 7).toString('base64'),
    RESEAL_DRAIN_SECONDS: String(plan.drainSeconds),
    RESEAL_DATABASE_CONNECTIONS: '6',
  };
  const settingsOf = (index: number) => ({ ...shared, RESEAL_DATA_DIR: join(folders.path, String(index)) });
  const orders = await placeOrders(settingsOf(0), plan.clients);
  const report: ShutdownReport = { broken: [], answered: 0, shutdowns: 0 };
  const acknowledged: string[] = [];
  const start = (index: number, port = '0') =>
    startService({ ...settingsOf(index), RESEAL_PORT: port }, undefined, ['--workers', String(plan.workers[index])]);
  const instances: Service[] = [];
  for (const index of plan.workers.keys()) instances.push(await start(index));
  await using proxy = await startProxy(instances.map(({ url }) => url));
  let isOver = false;
  const load = busy(orders, { pauseMs: plan.pauseMs, url: proxy.url }, (exchange) => {
    if (exchange.status === 200) {
      report.answered += 1;
      acknowledged.push(...certificateIn(exchange));
    } else report.broken.push(`through the proxy: ${JSON.stringify(exchange)}`);
    return isOver || report.broken.length >= MAX_BROKEN ? 'stop' : 'go on';
  });
  try {
    for (let round = 1; round <= plan.times && report.broken.length < MAX_BROKEN; round += 1) {
      for (const [index, { url, process }] of instances.entries()) {
        const code = await process.end('SIGTERM');
        if (code !== 0)
          report.broken.push(`instance ${index} ended with code ${code}: ${process.output.slice(-2_000)}`);
        instances[index] = await start(index, new URL(url).port);
        await proxy.healthy(url);
        report.shutdowns += 1;
      }
      plan.print(`restart ${round}/${plan.times}: ${report.answered} answered so far, ${report.broken.length} broken`);
    }
  } finally {
    isOver = true;
    await load;
    for (const { process } of instances) await process.end('SIGTERM');
  }
  report.broken.push(...(await lost(settingsOf(0), acknowledged)));
  return report;
}

const PLAN = { drainSeconds: 2, pauseMs: 900 };

function seedOf(print: Print): number {
  const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
  print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
  return seed;
}

export const shutdown: Campaign = {
  about: 'N SIGTERMs under busy clients with kept connections, SQLite: no connection is reset, nothing is lost',
  defaultN: 100,
  async run(times, print) {
    const plan = { ...PLAN, times, workers: [0, 1, 2], clients: 16, seed: seedOf(print), print };
    const { shutdowns, answered, broken } = await endUnderLoad(plan);
    print(`${shutdowns} SIGTERMs, ${answered} answered, ${broken.length} broken`);
    return broken;
  },
};

export const rollingRestart: Campaign = {
  about: 'N rolling restarts of three instances on PostgreSQL, behind a proxy with a health check: no request fails',
  defaultN: 30,
  async run(times, print) {
    await using database = await ENGINES.PostgreSQL();
    const plan = { ...PLAN, times, workers: [0, 1, 0], clients: 8, seed: seedOf(print), print };
    const { shutdowns, answered, broken } = await restartInTurn(plan, database);
    print(`${shutdowns} restarts, ${answered} answered, ${broken.length} broken`);
    return broken;
  },
};
