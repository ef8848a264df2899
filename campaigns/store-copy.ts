// A store on SQLite is copied to PostgreSQL and back to another SQLite, by the command that operators use; the first copy is
// killed in the middle and repeated. Digests of all three must be equal, and a service must work on each.
import { cpSync, mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../src/config/config.ts';
import { mapLimit } from '../src/kernel/concurrency.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import { ISSUERS_FOLDER, type Key, TestApp } from '../test/support/app.ts';
import { body, csrFor, type PlacedOrder, reissue, show } from '../test/support/orders.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { spawnReseal, startReseal } from '../test/support/process.ts';
import type { Campaign, Print } from './campaign.ts';
import { makeKeys, offline, type Settings, withStore } from './service.ts';

interface CopyPlan {
  readonly orders: number;
  /** An empty database. */
  readonly url: string;
  readonly killsFirst: boolean;
  readonly print: Print;
}

const AT_ONCE = 64;

export async function copyThereAndBack({ orders, url, killsFirst, print }: CopyPlan): Promise<string[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-copy-'));
  const [first, last] = [join(folder.path, 'first'), join(folder.path, 'last')];
  const prepared = process.env[ISSUERS_FOLDER];
  if (prepared) cpSync(prepared, first, { recursive: true });
  const settings: Settings = { RESEAL_DATA_DIR: first };
  const placed = await timed(`${orders} orders placed`, print, () => placeMany(settings, orders));
  const onServer = { ...settings, RESEAL_DATABASE_URL: url };
  if (killsFirst) print(`killed after: ${await killedCopy(settings, url)}`);
  const there = await timed('SQLite to PostgreSQL', print, () => copy(settings, url));
  // Back, with the same seal key.
  const back = await timed('PostgreSQL to SQLite', print, () => copy(onServer, last));
  print(`${there.rows} rows, ${there.digest.slice(0, 16)} and ${back.digest.slice(0, 16)}`);
  const broken: string[] = [];
  if (there.digest !== back.digest || there.rows !== back.rows) broken.push('the digests differ');
  if (there.rows < 3 * orders) broken.push(`only ${there.rows} rows for ${orders} orders`);
  cpSync(join(first, 'seal.key'), join(last, 'seal.key'));
  for (const [name, environment] of Object.entries({ PostgreSQL: onServer, SQLite: { RESEAL_DATA_DIR: last } })) {
    broken.push(...(await tryService(environment, placed)).map((one) => `${name}: ${one}`));
  }
  return broken;
}

async function timed<T>(what: string, print: Print, work: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work();
  print(`${what}: ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
  return result;
}

/** Places orders in one account. Returns the first of them. */
async function placeMany(settings: Settings, count: number): Promise<PlacedOrder> {
  const [key] = (await makeKeys(settings, 1)) as [Key];
  const request = {
    commonName: 'www.example.com',
    csr: csrFor(),
    keySource: 'caller',
    signHash: 'sha256',
    keepsEncryptionKey: false,
  } as const;
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(await offline(settings)).config, Date.now);
    const given = { accountId: key.accountId, productId: 'ssl-dv', alternativeId: null, actor: 'cli' } as const;
    const place = () => issuance.placeOrder({ ...given, vouchesForNames: true, request });
    const { orderId, certificateId } = await place();
    await mapLimit(AT_ONCE, Array.from({ length: count - 1 }), place);
    await issuance.close();
    return { key, id: orderId, certificateId };
  });
}

interface Copied {
  readonly rows: number;
  readonly digest: string;
}

async function copy(settings: Settings, to: string): Promise<Copied> {
  const { code, out, err } = await spawnReseal(['store', 'copy', '--to', to, '--json'], settings);
  if (code !== 0) throw new Error(`the copy to ${to} failed: ${out}${err}`);
  return JSON.parse(out);
}

/** Kills a copy when it reports progress. Returns what it reported. */
async function killedCopy(settings: Settings, to: string): Promise<string> {
  const copying = startReseal(['store', 'copy', '--to', to], settings);
  const reported = new Promise<void>((resolve) => {
    copying.child.stderr?.on('data', () => {
      if (/copying certificate:/.test(copying.output)) resolve();
    });
    copying.child.once('close', () => resolve());
  });
  await reported;
  await copying.end('SIGKILL', 'group');
  return copying.output.trim().split('\n').at(-1) ?? '';
}

async function tryService(settings: Settings, order: PlacedOrder): Promise<string[]> {
  const app = new TestApp(settings.RESEAL_DATA_DIR ?? '');
  app.advance(Date.now() - app.now());
  await app.start(settings);
  await using _app = app;
  const { status } = await show(app, order);
  const { status: code, text } = await reissue(app, order, body());
  return [
    ...(status === 'issued' ? [] : [`the first order is ${status}`]),
    ...(code === 200 ? [] : [`a reissue was answered ${text}`]),
  ];
}

export const storeCopy: Campaign = {
  about:
    'a store with N orders copied from SQLite to PostgreSQL and back, killed once: equal digests, working services',
  defaultN: 100_000,
  async run(orders, print) {
    await using server = await startPostgres();
    return await copyThereAndBack({ orders, url: await server.createDatabase(), killsFirst: true, print });
  },
};
