// Strangers who send in part or not at all, and accounts that flood: others are answered all the same. A small version of
// the campaign `strangers` is the last test.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ATTACKS, attack, NOT_HTTP, SMUGGLING } from '../../../campaigns/strangers-attacks.ts';
import { type Key, startApp, type TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { RawConnection, sendRaw } from '../../support/raw-http.ts';
import { ocspErrorOf } from '../../support/status.ts';

const PATH = '/openapi/v3/account';
const MAX_PER_SENDER = 32;
const MALFORMED_REQUEST = 1;

const halfOcsp = (header = '') => `POST /ocsp HTTP/1.1\r\nHost: x\r\n${header}Content-Length: 100\r\n\r\nx`;
const headOf = ({ keyId, authKey }: Key) => `Host: x\r\nX-CC-Key-ID: ${keyId}\r\nX-CC-Auth-Key: ${authKey}\r\n`;
const halfPut = (key: Key) =>
  `PUT ${PATH} HTTP/1.1\r\n${headOf(key)}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;

/** A connection for each text, which the service has read. */
async function sent(app: TestApp, texts: readonly string[]): Promise<RawConnection[]> {
  const connections = await Promise.all(texts.map(() => RawConnection.to(app.url)));
  for (const [index, one] of connections.entries()) one.write(texts[index] ?? '');
  // What is written later is read later.
  for (const _ of [1, 2]) await app.call('GET', '/healthz');
  return connections;
}
const times = (count: number, text: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => text(index));
const endAll = (connections: readonly RawConnection[]) => {
  for (const one of connections) one.end();
};

/** Occupies the store's only writer: requests that write stay in progress until it is released. */
async function blockWrites(app: TestApp): Promise<{ release(): Promise<void> }> {
  const [end, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const blocked = app.app.store.transaction(async () => {
    begun.resolve();
    await end.promise;
  });
  await begun.promise;
  return {
    release: () => {
      end.resolve();
      return blocked;
    },
  };
}
const rename = (app: TestApp, key: Key) => app.call('PUT', PATH, { key, json: { name: 'renamed' } });
const read = (app: TestApp, key: Key) => app.call('GET', PATH, { key });

rule('transport 7', 'requests that are half sent keep no other from being answered', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '4' });
  const [slow, key] = [await app.newKey(), await app.newKey()];
  const held = await sent(
    app,
    times(20, (index) => (index % 2 === 0 ? halfOcsp() : halfPut(slow))),
  );
  for (let count = 0; count < 10; count += 1) assert.equal((await rename(app, key)).status, 200);
  assert.equal((await app.call('POST', '/ocsp', { raw: 'x' })).status, 200);
  assert.equal((await app.call('GET', '/readyz')).status, 200);
  endAll(held);
});

rule('transport 18', 'One sender has at most 32 half-sent requests in a process', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '100' });
  const [key, other] = [await app.newKey(), await app.newKey()];
  const strangers = await sent(
    app,
    times(MAX_PER_SENDER, () => halfOcsp()),
  );
  const next = await sendRaw(app.url, halfOcsp());
  assert.deepEqual([next.status, JSON.parse(next.body).code, next.headers.connection], [503, 'service_busy', 'close']);
  // Accounts are senders of their own, also from the same address.
  const own = await sent(
    app,
    times(MAX_PER_SENDER, () => halfPut(key)),
  );
  const mine = await sendRaw(app.url, halfPut(key));
  assert.deepEqual(
    [mine.status, JSON.parse(mine.body).code, mine.headers.connection],
    [429, 'request_too_fast', 'close'],
  );
  const another = await sent(app, [halfPut(other)]);
  another[0]?.write(`"name":"x"}${' '.repeat(88)}`);
  await another[0]?.until(/^HTTP\/1\.1 200 /);
  // What is complete, or gone, does not count.
  strangers[0]?.write('x'.repeat(99));
  await strangers[0]?.until(/^HTTP\/1\.1 200 /);
  endAll(await sent(app, [halfOcsp()]));
  endAll([...strangers, ...own, ...another]);
});

rule('transport 18', 'the IPv4 address or IPv6 /64 network, as trusted proxies forward it', async () => {
  await using app = await startApp({ RESEAL_TRUSTED_PROXIES: '127.0.0.1', RESEAL_MAX_REQUESTS: '100' });
  const from = (address: string) => halfOcsp(`X-Forwarded-For: ${address}\r\n`);
  const apart = await sent(
    app,
    times(MAX_PER_SENDER + 8, (index) => from(`192.0.2.${index}`)),
  );
  const site = await sent(
    app,
    times(MAX_PER_SENDER, (index) => from(`2001:db8:0:7::${index.toString(16)}`)),
  );
  assert.equal((await sendRaw(app.url, from('2001:db8:0:7:ffff::1'))).status, 503);
  const beside = await sent(app, [from('2001:db8:0:8::1')]);
  for (const one of [...apart, ...beside]) assert.equal(one.received, '');
  endAll([...apart, ...site, ...beside]);
});

rule('transport 11', 'have places of their own, and health checks need none', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '2' });
  const keys = [await app.newKey(), await app.newKey()] as const;
  const writes = await blockWrites(app);
  const held = keys.map((key) => rename(app, key));
  // Refused once both places are held, and those wait for the writer.
  while ((await read(app, keys[0])).status === 200);
  for (const path of ['/healthz', '/docs', '/openapi.json']) {
    assert.equal((await app.call('GET', path)).status, 200, path);
  }
  for (const path of ['/ca/none.crt', '/crl/none/0.crl']) assert.equal((await app.call('GET', path)).status, 404, path);
  assert.equal((await app.call('POST', '/ocsp', { raw: 'x' })).status, 200);
  await writes.release();
  for (const one of held) assert.equal((await one).status, 200);
});

rule('transport 12', 'however many requests one account sends, those of another find a place', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '8' });
  const [greedy, other] = [await app.newKey(), await app.newKey()];
  const writes = await blockWrites(app);
  const flood = times(30, () => '').map(() => rename(app, greedy));
  // Some of the flood is refused because the queue of its account is full: it has arrived.
  const own = await Promise.race(flood);
  assert.deepEqual([own.status, own.body.code, own.headers.get('retry-after')], [429, 'request_too_fast', '1']);
  for (let count = 0; count < 10; count += 1) assert.equal((await read(app, other)).status, 200);
  await writes.release();
  const answers = await Promise.all(flood);
  const answered = answers.filter(({ status }) => status === 200).length;
  assert.ok(answered >= 4, `${answered} of the flood were answered`);
  assert.equal((await rename(app, greedy)).status, 200);
});

rule('transport 19', 'while others would find a place, else with `service_busy`', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '1' });
  const [first, second] = [await app.newKey(), await app.newKey()];
  const writes = await blockWrites(app);
  const held = rename(app, first);
  while ((await read(app, second)).status === 200);
  const refused = await read(app, second);
  assert.deepEqual([refused.status, refused.body.code, refused.headers.get('retry-after')], [503, 'service_busy', '1']);
  await writes.release();
  assert.equal((await held).status, 200);
});

rule('transport 19', 'A request that finds no place waits for one', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '1' });
  const [first, second] = [await app.newKey(), await app.newKey()];
  const answerOfWaiting = async () => {
    const writes = await blockWrites(app);
    const held = rename(app, first);
    while ((await read(app, second)).status === 200);
    const waiting = read(app, second);
    // It has arrived before the place becomes free.
    for (const _ of [1, 2]) await app.call('GET', '/healthz');
    await writes.release();
    assert.equal((await held).status, 200);
    return (await waiting).status;
  };
  // A machine that stands still for a second may refuse it.
  let status = 503;
  for (let tries = 0; status !== 200 && tries < 5; tries += 1) status = await answerOfWaiting();
  assert.equal(status, 200);
});

rule('transport 14', 'Messages that two HTTP programs could read differently are refused with 400', async () => {
  await using app = await startApp();
  for (const [fault, text] of Object.entries({ ...SMUGGLING, ...NOT_HTTP })) {
    const [lines, bytes] = [app.lines.length, app.output.length];
    const { status, headers, body } = await sendRaw(app.url, text);
    assert.deepEqual([status, JSON.parse(body).code, headers.connection], [400, 'invalid_parameters', 'close'], fault);
    assert.equal(app.lines.length, lines + 1, `${fault}: one line`);
    assert.ok(app.output.length - bytes < 400, `${fault}: ${app.output.slice(bytes)}`);
  }
});

rule('transport 14', 'The connection closes, nothing that follows on it is carried out', async () => {
  await using app = await startApp();
  const key = await app.newKey({ name: 'before' });
  const json = '{"name":"smuggled"}';
  const smuggled = `PUT ${PATH} HTTP/1.1\r\n${headOf(key)}Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`;
  for (const [fault, text] of Object.entries({ ...SMUGGLING, ...NOT_HTTP })) {
    await sendRaw(app.url, `${text}${smuggled}`);
    // Also behind a request that is still in progress.
    await sendRaw(app.url, `GET ${PATH} HTTP/1.1\r\n${headOf(key)}\r\n${text}${smuggled}`);
    assert.equal((await read(app, key)).body.data.account.name, 'before', fault);
  }
});

rule(
  'transport 15',
  'is answered with the OCSP response `malformedRequest`, as `application/ocsp-response`',
  async () => {
    await using app = await startApp();
    for (const raw of ['', 'x', 'x'.repeat(8_192), 'x'.repeat(8_193), 'x'.repeat(300_000)]) {
      const response = await fetch(`${app.url}/ocsp`, { method: 'POST', body: raw });
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/ocsp-response']);
      assert.equal(ocspErrorOf(Buffer.from(await response.arrayBuffer())), MALFORMED_REQUEST, `${raw.length} bytes`);
    }
  },
);

rule('transport 16', 'At the bound a new connection is accepted, and an idle one closes', async () => {
  // Sixteen connections.
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '1' });
  const key = await app.newKey();
  const open = async () => {
    const connection = await RawConnection.to(app.url);
    connection.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await connection.until(/"alive"/);
    return connection;
  };
  const caller = await RawConnection.to(app.url);
  caller.write(`GET ${PATH} HTTP/1.1\r\n${headOf(key)}\r\n`);
  await caller.until(/"success"/);
  const strangers = [];
  for (let count = 0; count < 15; count += 1) strangers.push(await open());
  for (let count = 0; count < 20; count += 1) {
    strangers.push(await open());
    await strangers.shift()?.closed();
  }
  caller.write(`GET ${PATH} HTTP/1.1\r\n${headOf(key)}\r\n`);
  await caller.until(/"success".*"success"/s);
  endAll([caller, ...strangers]);
});

rule('transport 17', 'it closes after the answers to the first 8', async () => {
  await using app = await startApp();
  const key = await app.newKey();
  const greedy = await sendRaw(app.url, `GET ${PATH} HTTP/1.1\r\n${headOf(key)}\r\n`.repeat(100));
  assert.equal(`${greedy.body}`.split('"code":"success"').length - 1, 8);
});

test('attacks of strangers: another account is answered every time, and the service stays ready', async () => {
  await using app = await startApp({ RESEAL_MAX_REQUESTS: '8' });
  const key = await app.newKey();
  for (const [name, how] of Object.entries(ATTACKS)) {
    using attackers = attack(app.url, how, 40);
    while (attackers.seen.opened < 40) await app.call('GET', '/healthz');
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await rename(app, key)).status, 200, name);
      assert.equal((await app.call('GET', '/readyz')).status, 200, name);
    }
  }
  assert.deepEqual(
    app.lines.filter(({ event }) => event === 'error'),
    [],
  );
});
