// Event loop delay and throughput of plain reissues while fifty concurrent reissues generate keys: cloud-held ones (RSA,
// Argon2) and SM2 dual certificates (a key, an envelope). Compared with the same without that load. The service runs in
// this process, its callers in three others.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKeys, offline, withStore } from '../campaigns/service.ts';
import { newKeyAndCsr } from '../src/adapters/ca/csr-writer.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import { serve } from '../src/wiring/serve.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import type { Bench } from './bench.ts';
import { runLoad } from './callers.ts';
import { startChild } from './child.ts';
import { reissuesOf } from './contender.ts';

const ROUND_MS = 2_000;
const PLAIN_LANES = 8;
const HEAVY_LANES = 25;
const MS = 1e6;

export const heldKeys: Bench = {
  about: 'plain reissues and event loop delay while fifty others generate keys, compared with an idle service',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    await using stack = new AsyncDisposableStack();
    const settings = { RESEAL_DATA_DIR: folder.path, RESEAL_PORT: '0' };
    const { csr } = await newKeyAndCsr('www.example.com', 'sm2');
    const plain = await place(settings, PLAIN_LANES, { productId: 'ssl-dv', csr: csrFor('p256'), signHash: 'sha256' });
    const documents = { productId: 'document-signing', csr: csrFor('rsa2048'), signHash: 'sha256' } as const;
    const cloud = await place(settings, HEAVY_LANES, documents);
    const dual = await place(settings, HEAVY_LANES, { productId: 'ssl-sm2-dual', csr, signHash: 'sm3' });
    const { url, stop } = await serve(readConfig(await offline(settings)).config, { now: Date.now, log: () => {} });
    stack.defer(() => stop());
    const callers = Array.from({ length: 3 }, () => startChild('./callers.ts', stack));
    const call = async (index: number, orders: readonly PlacedOrder[], json: object) => {
      const load = { url, requests: reissuesOf(orders, JSON.stringify(json)), until: { ms: ROUND_MS } };
      return (await runLoad(callers[index]!, load)).latencies.length;
    };
    const runPlain = () => call(0, plain, body());
    const runHeavy = [
      () =>
        call(1, cloud, {
          certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' },
          sign_key_pin: 'access code',
        }),
      () => call(2, dual, { certificate: { csr, common_name: 'www.example.com', sign_hash: 'sm3' } }),
    ];
    await runPlain();
    const idle = await withDelays(async () => [await sleep(ROUND_MS, 0)]);
    const alone = await withDelays(async () => [await runPlain()]);
    const together = await withDelays(() => Promise.all([runPlain, ...runHeavy].map((one) => one())));
    const rate = (count = 0) => `${((count * 1000) / ROUND_MS).toFixed(0)}/s`;
    print(`                                        event loop delay, ms: median     p99     max   plain   keys made`);
    const line = (name: string, { delays, counts: [count, ...heavy] }: typeof idle) =>
      print(
        `${name.padEnd(56)}${delays.map((one) => one.toFixed(1).padStart(8)).join('')}   ${rate(count).padStart(5)}   ${heavy.map(rate).join(' + ')}`,
      );
    line('idle', idle);
    line(`${PLAIN_LANES} plain reissues at once`, alone);
    line(`the same, with ${2 * HEAVY_LANES} that generate keys (cloud + dual)`, together);
    print('\nA reissue that finds the worker queue full gets service_busy, and its caller stops the benchmark.');
  },
};

async function withDelays(work: () => Promise<number[]>) {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  const counts = await work();
  histogram.disable();
  const delays = [histogram.percentile(50), histogram.percentile(99), histogram.max].map((ns) => ns / MS);
  return { counts, delays };
}

async function place(
  settings: Record<string, string>,
  count: number,
  { productId, csr, signHash }: { productId: string; csr: string; signHash: 'sha256' | 'sm3' },
): Promise<PlacedOrder[]> {
  const keys = await makeKeys(settings, count);
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(await offline(settings)).config, Date.now);
    const orders: PlacedOrder[] = [];
    for (const key of keys) {
      const { orderId, certificateId } = await issuance.placeOrder({
        ...{ accountId: key.accountId, productId, alternativeId: null, actor: 'cli', vouchesForNames: true },
        request: {
          ...{ commonName: 'www.example.com', csr, keySource: 'caller', signHash },
          keepsEncryptionKey: false,
        },
      });
      orders.push({ key, id: orderId, certificateId });
    }
    await issuance.close();
    return orders;
  });
}
