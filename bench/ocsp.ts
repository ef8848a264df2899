// OCSP over HTTP, as ratios to a server that sends the same bytes. Rates with callers that are HTTP clients, as verifiers
// are; they cost more than the bare server does, so that its rate is theirs. CPU per answer shows what they hide, with
// callers that only write bytes. Service, bare server and callers are processes of their own.
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { placeOrders } from '../campaigns/reissues.ts';
import { type Settings, startService, withStore } from '../campaigns/service.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { RoundTrips } from '../test/support/postgres-wire.ts';
import { certIdOf, ocspRequest, partsOf, postOcsp } from '../test/support/status.ts';
import { TcpProxy } from '../test/support/tcp-proxy.ts';
import { type Row, tableOf } from './aims.ts';
import type { Print } from './bench.ts';
import { nextMessage, startChild } from './child.ts';
import { medianOf, runConcurrently } from './comparison.ts';
import { sampleLoad } from './contender.ts';

const ROUNDS = 5;
const WARM_UP = 6_000;
const REQUESTS = 4_000;
const ROUND_MS = 700;
const LANES = 32;
/** The nonce is the last bytes of a request. */
const NONCE_BYTES = 32;

/** An issued certificate to ask about. */
export interface Asked {
  readonly issuerId: string;
  readonly issuer: Uint8Array;
  readonly serial: string;
  readonly certificateId: string;
}

interface Cost {
  readonly perSecond: number;
  readonly cpuMicros: number;
}
const NAMES = ['bare', 'front', 'cached', 'nonce'] as const;
type Name = (typeof NAMES)[number];
type Costs = Readonly<Record<Name, Cost>>;
type Measured = Costs & { readonly postgres: (Costs & { readonly roundTrips: number }) | undefined };

const rate = (one: Cost, { bare }: Costs) => ({
  ...{ value: one.perSecond, by: bare.perSecond },
  unit: 'per second' as const,
});
const cpu = (one: Cost, { bare }: Costs) => ({ value: one.cpuMicros, by: bare.cpuMicros, unit: 'µs' as const });

const ROWS: readonly Row<Measured>[] = [
  { about: 'rate without a nonce ÷ bare HTTP', aim: { atLeast: 0.85 }, ratio: (all) => rate(all.cached, all) },
  { about: 'rate with a nonce ÷ bare HTTP', aim: { atLeast: 0.5 }, ratio: (all) => rate(all.nonce, all) },
  { about: 'rate of our front alone (/healthz) ÷ bare HTTP', ratio: (all) => rate(all.front, all) },
  { about: 'CPU without a nonce ÷ bare HTTP', ratio: (all) => cpu(all.cached, all) },
  { about: 'CPU with a nonce ÷ bare HTTP', ratio: (all) => cpu(all.nonce, all) },
  { about: 'CPU of our front alone (/healthz) ÷ bare HTTP', ratio: (all) => cpu(all.front, all) },
  {
    about: 'PostgreSQL: round trips of an answer',
    aim: { atMost: 1 },
    ratio: ({ postgres }) => postgres && { value: postgres.roundTrips, unit: '' },
  },
  {
    about: 'PostgreSQL: rate without a nonce ÷ bare HTTP',
    ratio: (all) => all.postgres && rate(all.postgres.cached, all.postgres),
  },
  {
    about: 'PostgreSQL: rate with a nonce ÷ bare HTTP',
    ratio: (all) => all.postgres && rate(all.postgres.nonce, all.postgres),
  },
];

export async function measureOcsp(settings: Settings, asked: Asked, print: Print): Promise<void> {
  const onSqlite = await measure(settings, asked);
  const postgres = await measurePostgres(`${settings.RESEAL_DATA_DIR}`, print);
  for (const line of tableOf(ROWS, { ...onSqlite, postgres })) print(line);
  print(`\nMedians of ${ROUNDS} interleaved rounds, ${LANES} at once, after ${WARM_UP} requests for warming up.`);
  print(`${availableParallelism()} cores for service, bare server and callers; compare ratios of one run only.`);
}

/** Places an order and returns its certificate. */
export async function issueOne(settings: Settings): Promise<Asked> {
  const [order] = await placeOrders(settings, 1);
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
    await using _ = { [Symbol.asyncDispose]: () => issuance.close() };
    const found = order && (await app.store.certificates.find(order.key.accountId, order.certificateId));
    if (found?.state !== 'issued') throw new Error('the certificate was not issued');
    const { issuerId } = found.preparation;
    const [issuer] = await issuance.authority.chainOf(issuerId);
    if (!issuer) throw new Error('the issuer has no certificate');
    return { issuerId, issuer, serial: partsOf(found.der).serial, certificateId: found.id };
  });
}

async function measure(settings: Settings, { issuer, serial }: Asked): Promise<Record<Name, Cost>> {
  await using stack = new AsyncDisposableStack();
  const service = await startService(settings);
  stack.use(service.process);
  const certId = certIdOf(serial, issuer);
  const plain = ocspRequest([certId]);
  const { der } = await postOcsp(service, plain);
  const bare = startChild('./bare-http.ts', stack, ['application/ocsp-response', der.toString('base64')]);
  const writers = startChild('./callers.ts', stack);
  const clients = fork(fileURLToPath(import.meta.url), { execArgv: [] });
  stack.defer(() => void clients.kill());
  const at = { url: service.url, processes: [service.process.child.pid ?? 0] };
  const ask = { target: 'POST /ocsp', body: Buffer.from(plain).toString('base64'), freshBytes: 0 };
  const withNonce = Buffer.from(ocspRequest([certId], randomBytes(NONCE_BYTES))).toString('base64');
  const contenders: Record<Name, Contender> = {
    bare: { url: await nextMessage<string>(bare), processes: [bare.pid ?? 0], ...ask },
    front: { ...at, target: 'GET /healthz', body: '', freshBytes: 0 },
    cached: { ...at, ...ask },
    nonce: { ...at, ...ask, body: withNonce, freshBytes: NONCE_BYTES },
  };
  const costs: Record<Name, Cost[]> = { bare: [], front: [], cached: [], nonce: [] };
  for (const name of NAMES) await cpuOf(writers, contenders[name], WARM_UP);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of NAMES) {
      const cpuMicros = await cpuOf(writers, contenders[name], REQUESTS);
      costs[name].push({ cpuMicros, perSecond: await rateOf(clients, contenders[name]) });
    }
  }
  return {
    ...{ bare: medianCost(costs.bare), front: medianCost(costs.front) },
    ...{ cached: medianCost(costs.cached), nonce: medianCost(costs.nonce) },
  };
}

async function measurePostgres(folder: string, print: Print): Promise<Measured['postgres']> {
  await using stack = new AsyncDisposableStack();
  const server = await startPostgres().catch((error: Error) => print(`PostgreSQL is left out: ${error.message}\n`));
  if (!server) return undefined;
  stack.use(server);
  const database = new URL(await server.createDatabase());
  const settings = { RESEAL_DATA_DIR: join(folder, 'postgresql'), RESEAL_DATABASE_URL: database.href };
  const asked = await issueOne(settings);
  const costs = await measure(settings, asked);
  // Counted apart: the proxy would take a share of the rate.
  const proxy = stack.use(await TcpProxy.to(database.hostname, Number(database.port)));
  const trips = new RoundTrips();
  proxy.tap = trips.tap;
  database.port = String(proxy.port);
  const { url, process } = await startService({ ...settings, RESEAL_DATABASE_URL: database.href });
  stack.use(process);
  const plain = ocspRequest([certIdOf(asked.serial, asked.issuer)]);
  const counts: number[] = [];
  for (let round = 0; round < LANES; round += 1) {
    const before = trips.count;
    await postOcsp({ url }, plain);
    counts.push(trips.count - before);
  }
  return { ...costs, roundTrips: Math.min(...counts) };
}

interface Contender {
  readonly url: string;
  readonly processes: readonly number[];
  readonly target: string;
  /** Base64. */
  readonly body: string;
  readonly freshBytes: number;
}

async function cpuOf(writers: ChildProcess, { url, processes, ...asked }: Contender, requests: number) {
  const lanes = Array.from({ length: LANES }, () => asked);
  return (await sampleLoad(writers, { url, processes, requests: lanes }, requests)).cpuMicros;
}

type Outcome = { readonly count: number } | { readonly trouble: string };

async function rateOf(clients: ChildProcess, contender: Contender): Promise<number> {
  const begun = performance.now();
  clients.send(contender);
  const outcome = await nextMessage<Outcome>(clients);
  if ('trouble' in outcome) throw new Error(outcome.trouble);
  return (outcome.count * 1_000) / (performance.now() - begun);
}

function medianCost(costs: readonly Cost[]): Cost {
  const median = (name: keyof Cost) => medianOf(costs.map((one) => one[name]).sort((a, b) => a - b));
  return { perSecond: median('perSecond'), cpuMicros: median('cpuMicros') };
}

/** Runs in the clients' process. */
async function callAsClients({ url, target, body, freshBytes }: Contender): Promise<Outcome> {
  const [method, path] = target.split(' ');
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const bytes = Buffer.from(body, 'base64');
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const kept = bytes.subarray(0, bytes.length - freshBytes);
      const asked = request(url + path, { method: method ?? 'GET', agent }, (response) => {
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
        );
        response.resume();
      });
      asked.on('error', reject);
      asked.end(freshBytes > 0 ? Buffer.concat([kept, randomBytes(freshBytes)]) : bytes);
    });
  try {
    return { count: await runConcurrently(LANES, performance.now() + ROUND_MS, ask) };
  } catch (error) {
    return { trouble: String(error) };
  } finally {
    agent.destroy();
  }
}

if (import.meta.main) {
  process.on('message', (asked: Contender) => void callAsClients(asked).then((outcome) => process.send?.(outcome)));
}
