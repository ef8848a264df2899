// What fifty reissues at once that make keys in the cloud (an RSA key, Argon2) and SM2 dual certificates (a key, an
// envelope) do to everybody else: the delay of the event loop, and plain reissues that go on meanwhile, beside the same
// without them. The service runs in this process, its callers in two others.
import { fork } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeKeys, offline, withStore } from '../campaigns/service.ts';
import { newKeyAndCsr } from '../src/adapters/ca/csr-writer.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import { serve } from '../src/wiring/serve.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import type { Bench } from './bench.ts';
import { ordered } from './reissues.ts';

const ROUND_MS = 5_000;
const PLAIN_LANES = 8;
const HEAVY_LANES = 25;
const CALLERS = fileURLToPath(new URL('./reissues.ts', import.meta.url));
const MS = 1e6;

export const heldKeys: Bench = {
  about: 'plain reissues and the event loop while fifty others make keys, beside an idle service',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    await using stack = new AsyncDisposableStack();
    const settings = { RESEAL_DATA_DIR: folder.path, RESEAL_PORT: '0' };
    const { csr } = await newKeyAndCsr('www.example.com', 'sm2');
    const plain = await place(settings, PLAIN_LANES, 'ssl-dv', csrFor('p256'), 'sha256');
    const cloud = await place(settings, HEAVY_LANES, 'document-signing', csrFor('rsa2048'), 'sha256');
    const dual = await place(settings, HEAVY_LANES, 'ssl-sm2-dual', csr, 'sm3');
    const { url, stop } = await serve(readConfig(await offline(settings)).config, { now: Date.now, log: () => {} });
    stack.defer(() => stop());
    const callers = Array.from({ length: 3 }, () => fork(CALLERS, { execArgv: [] }));
    stack.defer(() => callers.forEach((one) => void one.kill()));
    const call = (index: number, orders: readonly PlacedOrder[], json: object) =>
      ordered(callers[index]!, { url, orders, json: JSON.stringify(json), ms: ROUND_MS });
    const plainly = () => call(0, plain, body());
    const heavily = [
      () =>
        call(1, cloud, {
          certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' },
          sign_key_pin: 'access code',
        }),
      () => call(2, dual, { certificate: { csr, common_name: 'www.example.com', sign_hash: 'sm3' } }),
    ];
    await plainly();
    const idle = await delayed(async () => [await sleep(ROUND_MS, 0)]);
    const alone = await delayed(async () => [await plainly()]);
    const together = await delayed(() => Promise.all([plainly, ...heavily].map((one) => one())));
    const rate = (count = 0) => `${((count * 1000) / ROUND_MS).toFixed(0)}/s`;
    print(`                                        event loop delay, ms: median     p99     max   plain   keys made`);
    const line = (name: string, { delays, counts: [count, ...heavy] }: typeof idle) =>
      print(
        `${name.padEnd(56)}${delays.map((one) => one.toFixed(1).padStart(8)).join('')}   ${rate(count).padStart(5)}   ${heavy.map(rate).join(' + ')}`,
      );
    line('idle', idle);
    line(`${PLAIN_LANES} plain reissues at once`, alone);
    line(`the same, beside ${2 * HEAVY_LANES} that make keys (cloud + dual)`, together);
    print(
      '\nA reissue that finds the queue of the workers full is answered service_busy, and its caller stops the bench.',
    );
  },
};

async function delayed(work: () => Promise<number[]>) {
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
  productId: string,
  csr: string,
  signHash: 'sha256' | 'sm3',
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
