// A small version of the campaign of the same name: one account floods each expensive operation, another works beside it. It
// counts answers; the campaign measures times.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FLOOD_KINDS, FLOODS, type Flooder, type FloodKind, SILENT_DOMAIN } from '../../campaigns/floods.ts';
import { startDnsServer } from '../../src/sandbox/dns-server.ts';
import { startApp } from '../support/app.ts';
import { body, csrFor, newOrder, reissue } from '../support/orders.ts';

const LANES = 6;
const EACH = 3;
const [PLACEMENTS, OPEN_ORDERS, TESTS] = [4, 2, 5];
const RETRY_MS = 50;

const silence = new Map(['TXT', 'CAA', 'A', 'AAAA'].map((type) => [type, 'silence'] as const));
const replies = (name: string) => (name.endsWith(SILENT_DOMAIN) ? silence : undefined);
const dns = await startDnsServer({ host: '127.0.0.1', port: 0, replies });
const receiver = net.createServer((socket) => socket.on('error', () => {}));
await once(receiver.listen(0, '127.0.0.1'), 'listening');
const app = await startApp({
  ...{ RESEAL_DNS_SERVERS: `127.0.0.1:${dns.port}`, RESEAL_CALLBACK_ALLOW: '127.0.0.1' },
  ...{ RESEAL_CALLBACK_TEST_RATE: '1000/s', RESEAL_CALLBACK_TESTS_PER_ACCOUNT: String(TESTS) },
  RESEAL_PLACEMENTS_PER_ACCOUNT: String(PLACEMENTS),
  RESEAL_OPEN_ORDERS_PER_ACCOUNT: String(OPEN_ORDERS),
});
after(async () => {
  receiver.close();
  await app[Symbol.asyncDispose]();
  await dns[Symbol.asyncDispose]();
});

const neighbour = await newOrder(app);
const { key } = await newOrder(app);
const flooders: Flooder[] = [];
for (let lane = 0; lane < LANES; lane += 1) {
  const signing = await newOrder(app, { product: 'document-signing', commonName: 'Acme Ltd' }, key);
  flooders.push({ ssl: await newOrder(app, {}, key), signing });
}
const means = {
  costlyCsr: csrFor('p521'),
  silentReceiver: `https://127.0.0.1:${(receiver.address() as AddressInfo).port}`,
};

/** What each flood must be answered, if it matters: the least number of answers with that code. */
const REFUSED: Partial<Record<FloodKind, readonly [code: string, least: number]>> = {
  silent_dns: ['request_too_fast', LANES * EACH - PLACEMENTS],
  callback_tests: ['request_too_fast', LANES * EACH - TESTS],
  hundred_names: ['quota_exceeded', 1],
  nested_bodies: ['invalid_parameters', LANES * EACH],
};

/** Sends all at once. `answered` counts what is answered, and resolves `refused` once as many are as must be. */
function flood(kind: FloodKind, gone: AbortSignal) {
  const counts = new Map<string, number>();
  const [code, least] = REFUSED[kind] ?? ['', 0];
  const refused = Promise.withResolvers<void>();
  const note = (said: string) => {
    counts.set(said, (counts.get(said) ?? 0) + 1);
    if ((counts.get(code) ?? 0) >= least) refused.resolve();
  };
  if (least === 0) refused.resolve();
  const sending = flooders.flatMap((flooder, lane) =>
    Array.from({ length: EACH }, async (_, turn) => {
      const { method, path, json, headers } = FLOODS[kind](flooder, `u${lane}x${turn}`, means);
      const sent = {
        ...{ 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, 'Content-Type': 'application/json' },
        ...headers,
      };
      // Placements of the flood before may still wait for their names, and then there is no room for what is meant here.
      for (let said = ''; said === '' || (said === 'request_too_fast' && code !== said && !gone.aborted); ) {
        if (said !== '') await sleep(RETRY_MS, undefined, { signal: gone });
        const answer = await fetch(app.url + path, { method, body: json, headers: sent, signal: gone });
        said = ((await answer.json()) as { code: string }).code;
        note(said);
      }
    }),
  );
  return { counts, refused: refused.promise, ended: Promise.allSettled(sending) };
}

for (const kind of FLOOD_KINDS) {
  test(`while one account floods ${kind}, another is answered, and the first is told why it is not`, async () => {
    const gone = new AbortController();
    const flooding = flood(kind, gone.signal);
    await flooding.refused;
    const answers = [
      await reissue(app, neighbour, body()),
      await app.call('POST', '/openapi/v3/orders/ssl-dv', { key: neighbour.key, json: body() }),
      await app.call('GET', `/openapi/v3/orders/${neighbour.id}`, { key: neighbour.key }),
      await app.call('GET', '/openapi/v3/account', { key: neighbour.key }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    // What is still held back waits for names or receivers that never answer.
    gone.abort();
    await flooding.ended;
    const unknown = [...flooding.counts.keys()].filter(
      (code) => !/^(success|request_too_fast|service_busy|quota_exceeded|invalid_parameters)$/.test(code),
    );
    assert.deepEqual(unknown, []);
  });
}
