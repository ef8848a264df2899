// `reseal serve` as several processes: they share the load and the limits, each is replaced when it is killed, and none
// outlives the supervisor.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { subscribe } from '../../campaigns/callback-kill.ts';
import { placeOrders, ReissueClient } from '../../campaigns/reissues.ts';
import { makeKeys, type Service, type Settings, startService, withTables } from '../../campaigns/service.ts';
import { type Key, newFolder, newUsedFolder } from '../support/app.ts';
import { environmentFor } from '../support/callback-app.ts';
import { rule } from '../support/contract.ts';
import { body, type PlacedOrder } from '../support/orders.ts';
import { HOST, Outside } from '../support/outside.ts';
import { spawnReseal } from '../support/process.ts';
import { isRunning, processesOf } from '../support/processes.ts';
import { OK, respond } from '../support/receiver.ts';

const JSON_AND_CLOSE = { 'Content-Type': 'application/json', Connection: 'close' };
const BODY = JSON.stringify(body());
const TRIES = 600;
const PAUSE_MS = 50;

/** Another process can only be polled. */
async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (await isSo()) return;
    await sleep(PAUSE_MS);
  }
  throw new Error(`it never happened: ${what}`);
}

async function start(settings: Settings, workers = 2): Promise<Service & AsyncDisposable> {
  const service = await startService(settings, undefined, ['--workers', String(workers)]);
  return { ...service, [Symbol.asyncDispose]: () => service.process[Symbol.asyncDispose]() };
}

const metric = async ({ url }: Service, pattern: RegExp): Promise<number> =>
  Number(pattern.exec(await (await fetch(`${url}/metrics`)).text())?.[1] ?? 0);

/** Answers of reissues, concurrently on several connections. */
async function reissue({ url }: Service, orders: readonly PlacedOrder[], each: number) {
  using client = new ReissueClient(orders.length);
  const answers = orders.map(async (order) => {
    const own = [];
    for (let count = 0; count < each; count += 1) own.push(await client.reissue(url, order, BODY));
    return own;
  });
  return (await Promise.all(answers)).flat();
}

rule('ops 15', 'shows the sums over all processes of the service, whichever worker is asked', async () => {
  const settings = { RESEAL_DATA_DIR: await newUsedFolder() };
  const orders = await placeOrders(settings, 4);
  await using service = await start(settings);
  const answers = await reissue(service, orders, 3);
  assert.deepEqual(new Set(answers.map((answer) => answer?.status)), new Set([200]));
  const count = /^reseal_http_request_seconds_count\{method="POST",route="[^"]*reissue",status="200"\} (\d+)$/m;
  for (const _ of [1, 2, 3]) assert.equal(await metric(service, count), 12, 'whichever worker is asked');
  // A connection goes to a worker that is free, so which of them answers how many depends on the load.
  const lines = service.process.output.split('\n').filter((line) => line.includes('reissue'));
  const shares = Map.groupBy(lines, (line) => JSON.parse(line).process);
  assert.deepEqual([lines.length, [...shares.keys()].sort()], [12, ['http-1', 'http-2']]);
  assert.equal(await service.process.end('SIGTERM'), 0);
  assert.deepEqual(processesOf(service.process), []);
});

rule('ops 16', 'hold over all workers together', async () => {
  await using outside = await Outside.open();
  const held: Socket[] = [];
  const receiver = await outside.receiver({ script: (socket) => void held.push(socket) });
  const settings: Settings = {
    ...{
      RESEAL_DATA_DIR: await newUsedFolder(),
      RESEAL_CALLBACK_TEST_RATE: '7/h',
      RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '3',
    },
    ...(environmentFor(outside) as Settings),
  };
  const [key] = (await makeKeys(settings, 1)) as [Key];
  await using service = await start(settings);
  const sendTest = async () => {
    const response = await fetch(`${service.url}/openapi/v3/account/callback/test`, {
      method: 'PUT',
      // Each on a connection of its own, dealt out to the workers in turn.
      headers: { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, ...JSON_AND_CLOSE },
      body: JSON.stringify({ url: `https://${HOST}:${receiver.port}/`, access_key: 'x' }),
    });
    return ((await response.json()) as { code: string }).code;
  };
  const codes = async (count: number) => (await Promise.all(Array.from({ length: count }, sendTest))).sort();
  const underWay = codes(3);
  await until(() => held.length === 3, 'three tests are under way');
  assert.deepEqual(await codes(4), Array(4).fill('request_too_fast'));
  receiver.script = respond(OK);
  for (const socket of held) socket.end(OK);
  assert.deepEqual(await underWay, Array(3).fill('success'));
  assert.deepEqual(await codes(3), Array(3).fill('success'));
  assert.deepEqual(await codes(3), ['request_too_fast', 'request_too_fast', 'success']);
  const workers = service.process.output.matchAll(/"process":"(http-\d)","event":"request"[^\n]+callback/g);
  assert.equal(new Set(Array.from(workers, ([, name]) => name)).size, 2);
});

rule('ops 17', 'is replaced, nothing that it had acknowledged is lost', async () => {
  const settings = { RESEAL_DATA_DIR: await newUsedFolder() };
  const orders = await placeOrders(settings, 4);
  await using service = await start(settings);
  const before = processesOf(service.process);
  const load = reissue(service, orders, 15);
  await until(() => service.process.output.includes('/reissue'), 'a reissue is answered');
  process.kill(before.find(({ name }) => name === 'http-1')!.pid, 'SIGKILL');
  const acknowledged = (await load).flatMap((answer) =>
    answer?.status === 200 ? [answer.body.data.certificate.id] : [],
  );
  assert.ok(acknowledged.length > 30, `only ${acknowledged.length} were acknowledged`);
  await until(() => processesOf(service.process).length === before.length, 'it is replaced');
  assert.equal(await metric(service, /^reseal_processes_ended_total\{role="http"\} (\d+)$/m), 1);
  const issued = await withTables(settings, (db) =>
    db.selectFrom('certificate').select('id').where('state', '=', 'issued').execute(),
  );
  const ids = new Set(issued.map(({ id }) => id));
  assert.deepEqual(
    acknowledged.filter((id) => !ids.has(id)),
    [],
  );
});

rule('ops 17', 'nothing that it had acknowledged is lost, and its work is taken over', async () => {
  await using outside = await Outside.open();
  const receiver = await outside.receiver();
  const settings = { RESEAL_DATA_DIR: await newUsedFolder(), ...(environmentFor(outside) as Settings) };
  const orders = await placeOrders(settings, 1);
  await subscribe(settings, orders, `https://${HOST}:${receiver.port}/`);
  await using service = await start(settings, 1);
  await reissue(service, orders, 1);
  await until(() => receiver.requests.length === 1, 'the first callback');
  const [background] = processesOf(service.process).filter(({ name }) => name === 'background');
  process.kill(background!.pid, 'SIGKILL');
  await reissue(service, orders, 1);
  await until(() => receiver.requests.length === 2, 'the second callback');
});

rule('ops 18', 'No process of the service outlives the one that the operator has started', async () => {
  await using service = await start({ RESEAL_DATA_DIR: await newUsedFolder() }, 1);
  const processes = processesOf(service.process);
  assert.equal(processes.length, 2);
  await service.process.end('SIGKILL');
  await until(() => processes.every(({ pid }) => !isRunning(pid)), 'all have ended');
});

test('a port in use is reported once, before anything starts', async () => {
  using cleanup = new DisposableStack();
  const taken = cleanup.adopt(createServer().listen(0, '127.0.0.1'), (server) => server.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const settings = { RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: String(port), RESEAL_WORKERS: '2' };
  const { code, out, err } = await spawnReseal(['serve'], settings);
  assert.deepEqual([code, out], [3, '']);
  assert.match(err, new RegExp(`^reseal: port ${port} on 127\\.0\\.0\\.1 is already in use\nWhat to do: [^\n]+\n$`));
});
