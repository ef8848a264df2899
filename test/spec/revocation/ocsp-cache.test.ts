// Signed OCSP answers are kept, statuses are not: two instances on one store, on both engines. Each test warms the cache of
// one instance before the other changes the status.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync } from 'node:fs';
import { StatementSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { engineAt } from '../../../src/adapters/store/store.ts';
import { type Environment, readConfig } from '../../../src/config/config.ts';
import { newFolder, startApp, TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { certificate, newOrder } from '../../support/orders.ts';
import { RoundTrips } from '../../support/postgres-wire.ts';
import { spawnReseal } from '../../support/process.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { certIdOf, derOf, ocspErrorOf, ocspRequest, pems, postOcsp, readOcsp } from '../../support/status.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ASKED = 20;

interface Pair {
  readonly one: TestApp;
  readonly other: TestApp;
  /** Statements on SQLite, round trips on PostgreSQL, so far. */
  readonly trips: () => number;
  readonly settings: Environment;
}

const postgres = await sharedPostgres();
after(() => postgres[Symbol.asyncDispose]());

async function onSqlite(): Promise<Pair> {
  const one = await startApp();
  const other = new TestApp(one.folder);
  await other.start({});
  return { one, other, trips: () => statements, settings: { RESEAL_DATA_DIR: one.folder } };
}

async function onPostgres(): Promise<Pair> {
  const url = await postgres.createDatabase();
  const direct = new URL(url);
  const proxy = await TcpProxy.to(direct.hostname, Number(direct.port));
  after(() => proxy[Symbol.asyncDispose]());
  const counted = new RoundTrips();
  proxy.tap = counted.tap;
  direct.port = String(proxy.port);
  const one = new TestApp(newFolder());
  await one.start({ RESEAL_DATABASE_URL: direct.href });
  const folder = newFolder();
  cpSync(one.folder, folder, { recursive: true, filter: (file) => !file.includes('lock') });
  const other = new TestApp(folder);
  await other.start({ RESEAL_DATABASE_URL: url });
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_DATABASE_URL: url };
  return { one, other, trips: () => counted.count, settings };
}

let statements = 0;
for (const method of ['all', 'get', 'iterate', 'run'] as const) {
  const real = StatementSync.prototype[method] as (...values: unknown[]) => unknown;
  Object.defineProperty(StatementSync.prototype, method, {
    value(this: StatementSync, ...values: unknown[]) {
      statements += 1;
      return Reflect.apply(real, this, values);
    },
  });
}

/** A certificate, and how to ask an instance about it. */
async function issued(app: TestApp) {
  const order = await newOrder(app);
  const shown = await certificate(app, order, order.certificateId);
  const issuer = derOf(pems(shown.ica_pem)[0]!);
  const serial: string = shown.serial_number;
  const certId = certIdOf(serial, issuer);
  const ask = async (of: TestApp, nonce?: Uint8Array) => {
    const { der } = await postOcsp(of, ocspRequest([certId], nonce));
    const { statuses, ...answer } = readOcsp(der, issuer, [certId]);
    return { ...answer, der, ...statuses[0]! };
  };
  /** Asked twice, so that the second answer comes from the cache. */
  const askCached = async (of: TestApp) => {
    const [first, second] = [await ask(of), await ask(of)];
    assert.deepEqual(second.der, first.der, 'from the cache');
    return second;
  };
  const revoke = (at: TestApp, reason = 'superseded') =>
    at.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key, json: { reason } });
  return { order, serial, issuer, ask, askCached, revoke };
}

// Both before the first test: once the registered tests have ended, the runner takes the file for finished.
const PAIRS = { SQLite: await onSqlite(), PostgreSQL: await onPostgres() };
for (const [name, { one, other, trips, settings }] of Object.entries(PAIRS)) {
  after(async () => {
    await one[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  const advance = (ms: number) => {
    for (const app of [one, other]) app.advance(ms);
  };
  /** The least of many, because background work can only add. */
  async function leastTrips(work: () => Promise<unknown>): Promise<number> {
    const counts: number[] = [];
    for (let asked = 0; asked < ASKED; asked += 1) {
      const before = trips();
      await work();
      counts.push(trips() - before);
    }
    return Math.min(...counts);
  }

  rule('revocation 18', 'the status that the store has when it is asked, whichever instance recorded it', async () => {
    const { ask, askCached, revoke } = await issued(one);
    assert.equal((await askCached(one)).status, 'good');
    assert.equal((await revoke(other)).status, 200);
    const revoked = await askCached(one);
    assert.deepEqual([revoked.status, revoked.reason], ['revoked', 'superseded']);
    assert.equal((await revoke(other, 'key_compromise')).status, 200);
    assert.equal((await askCached(one)).reason, 'key_compromise');
    assert.deepEqual((await ask(other)).reason, 'key_compromise');
  });

  test(`on ${name}, a revocation by a command, in a process of its own, shows in the next answer`, async () => {
    const { order, ask, askCached } = await issued(one);
    await askCached(one);
    const { code, err } = await spawnReseal(['cert', 'revoke', order.key.accountId, order.certificateId], {
      ...(settings as Record<string, string>),
    });
    assert.equal(code, 0, err);
    assert.equal((await ask(one)).status, 'revoked');
  });

  test(`on ${name}, a revocation that the store no longer has, as after a restore, is no longer answered`, async () => {
    const { order, serial, ask, askCached, revoke } = await issued(one);
    await revoke(other);
    assert.equal((await askCached(one)).status, 'revoked');
    const db = openEngine(engineAt(readConfig(settings).config.database), () => {});
    await db.deleteFrom('revoked_serial').where('serial', '=', serial).execute();
    assert.equal((await askCached(one)).status, 'good');
    await db.updateTable('certificate').set({ state: 'voided' }).where('id', '=', order.certificateId).execute();
    await db.destroy();
    assert.equal((await ask(one)).status, 'unknown');
  });

  rule('revocation 18', 'may have been signed up to an hour before', async () => {
    const { ask } = await issued(one);
    const first = await ask(one);
    advance(59 * MINUTE);
    assert.deepEqual((await ask(one)).der, first.der);
    advance(MINUTE);
    const next = await ask(one);
    assert.deepEqual([next.thisUpdate, next.nextUpdate], [first.thisUpdate + HOUR, first.nextUpdate + HOUR]);
    advance(-30 * MINUTE);
    assert.equal((await ask(one)).thisUpdate, first.thisUpdate + HOUR / 2, 'not an answer from the future');
  });

  test(`on ${name}, an answer to a nonce is signed for its request, also when the same nonce is sent again`, async () => {
    const { ask } = await issued(one);
    const nonce = randomBytes(32);
    const [first, second, plain] = [await ask(one, nonce), await ask(one, nonce), await ask(one)];
    assert.notDeepEqual(second.der, first.der);
    assert.deepEqual([Buffer.from(second.nonce!), plain.nonce], [nonce, undefined]);
  });

  test(`on ${name}, an answer asks the store once: cached, with a nonce, and about a serial number that was not issued`, async () => {
    const { issuer, ask, askCached } = await issued(one);
    const { responderSerial } = await askCached(one);
    const about = (serial: string) => postOcsp(one, ocspRequest([certIdOf(serial, issuer)]));
    assert.deepEqual(
      {
        cached: await leastTrips(() => ask(one)),
        nonce: await leastTrips(() => ask(one, randomBytes(32))),
        unknown: await leastTrips(() => about('41'.repeat(16))),
        responder: await leastTrips(() => about(responderSerial)),
      },
      { cached: 1, nonce: 1, unknown: 1, responder: 1 },
    );
  });
}

test('requests that arrive at once wait for their turn, so many at most, and the others are told to try later', async () => {
  await using app = await startApp();
  const { serial, issuer } = await issued(app);
  const request = ocspRequest([certIdOf(serial, issuer)]);
  const ask = (count: number) =>
    Promise.all(Array.from({ length: count }, () => app.issuance.answerOcsp(request))).then((answers) =>
      answers.filter(({ der }) => ocspErrorOf(der) === undefined),
    );
  await ask(1);
  assert.equal((await ask(500)).length, 500);
  assert.equal((await ask(1_500)).length, 1_024);
  assert.equal((await ask(500)).length, 500, 'none is left waiting');
});
