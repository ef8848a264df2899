// Durable reissues per second over HTTP and their CPU cost, compared with the cryptography every reissue needs: verify
// the CSR, sign the certificate. The service runs in this process and its callers in another, so that this process's CPU
// time is the service's alone; on two cores they still compete.
import { type ChildProcess, fork } from 'node:child_process';
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { placeOrders, ReissueClient } from '../campaigns/reissues.ts';
import { offline } from '../campaigns/service.ts';
import { readConfig } from '../src/config/config.ts';
import { serve } from '../src/wiring/serve.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import type { Bench } from './bench.ts';
import { aligned, type Candidate, compare, medianOf, type Result, runConcurrently } from './comparison.ts';

// Long rounds, so that each contains a WAL checkpoint.
const ROUNDS = { rounds: 5, roundMs: 1_500 } as const;
const LANES = 64;
const KINDS = ['p256', 'rsa2048'] as const;
type Kind = (typeof KINDS)[number];
/** Threads of the raw RSA comparison: what two cores can use. */
const RSA_THREADS = 2;
const MESSAGE = Buffer.alloc(1_000, 1);

const RAW: Readonly<Record<Kind, string>> = {
  p256: 'node:crypto, P-256: 1 verify + 1 sign, 1 thread',
  rsa2048: `node:crypto, RSA-2048: 1 verify + 1 sign, ${RSA_THREADS} threads`,
};
const OURS: Readonly<Record<Kind, string>> = {
  p256: `reissues over HTTP, P-256, ${LANES} at once`,
  rsa2048: `reissues over HTTP, RSA-2048, ${LANES} at once`,
};

export interface Load {
  readonly url: string;
  readonly orders: readonly PlacedOrder[];
  readonly json: string;
  readonly ms: number;
}
type Outcome = { readonly count: number } | { readonly trouble: string };

export const reissues: Bench = {
  about: 'durable reissues per second on SQLite, their CPU, and the ratio to the cryptography in them',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    await using stack = new AsyncDisposableStack();
    const cpu = new Map<string, number[]>();
    const candidates: Candidate[] = [];
    for (const kind of KINDS) {
      const ours = await ownReissues(join(folder.path, kind), kind, stack);
      candidates.push({ name: RAW[kind], run: kind === 'p256' ? rawP256() : rawRsa() });
      candidates.push({ name: OURS[kind], boundedBy: RAW[kind], run: ours });
    }
    const measured = candidates.map((one) => ({ ...one, run: withCpu(one, cpu) }));
    const results = await compare(measured, ROUNDS);
    for (const line of tableOf(results, cpu)) print(line);
    print(`\nmedians of ${ROUNDS.rounds} rounds of ${ROUNDS.roundMs} ms each, interleaved, in ${tmpdir()}`);
    print(`${availableParallelism()} cores; the callers are another process and take their share of them`);
  },
};

/** Records the CPU time per operation of this process, all threads. The warm-up round is not recorded. */
function withCpu({ name, run }: Candidate, cpu: Map<string, number[]>): Candidate['run'] {
  return async (deadline) => {
    const before = process.cpuUsage();
    const count = await run(deadline);
    const { user, system } = process.cpuUsage(before);
    const recorded = cpu.get(name);
    if (recorded) recorded.push((user + system) / count);
    else cpu.set(name, []);
    return count;
  };
}

function tableOf(results: readonly Result[], cpu: ReadonlyMap<string, number[]>): string[] {
  const cpuOf = ({ candidate }: Result) => medianOf((cpu.get(candidate.name) ?? []).toSorted((a, b) => a - b));
  const rows = results.map((result) => {
    const { candidate, median, slowest, fastest } = result;
    const bound = results.find((other) => other.candidate.name === candidate.boundedBy);
    return [
      candidate.name,
      median.toFixed(0),
      `${slowest.toFixed(0)}–${fastest.toFixed(0)}`,
      bound ? (median / bound.median).toFixed(2) : '',
      cpuOf(result).toFixed(0),
      bound ? (cpuOf(result) / cpuOf(bound)).toFixed(2) : '',
    ];
  });
  return aligned([['', 'per second', 'range', 'ratio', 'CPU µs each', 'ratio'], ...rows], [1, 2, 3, 4, 5]);
}

/** One order per lane, so that lanes do not contend for an order's lock. */
export async function ownReissues(folder: string, kind: Kind, stack: AsyncDisposableStack): Promise<Candidate['run']> {
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
  const orders = await placeOrders(settings, LANES, kind);
  const running = await serve(readConfig(await offline(settings)).config, { now: Date.now, log: () => {} });
  stack.defer(() => running.stop());
  const callers = fork(fileURLToPath(import.meta.url), { execArgv: [] });
  stack.defer(() => void callers.kill());
  const json = JSON.stringify(body({ csr: csrFor(kind) }));
  return async (deadline) =>
    await runLoad(callers, { url: running.url, orders, json, ms: deadline - performance.now() });
}

/** Sends a load to the callers' process and resolves with the number of reissues it completed. */
export async function runLoad(callers: ChildProcess, load: Load): Promise<number> {
  callers.send(load);
  const [outcome] = (await once(callers, 'message')) as [Outcome];
  if ('trouble' in outcome) throw new Error(outcome.trouble);
  return outcome.count;
}

function rawP256(): Candidate['run'] {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signature = sign('sha256', MESSAGE, privateKey);
  return async (deadline) => {
    let count = 0;
    for (; performance.now() < deadline; count += 1) {
      verify('sha256', MESSAGE, publicKey, signature);
      sign('sha256', MESSAGE, privateKey);
    }
    return count;
  };
}

function rawRsa(): Candidate['run'] {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signature = sign('sha256', MESSAGE, privateKey);
  const [signInPool, verifyInPool] = [promisify(sign), promisify(verify)];
  return (deadline) =>
    runConcurrently(RSA_THREADS, deadline, async () => {
      await verifyInPool('sha256', MESSAGE, publicKey, signature);
      await signInPool('sha256', MESSAGE, privateKey);
    });
}

/** Runs in the callers' process, once per load. */
async function callService({ url, orders, json, ms }: Load): Promise<Outcome> {
  using client = new ReissueClient(orders.length);
  try {
    const count = await runConcurrently(orders.length, performance.now() + ms, async (lane) => {
      const order = orders[lane];
      if (!order) throw new Error(`lane ${lane} has no order`);
      const answer = await client.reissue(url, order, json);
      if (answer?.status !== 200) throw new Error(`a reissue was answered with ${JSON.stringify(answer)}`);
    });
    return { count };
  } catch (error) {
    return { trouble: String(error) };
  }
}

if (import.meta.main) {
  process.on('message', (load: Load) => void callService(load).then((outcome) => process.send?.(outcome)));
}
