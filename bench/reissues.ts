// How many durable reissues per second over HTTP, and what each costs in CPU, beside the cryptography that no reissue
// can do without: verify the CSR, sign the certificate. The service runs in this process and its callers in another,
// so that the CPU of this process is the service's alone; on a machine with two cores they share them all the same.
import { type ChildProcess, fork } from 'node:child_process';
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { placeOrders, ReissueClient } from '../campaigns/reissue-kill.ts';
import { offline } from '../campaigns/service.ts';
import { readConfig } from '../src/config/config.ts';
import { serve } from '../src/wiring/serve.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import type { Bench } from './bench.ts';
import { type Contender, medianOf, race, type Standing, sideBySide } from './comparison.ts';

// Long rounds: a checkpoint of the log falls into each of them.
const RACE = { rounds: 5, roundMs: 1_500 } as const;
const LANES = 64;
const KINDS = ['p256', 'rsa2048'] as const;
type Kind = (typeof KINDS)[number];
/** The threads that sign in the raw contest for RSA: what two cores can do. */
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
    const contenders: Contender[] = [];
    for (const kind of KINDS) {
      const ours = await ownReissues(join(folder.path, kind), kind, stack);
      contenders.push({ name: RAW[kind], run: kind === 'p256' ? rawP256() : rawRsa() });
      contenders.push({ name: OURS[kind], boundedBy: RAW[kind], run: ours });
    }
    const measured = contenders.map((one) => ({ ...one, run: withCpu(one, cpu) }));
    const standings = await race(measured, RACE);
    for (const line of tableOf(standings, cpu)) print(line);
    print(`\nmedians of ${RACE.rounds} rounds of ${RACE.roundMs} ms each, interleaved, in ${tmpdir()}`);
    print(`${availableParallelism()} cores; the callers are another process and take their share of them`);
  },
};

/** Notes the CPU of this process, all threads, for each operation; the first round warms up, and is not noted. */
function withCpu({ name, run }: Contender, cpu: Map<string, number[]>): Contender['run'] {
  return async (deadline) => {
    const before = process.cpuUsage();
    const count = await run(deadline);
    const { user, system } = process.cpuUsage(before);
    const noted = cpu.get(name);
    if (noted) noted.push((user + system) / count);
    else cpu.set(name, []);
    return count;
  };
}

function tableOf(standings: readonly Standing[], cpu: ReadonlyMap<string, number[]>): string[] {
  const cpuOf = ({ contender }: Standing) => medianOf((cpu.get(contender.name) ?? []).toSorted((a, b) => a - b));
  const rows = standings.map((standing) => {
    const { contender, median, slowest, fastest } = standing;
    const bound = standings.find((other) => other.contender.name === contender.boundedBy);
    return [
      contender.name,
      median.toFixed(0),
      `${slowest.toFixed(0)}–${fastest.toFixed(0)}`,
      bound ? (median / bound.median).toFixed(2) : '',
      cpuOf(standing).toFixed(0),
      bound ? (cpuOf(standing) / cpuOf(bound)).toFixed(2) : '',
    ];
  });
  const table = [['', 'per second', 'range', 'ratio', 'CPU µs each', 'ratio'], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  const cell = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!);
  return table.map((row) => row.map(cell).join('  ').trimEnd());
}

/** An order for every lane, so that none waits for another's turn. */
export async function ownReissues(folder: string, kind: Kind, stack: AsyncDisposableStack): Promise<Contender['run']> {
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
  const orders = await placeOrders(settings, LANES, kind);
  const running = await serve(readConfig(await offline(settings)).config, { now: Date.now, log: () => {} });
  stack.defer(() => running.stop());
  const callers = fork(fileURLToPath(import.meta.url), { execArgv: [] });
  stack.defer(() => void callers.kill());
  const json = JSON.stringify(body({ csr: csrFor(kind) }));
  return async (deadline) =>
    await ordered(callers, { url: running.url, orders, json, ms: deadline - performance.now() });
}

export async function ordered(callers: ChildProcess, load: Load): Promise<number> {
  callers.send(load);
  const [outcome] = (await once(callers, 'message')) as [Outcome];
  if ('trouble' in outcome) throw new Error(outcome.trouble);
  return outcome.count;
}

function rawP256(): Contender['run'] {
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

function rawRsa(): Contender['run'] {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signature = sign('sha256', MESSAGE, privateKey);
  const [signInPool, verifyInPool] = [promisify(sign), promisify(verify)];
  return (deadline) =>
    sideBySide(RSA_THREADS, deadline, async () => {
      await verifyInPool('sha256', MESSAGE, publicKey, signature);
      await signInPool('sha256', MESSAGE, privateKey);
    });
}

/** The callers' process: works off what it is sent, one load after the other. */
async function callAsTold({ url, orders, json, ms }: Load): Promise<Outcome> {
  using client = new ReissueClient(orders.length);
  try {
    const count = await sideBySide(orders.length, performance.now() + ms, async (lane) => {
      const answer = await client.reissue(url, orders[lane]!, json);
      if (answer?.status !== 200) throw new Error(`a reissue was answered with ${JSON.stringify(answer)}`);
    });
    return { count };
  } catch (error) {
    return { trouble: String(error) };
  }
}

if (import.meta.main) {
  process.on('message', (load: Load) => void callAsTold(load).then((outcome) => process.send?.(outcome)));
}
