// One account floods each expensive operation in turn, and another one works as it always does. Measured for the latter:
// answers and their times, alone, while the same load comes from many accounts, and while it comes from one. The numbers
// mean something on an otherwise idle machine only.
import { fork } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { Agent, request } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../src/config/config.ts';
import { startDnsServer } from '../src/sandbox/dns-server.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import type { Key } from '../test/support/app.ts';
import { csr, pem } from '../test/support/csr.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import type { Campaign, Print } from './campaign.ts';
import { FLOOD_KINDS, type Flooder, type FloodKind, type FloodMeans, SILENT_DOMAIN } from './floods.ts';
import type { FloodOrder } from './neighbours-flood.ts';
import { makeKeys, type Settings, startService, withStore } from './service.ts';

/** Connections of a flood. */
const LANES = 32;
/** Between the requests of the neighbour, whether or not they are answered. */
const EVERY_MS = 50;
const ANSWER_MS = 15_000;
/** What the issue asks for. */
const MOST_TIMES = 3;
const MOST_MS = 250;
/** Below this, times are those of the scheduler. */
const NOISE_MS = 15;
const OPEN_ORDERS = 60;

interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly sent: number;
  readonly failed: readonly string[];
}

interface Callers {
  readonly neighbour: Flooder;
  /** All of one account. */
  readonly flood: readonly Flooder[];
  /** Each of its own. */
  readonly spread: readonly Flooder[];
}

async function makeCallers(settings: Settings): Promise<Callers> {
  const [neighbour, flood, ...spread] = await makeKeys(settings, LANES + 2);
  if (!neighbour || !flood) throw new Error('no keys were made');
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
    await using _ = { [Symbol.asyncDispose]: () => issuance.close() };
    const place = async (key: Key, productId: string, commonName: string): Promise<PlacedOrder> => {
      const { orderId: id, certificateId } = await issuance.placeOrder({
        ...{ accountId: key.accountId, productId, alternativeId: null, actor: 'cli', vouchesForNames: true },
        request: { commonName, csr: csrFor(), keySource: 'caller', signHash: 'sha256', keepsEncryptionKey: false },
      });
      return { key, id, certificateId };
    };
    const flooder = async (key: Key): Promise<Flooder> => ({
      ssl: await place(key, 'ssl-dv', 'www.example.com'),
      signing: await place(key, 'document-signing', 'Acme Ltd'),
    });
    const each = async (keys: readonly Key[]) => {
      const made: Flooder[] = [];
      for (const key of keys) made.push(await flooder(key));
      return made;
    };
    return {
      neighbour: await flooder(neighbour),
      flood: await each(Array.from({ length: LANES }, () => flood)),
      spread: await each(spread),
    };
  });
}

/** What the neighbour does, in turn: a reissue, an order that is issued at once, and two reads. */
const WORK: readonly ((order: PlacedOrder) => { method: string; path: string; json?: unknown })[] = [
  ({ id }) => ({ method: 'POST', path: `orders/${id}/reissue`, json: body() }),
  ({ id }) => ({ method: 'GET', path: `orders/${id}` }),
  () => ({ method: 'POST', path: 'orders/ssl-dv', json: body() }),
  () => ({ method: 'GET', path: 'account' }),
];

/** The status, or why there was none. */
function ask(url: string, agent: Agent, order: PlacedOrder, turn: number): Promise<string> {
  const { method, path, json } = WORK[turn % WORK.length]!(order);
  const text = json === undefined ? '' : JSON.stringify(json);
  const headers = {
    ...{ 'X-CC-Key-ID': order.key.keyId, 'X-CC-Auth-Key': order.key.authKey },
    ...(text !== '' && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
  };
  return new Promise((resolve) => {
    const asking = request(`${url}/openapi/v3/${path}`, { method, agent, headers, timeout: ANSWER_MS }, (response) => {
      response.resume();
      response.on('error', () => {});
      response.on('close', () => resolve(`${response.complete ? response.statusCode : 'cut off'}`));
    });
    asking.on('timeout', () => asking.destroy(new Error('no answer in time')));
    asking.on('error', (error) => resolve(error.message));
    asking.end(text);
  });
}

async function measure(url: string, { ssl }: Flooder, seconds: number): Promise<Measured> {
  const agent = new Agent({ keepAlive: true });
  const times: number[] = [];
  const failed: string[] = [];
  const asking: Promise<void>[] = [];
  const sent = Math.ceil((seconds * 1000) / EVERY_MS);
  for (let turn = 0; turn < sent; turn += 1) {
    const begun = performance.now();
    asking.push(
      ask(url, agent, ssl, turn).then((status) => {
        times.push(performance.now() - begun);
        if (status !== '200') failed.push(status);
      }),
    );
    await sleep(EVERY_MS);
  }
  await Promise.all(asking);
  agent.destroy();
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), sent, failed };
}

/** Runs `work` while a process floods. Returns what was answered to it as well. */
async function during<T>(order: FloodOrder, work: () => Promise<T>): Promise<[T, Record<string, number>]> {
  const child = fork(new URL('./neighbours-flood.ts', import.meta.url));
  const answered = once(child, 'message') as Promise<[Record<string, number>]>;
  child.send(order);
  const result = await work();
  child.send('stop');
  const [counts] = await answered;
  return [result, counts];
}

const shown = ({ p50, p99 }: Measured): string => `p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} ms`;
const countsShown = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([code, count]) => `${code} ${count}`)
    .join(', ');

interface Round {
  readonly url: string;
  readonly callers: Callers;
  readonly means: FloodMeans;
  readonly seconds: number;
}

async function flood(kind: FloodKind, { url, callers, means, seconds }: Round, print: Print): Promise<string[]> {
  const broken: string[] = [];
  const { neighbour } = callers;
  const work = () => measure(url, neighbour, seconds);
  const [spread] = await during({ url, kind, flooders: callers.spread, means }, work);
  const [flooded, counts] = await during({ url, kind, flooders: callers.flood, means }, work);
  print(`${kind}: of many accounts ${shown(spread)}; of one ${shown(flooded)}; it was answered ${countsShown(counts)}`);
  for (const [who, { failed, sent }] of Object.entries({ spread, flooded })) {
    if (failed.length > 0) broken.push(`${kind}, ${who}: ${failed.length} of ${sent} failed: ${[...new Set(failed)]}`);
  }
  const most = Math.min(MOST_MS, Math.max(NOISE_MS, MOST_TIMES * spread.p99));
  if (flooded.p99 > most) broken.push(`${kind}: p99 ${flooded.p99.toFixed(1)} ms, at most ${most.toFixed(1)}`);
  if (kind === 'hundred_names' && !counts.quota_exceeded) broken.push('the quota of open orders was not reached');
  return broken;
}

/** The flooding account sees why. */
async function explained(url: string, [flooder]: readonly Flooder[]): Promise<string[]> {
  const { keyId, authKey } = flooder!.ssl.key;
  const headers = { 'X-CC-Key-ID': keyId, 'X-CC-Auth-Key': authKey };
  const answer = await fetch(`${url}/openapi/v3/account`, { headers });
  // biome-ignore lint/suspicious/noExplicitAny: the answer of an operation whose shape a test proves.
  const { used, limit } = ((await answer.json()) as any).data.quotas.open_orders;
  return used === OPEN_ORDERS && limit === OPEN_ORDERS ? [] : [`the account shows ${used} of ${limit} open orders`];
}

function costlyCsr(): string {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 8192 });
  return pem(csr({ key: { privateKey, spki: new Uint8Array(publicKey.export({ format: 'der', type: 'spki' })) } }));
}

export const neighbours: Campaign = {
  about: 'one account floods each expensive operation for N seconds; another is answered as before',
  defaultN: 10,
  async run(seconds, print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-neighbours-'));
    const silence = new Map(['TXT', 'CAA', 'A', 'AAAA'].map((type) => [type, 'silence'] as const));
    const isSilent = (name: string) => name.endsWith(SILENT_DOMAIN);
    const replies = (name: string) => (isSilent(name) ? silence : undefined);
    await using dns = await startDnsServer({ host: '127.0.0.1', port: 0, replies });
    const receiver = net.createServer((socket) => socket.on('error', () => {}));
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    await using _receiver = { [Symbol.asyncDispose]: async () => void receiver.close() };
    const settings = {
      ...{ RESEAL_DATA_DIR: folder.path, RESEAL_DNS_SERVERS: `127.0.0.1:${dns.port}`, RESEAL_WORKERS: '1' },
      ...{ RESEAL_CALLBACK_ALLOW: '127.0.0.1', RESEAL_CALLBACK_TEST_RATE: '100000/s' },
      RESEAL_OPEN_ORDERS_PER_ACCOUNT: String(OPEN_ORDERS),
    };
    const callers = await makeCallers(settings);
    const silentReceiver = `https://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
    const means: FloodMeans = { costlyCsr: costlyCsr(), silentReceiver };
    const broken: string[] = [];
    const service = await startService(settings);
    const { url } = service;
    try {
      const alone = await measure(url, callers.neighbour, seconds);
      print(`alone: ${shown(alone)}`);
      if (alone.failed.length > 0) broken.push(`alone: ${alone.failed.length} of ${alone.sent} failed`);
      for (const kind of FLOOD_KINDS) {
        broken.push(...(await flood(kind, { url, callers, means, seconds }, print)));
        const { status } = await fetch(`${url}/readyz`);
        if (status !== 200) broken.push(`after ${kind} the service is not ready: ${status}`);
      }
      broken.push(...(await explained(url, callers.flood)));
      if (/"event":"error"/.test(service.process.output)) broken.push('the log has an error');
    } finally {
      await service.process.end('SIGTERM');
    }
    return broken;
  },
};
