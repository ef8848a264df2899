// The cost of a durable reissue, as ratios of one run: to the cryptography in it, to the floor server, to the disk; with
// callbacks beside it, and on PostgreSQL. Service, callers, floor server and outside world are processes of their own.
import type { ChildProcess } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { placeOrders } from '../campaigns/reissues.ts';
import type { Settings } from '../campaigns/service.ts';
import { HOST } from '../test/support/outside.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { RoundTrips } from '../test/support/postgres-wire.ts';
import { TcpProxy } from '../test/support/tcp-proxy.ts';
import { tableOf } from './aims.ts';
import type { Bench, Print } from './bench.ts';
import { subscribe } from './callbacks.ts';
import { nextMessage, startChild } from './child.ts';
import { medianOf } from './comparison.ts';
import {
  type Contender,
  hasWorkers,
  LANES,
  medianSample,
  requestFor,
  type Sample,
  sample,
  startContender,
} from './contender.ts';
import { type OutsideProcess, startOutside } from './outside.ts';
import { ROWS } from './reissue-rows.ts';
import { fsyncTimes, type Kind, verifyAndSign } from './upper-bounds.ts';

/** Many short rounds instead of a few long ones: the speed of a shared machine changes from second to second. */
const ROUNDS = 5;
/** Requests of each round; V8 needs the warm-up to reach its final speed. */
const WARM_UP = Number(process.env.BENCH_WARM_UP ?? 5_000);
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 800);
const ALONE = { rounds: 7, requests: 40 } as const;
const SETTLE_MS = 60_000;
const POLL_MS = 50;

type Name = 'p256' | 'rsa2048' | 'floor' | 'callbacks' | 'twoWorkers';

export const reissues: Bench = {
  about: 'CPU, latency, writes and round trips of a durable reissue, as ratios with their aims',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    await using stack = new AsyncDisposableStack();
    const callers = startChild('./callers.ts', stack);
    const outside = await startOutside(stack);
    const onSqlite = await measureSqlite(folder.path, callers, outside);
    const postgres = await measurePostgres(folder.path, callers, outside, print);
    for (const line of tableOf(ROWS, { ...onSqlite, postgres })) print(line);
    print(`\nMedians of ${ROUNDS} rounds of ${REQUESTS} requests each, interleaved, after ${WARM_UP} for warming up.`);
    print(`${availableParallelism()} cores, shared with callers, name server and receiver; files in ${tmpdir()}.`);
    print('Other load on the machine moves the numbers of a run together: compare ratios of one run only.');
  },
};

async function measureSqlite(folder: string, callers: ChildProcess, outside: OutsideProcess) {
  await using stack = new AsyncDisposableStack();
  const contenders = await startContenders(folder, outside, stack);
  const crypto: Record<Kind, number[]> = { p256: [], rsa2048: [] };
  const samples: Record<Name, Sample[]> = { p256: [], rsa2048: [], floor: [], callbacks: [], twoWorkers: [] };
  const names = Object.keys(contenders) as Name[];
  for (const { contender, warmUp } of Object.values(contenders)) await sample(callers, contender, warmUp);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of names) {
      for (const kind of ['p256', 'rsa2048'] as const) crypto[kind].push(verifyAndSign(kind));
      const { contender } = contenders[name]!;
      samples[name].push(await sample(callers, contender, REQUESTS));
    }
  }
  const { p256, rsa2048, floor, callbacks, twoWorkers } = samples;
  return {
    crypto: { p256: median(crypto.p256), rsa2048: median(crypto.rsa2048) },
    samples: {
      ...{ p256: medianSample(p256), rsa2048: medianSample(rsa2048) },
      ...{ floor: medianSample(floor), callbacks: medianSample(callbacks) },
    },
    twoWorkers: twoWorkers.length > 0 ? medianSample(twoWorkers) : undefined,
    alone: await measureAlone(folder, callers, contenders.p256.contender),
  };
}

/** One reissue at a time, interleaved with bare syncs, because the speed of a disk changes from second to second. */
async function measureAlone(folder: string, callers: ChildProcess, { orders, ...contender }: Contender) {
  const [p50s, syncs]: [number[], number[]] = [[], []];
  for (let round = 0; round < ALONE.rounds; round += 1) {
    syncs.push(...(await fsyncTimes(folder)));
    p50s.push((await sample(callers, { ...contender, orders: orders.slice(0, 1) }, ALONE.requests)).p50);
  }
  return { p50: median(p50s), fsyncMs: median(syncs) };
}

const median = (numbers: readonly number[]): number => medianOf(numbers.toSorted((one, other) => one - other));

interface Entry {
  readonly contender: Contender;
  readonly warmUp: number;
}

type Contenders = Readonly<Record<Exclude<Name, 'twoWorkers'>, Entry>> & { readonly twoWorkers?: Entry };

/** One service for all that share its code, so that it is warmed up once. */
async function startContenders(
  folder: string,
  outside: OutsideProcess,
  stack: AsyncDisposableStack,
): Promise<Contenders> {
  const at = (name: string): Settings => ({ ...outside.settings, RESEAL_DATA_DIR: join(folder, name) });
  const settings = at('service');
  const rsa = await placeOrders(settings, LANES, 'rsa2048');
  const subscribed = await placeOrders(settings, LANES);
  await subscribe(settings, subscribed, `https://${HOST}:${outside.port}/fast`);
  const workers = (await hasWorkers()) ? 1 : undefined;
  const p256 = await startContender(settings, workers, stack);
  const callbacks = { ...p256, orders: subscribed, settled: untilDelivered(p256.url) };
  return {
    p256: { contender: p256, warmUp: WARM_UP },
    callbacks: { contender: callbacks, warmUp: WARM_UP / 5 },
    floor: { contender: await startFloor(folder, p256, stack), warmUp: WARM_UP },
    rsa2048: { contender: { ...p256, orders: rsa, json: requestFor('rsa2048') }, warmUp: WARM_UP / 10 },
    ...(workers && { twoWorkers: { contender: await startContender(at('workers'), 2, stack), warmUp: 2 * WARM_UP } }),
  };
}

async function startFloor(folder: string, { orders, json }: Contender, stack: AsyncDisposableStack) {
  const floor = startChild('./floor.ts', stack, ['floor', folder]);
  return { orders, json, url: await nextMessage<string>(floor), processes: [floor.pid ?? 0] };
}

/** Resolves when the events of all requests so far were delivered. */
function untilDelivered(url: string): (requests: number) => Promise<void> {
  let expected = 0;
  const delivered = async () =>
    Number(
      /^reseal_callback_attempts_total\{outcome="delivered"\} (\d+)$/m.exec(
        await (await fetch(`${url}/metrics`)).text(),
      )?.[1] ?? 0,
    );
  return async (requests) => {
    expected += requests;
    const deadline = performance.now() + SETTLE_MS;
    for (let count = await delivered(); count < expected; count = await delivered()) {
      if (performance.now() > deadline) throw new Error(`${count} of ${expected} callbacks were delivered in time`);
      await sleep(POLL_MS);
    }
  };
}

/** The service reaches its database through a proxy of this process, which counts; its CPU is nobody's cost. */
async function measurePostgres(folder: string, callers: ChildProcess, outside: OutsideProcess, print: Print) {
  await using stack = new AsyncDisposableStack();
  const server = await startPostgres().catch((error: Error) => print(`PostgreSQL is left out: ${error.message}\n`));
  if (!server) return undefined;
  stack.use(server);
  const database = new URL(await server.createDatabase());
  const proxy = stack.use(await TcpProxy.to(database.hostname, Number(database.port)));
  const trips = new RoundTrips();
  proxy.tap = trips.tap;
  database.port = String(proxy.port);
  const settings = {
    ...outside.settings,
    RESEAL_DATA_DIR: join(folder, 'postgresql'),
    RESEAL_DATABASE_URL: database.href,
  };
  const service = await startContender(settings, (await hasWorkers()) ? 1 : undefined, stack);
  const contender = { ...service, processes: [...service.processes, ...(server.processId ? [server.processId] : [])] };
  await sample(callers, contender, WARM_UP / 2);
  const before = trips.count;
  const samples: Sample[] = [];
  for (let round = 0; round < ROUNDS; round += 1) samples.push(await sample(callers, contender, REQUESTS));
  const roundTrips = (trips.count - before) / (ROUNDS * REQUESTS);
  return { roundTrips, cpuMicros: server.processId ? medianSample(samples).cpuMicros : undefined };
}
