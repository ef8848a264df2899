// Where the CPU of a reissue goes: servers without rules, each with one step more, up to the service with all its rules.
// Measured under the load of the service, because code costs more between other code than in a loop of its own.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { placeOrders } from '../campaigns/reissues.ts';
import type { Bench } from './bench.ts';
import { nextMessage, startChild } from './child.ts';
import { medianOf } from './comparison.ts';
import { type Contender, LANES, requestFor, sample, startContender } from './contender.ts';
import { SERVERS, type ServerName } from './floor.ts';
import { startOutside } from './outside.ts';
import { verifyAndSign } from './upper-bounds.ts';

const ROUNDS = 9;
const WARM_UP = Number(process.env.BENCH_WARM_UP ?? 5_000);
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 800);

export const parts: Bench = {
  about: 'CPU of a P-256 reissue by its parts, 64 at once on SQLite',
  isOptional: true,
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    await using stack = new AsyncDisposableStack();
    const callers = startChild('./callers.ts', stack);
    const { settings } = await startOutside(stack);
    const contenders: Contender[] = [];
    for (const name of Object.keys(SERVERS)) {
      const at = { ...settings, RESEAL_DATA_DIR: join(folder.path, name) };
      contenders.push(await startServer(name as ServerName, at, stack));
    }
    contenders.push(await startContender({ ...settings, RESEAL_DATA_DIR: join(folder.path, 'service') }, 0, stack));
    for (const contender of contenders) await sample(callers, contender, WARM_UP);
    const crypto: number[] = [];
    const costs: number[][] = contenders.map(() => []);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [index, contender] of contenders.entries()) {
        crypto.push(verifyAndSign('p256'));
        costs[index]?.push((await sample(callers, contender, REQUESTS)).cpuMicros);
      }
    }
    const unit = median(crypto);
    const abouts = [...Object.values(SERVERS).map(({ about }) => about), 'the service, with its rules'];
    print('| | µs | ÷ verify + sign | this step |');
    print('|---|--:|--:|--:|');
    print(`| verify + sign in a loop of their own | ${unit.toFixed(0)} | 1.0 | |`);
    let before = 0;
    for (const [index, about] of abouts.entries()) {
      const micros = median(costs[index] ?? []);
      const [whole, step] = [micros / unit, (micros - before) / unit];
      print(`| ${index === 0 ? '' : '+ '}${about} | ${micros.toFixed(0)} | ${whole.toFixed(1)} | ${step.toFixed(1)} |`);
      before = micros;
    }
  },
};

async function startServer(
  name: ServerName,
  settings: Readonly<Record<string, string>>,
  stack: AsyncDisposableStack,
): Promise<Contender> {
  const orders = await placeOrders(settings, LANES);
  const { RESEAL_DATA_DIR: folder = '', RESEAL_DNS_SERVERS: nameServer = '' } = settings;
  const server = startChild('./floor.ts', stack, [name, folder, nameServer]);
  const url = await nextMessage<string>(server);
  return { orders, json: requestFor('p256'), url, processes: [server.pid ?? 0] };
}

const median = (numbers: readonly number[]): number => medianOf(numbers.toSorted((one, other) => one - other));
