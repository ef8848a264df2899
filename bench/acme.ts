// Complete orders over ACME whose names are authorized already (newOrder, finalize, download: what a renewal sends), beside
// plain reissues by as many clients of the same service.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { placeOrders, ReissueClient } from '../campaigns/reissues.ts';
import { offline, startService, withStore } from '../campaigns/service.ts';
import { AcmeClient, newEab } from '../test/support/acme.ts';
import { acmeCsr, dnsIdentifiers } from '../test/support/acme-orders.ts';
import { keyPair } from '../test/support/csr.ts';
import { body } from '../test/support/orders.ts';
import type { Bench } from './bench.ts';
import { costOf } from './process-cost.ts';

const CLIENTS = Number(process.env.BENCH_CLIENTS ?? 64);
/** Within the rate of an ACME account. */
const WARM_UP = 5;
const EACH = Number(process.env.BENCH_REQUESTS ?? 30);
/** That the operator has vouched for, in every account. */
const NAMES = ['www.example.com'];

interface Sample {
  readonly perSecond: number;
  readonly median: number;
  readonly p99: number;
  readonly cpuMs: number;
}

export const acme: Bench = {
  about: `complete ACME orders with valid authorizations, and plain reissues, by ${CLIENTS} clients`,
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    const settings = await offline({ RESEAL_DATA_DIR: folder.path });
    const orders = await placeOrders(settings, CLIENTS);
    const eabs = await withStore(settings, (app) =>
      Promise.all(orders.map(({ key: { accountId } }) => newEab({ app }, accountId))),
    );
    const { url, process: service } = await startService(settings);
    try {
      const clients = eabs.map(() => new AcmeClient(url));
      await Promise.all(clients.map((client, index) => client.register(eabs[index])));
      const csr = acmeCsr(NAMES, keyPair('p256'));
      using reissuing = new ReissueClient(CLIENTS);
      const json = JSON.stringify(body());
      const acts: Record<string, (lane: number) => Promise<void>> = {
        'ACME order': (lane) => renew(clients[lane]!, url, csr),
        async reissue(lane) {
          const answer = await reissuing.reissue(url, orders[lane]!, json);
          if (answer?.status !== 200) throw new Error(JSON.stringify(answer));
        },
      };
      const pid = service.child.pid ?? 0;
      for (const [name, act] of Object.entries(acts)) {
        await measure(pid, WARM_UP, act);
        const { perSecond, median, p99, cpuMs } = await measure(pid, EACH, act);
        print(
          `${name.padEnd(10)}  ${perSecond.toFixed(0).padStart(5)}/s  median ${median.toFixed(1)} ms  p99 ${p99.toFixed(1)} ms  ${cpuMs.toFixed(2)} ms of CPU in the service`,
        );
      }
      print(`\nAn ACME order is three requests, each with a nonce and a signature. The clients share the cores.`);
    } finally {
      await service.end('SIGKILL');
    }
  },
};

async function renew(client: AcmeClient, url: string, csr: string): Promise<void> {
  const placed = await client.post(`${url}/acme/new-order`, { identifiers: dnsIdentifiers(NAMES) });
  const done = await client.post(placed.body.finalize, { csr });
  if (done.body.status !== 'valid') throw new Error(`${placed.text} ${done.text}`);
  const { status, text } = await client.post(done.body.certificate);
  if (status !== 200) throw new Error(text);
}

async function measure(pid: number, each: number, act: (lane: number) => Promise<void>): Promise<Sample> {
  const times: number[] = [];
  const [begun, cpu] = [performance.now(), costOf(pid).cpuMicros];
  const lane = async (index: number) => {
    for (let count = 0; count < each; count += 1) {
      const start = performance.now();
      await act(index);
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => lane(index)));
  const seconds = (performance.now() - begun) / 1_000;
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  const cpuMs = (costOf(pid).cpuMicros - cpu) / 1_000 / times.length;
  return { perSecond: times.length / seconds, median: at(0.5), p99: at(0.99), cpuMs };
}
