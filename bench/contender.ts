// A server under load, as the reissue benches measure it: a real `reseal serve` in its own process on either engine, or the
// floor server. A sample is the cost of a counted number of requests.
import type { ChildProcess } from 'node:child_process';
import { placeOrders } from '../campaigns/reissues.ts';
import { type Settings, startService } from '../campaigns/service.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import { spawnReseal } from '../test/support/process.ts';
import { type LaneRequest, runLoad } from './callers.ts';
import { medianOf } from './comparison.ts';
import { costOf, machineTicks } from './process-cost.ts';
import type { Kind } from './upper-bounds.ts';

export const LANES = 64;

export interface Contender {
  readonly url: string;
  readonly orders: readonly PlacedOrder[];
  readonly json: string;
  /** The roots of its process trees. */
  readonly processes: readonly number[];
  /** Work that requests have caused and that goes on after their answers. */
  settled?(requests: number): Promise<void>;
}

/** Costs are per request. */
export interface Sample {
  readonly cpuMicros: number;
  readonly writtenBytes: number;
  readonly writeCalls: number;
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
  /** Share of the machine's CPU that was used. */
  readonly busy: number;
}

/** Any server under load, with one request per lane. */
export interface Loaded extends Pick<Contender, 'url' | 'processes' | 'settled'> {
  readonly requests: readonly LaneRequest[];
}

export const sample = (callers: ChildProcess, contender: Contender, requests: number): Promise<Sample> =>
  sampleLoad(callers, { ...contender, requests: reissuesOf(contender.orders, contender.json) }, requests);

/** One lane per order, so that lanes do not contend for an order's lock. */
export const reissuesOf = (orders: readonly PlacedOrder[], json: string): LaneRequest[] =>
  orders.map(({ id, key }) => ({
    target: `POST /openapi/v3/orders/${id}/reissue`,
    headers: { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, 'Content-Type': 'application/json' },
    body: Buffer.from(json).toString('base64'),
  }));

export async function sampleLoad(callers: ChildProcess, loaded: Loaded, requests: number): Promise<Sample> {
  const { url, processes } = loaded;
  const costs = () => processes.map(costOf);
  let [before, machine] = [costs(), machineTicks()];
  const { ms, latencies } = await runLoad(
    callers,
    { url, requests: loaded.requests, until: { requests } },
    async () => {
      await loaded.settled?.(loaded.requests.length);
      [before, machine] = [costs(), machineTicks()];
    },
  );
  const ticks = machineTicks();
  await loaded.settled?.(requests);
  const after = costs();
  const each = (name: keyof ReturnType<typeof costOf>) =>
    after.reduce((sum, cost, index) => sum + cost[name] - (before[index]?.[name] ?? 0), 0) / requests;
  const percentile = (share: number) => latencies[Math.ceil(latencies.length * share) - 1] ?? 0;
  return {
    ...{ cpuMicros: each('cpuMicros'), writtenBytes: each('writtenBytes'), writeCalls: each('writeCalls') },
    ...{ p50: percentile(0.5), p99: percentile(0.99), perSecond: (latencies.length * 1_000) / ms },
    busy: (ticks.used - machine.used) / (ticks.all - machine.all),
  };
}

/** Each field's median over the samples. */
export function medianSample(samples: readonly Sample[]): Sample {
  const median = (name: keyof Sample) => medianOf(samples.map((one) => one[name]).sort((a, b) => a - b));
  return {
    ...{ cpuMicros: median('cpuMicros'), writtenBytes: median('writtenBytes'), writeCalls: median('writeCalls') },
    ...{ p50: median('p50'), p99: median('p99'), perSecond: median('perSecond'), busy: median('busy') },
  };
}

export const requestFor = (kind: Kind): string => JSON.stringify(body({ csr: csrFor(kind) }));

/** Whether `serve` can share its work between processes. */
export const hasWorkers = async (): Promise<boolean> => /--workers/.test((await spawnReseal(['serve', '--help'])).out);

/** Places orders, one per lane, and starts the service; both end with the stack. */
export async function startContender(
  settings: Settings,
  workers: number | undefined,
  stack: AsyncDisposableStack,
): Promise<Contender> {
  const orders = await placeOrders(settings, LANES);
  const args = workers === undefined ? [] : ['--workers', String(workers)];
  const { url, process } = await startService(settings, undefined, args);
  stack.use(process);
  return { url, orders, json: requestFor('p256'), processes: [process.child.pid ?? 0] };
}
