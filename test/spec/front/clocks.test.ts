// Clocks that are wrong: what instances still agree on, and what operators are told.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { newSealKey, sealerWith } from '../../../src/adapters/seal/seal.ts';
import { openStore } from '../../../src/adapters/store/store.ts';
import { readConfig } from '../../../src/config/config.ts';
import { CLOCK_TOLERANCE_MS } from '../../../src/domain/clock.ts';
import { SIGNING_LEASE_MS } from '../../../src/domain/issuance/ports.ts';
import type { LogLine } from '../../../src/kernel/log.ts';
import { voidLostIssuances } from '../../../src/usecases/lease/void-lost-issuances.ts';
import { announceInstance } from '../../../src/wiring/instance.ts';
import { openService, serve } from '../../../src/wiring/serve.ts';
import { newFolder, startApp } from '../../support/app.ts';
import { authorize, CODE, digest, newCloudKey, withCode } from '../../support/cloud-keys.ts';
import { rule } from '../../support/contract.ts';
import { dieSigning } from '../../support/dead-signer.ts';
import { waitFor } from '../../support/deliveries.ts';
import { reseal } from '../../support/in-process.ts';
import { nameServer } from '../../support/name-server.ts';
import { body, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { issued, order, pairOf } from '../../support/records.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';

const HOUR = 3_600_000;
const YEAR = 8_760 * HOUR;
const app = await startApp();
after(() => app.stop());
const { store, newId } = app.app;
const tables = new DatabaseSync(join(app.folder, 'reseal.db'));
after(() => tables.close());

const signerDies = ({ key: { accountId }, id: orderId, certificateId: like }: PlacedOrder, now = app.now()) =>
  dieSigning(store, { accountId, orderId, like, id: newId() }, now);

rule('clock 1', 'further ahead than its length and 30 seconds is void', async () => {
  assert.equal(CLOCK_TOLERANCE_MS, 30_000);
  const placed = await newOrder(app);
  await signerDies(placed, app.now() + CLOCK_TOLERANCE_MS);
  const cancel = () => app.call('PUT', `/openapi/v3/orders/${placed.id}/cancel`, { key: placed.key });
  assert.equal((await cancel()).status, 503, 'a signer of another clock, within the tolerance');
  tables.exec('update signing set lease_ends_at = lease_ends_at + 1');
  assert.equal((await cancel()).body.code, 'cancel_not_allowed', 'beyond it, the order is not busy');
  assert.equal((await reissue(app, placed, body())).status, 200);
});

rule('clock 2', 'are never changed because a clock was wrong', async () => {
  const placed = await newOrder(app);
  const { accountId } = placed.key;
  const due = {
    reason: 'superseded',
    cause: 'requested',
    causedById: null,
    dueAt: app.now() + YEAR,
    revokedAt: null,
  } as const;
  await store.revocations.schedule(accountId, placed.certificateId, due);
  await app.issuance.sweep();
  for (const { run } of [...app.issuance.revocationChores, ...app.callbacks.deliveryChores]) await run();
  const [kept] = await store.revocations.listScheduled(accountId, placed.id, 10);
  assert.equal(kept?.dueAt, due.dueAt);
});

rule('clock 3', 'shortened to its length from now, and never dropped', async () => {
  const held = await newCloudKey(app);
  const hashes = [digest('sha256', 'x')];
  for (let tries = 0; tries < 5; tries += 1) await authorize(app, held, hashes, withCode('not the code'));
  tables.exec(`update cloud_key set locked_until = locked_until + ${YEAR} where id = '${held.id}'`);
  const tried = async () => {
    const { status, headers } = await authorize(app, held, hashes, withCode(CODE));
    return [status, headers.get('retry-after')];
  };
  assert.deepEqual(await tried(), [400, '60']);
  app.advance(59_000);
  assert.deepEqual(await tried(), [400, '1']);
  app.advance(1_000);
  assert.deepEqual(await tried(), [200, null]);
});

rule('clock 5', 'then takes their orders from their signers', async () => {
  const placed = await newOrder(app, { key: 'p384' });
  await signerDies(placed);
  const url = `/openapi/v3/certs/${placed.certificateId}/revoke`;
  const answer = await app.call('POST', url, { key: placed.key, json: { reason: 'key_compromise' } });
  assert.equal(answer.status, 200, 'the clock stood still: its lease has not ended');
  const left = tables.prepare('select 1 from signing where order_id = ?').all(placed.id);
  assert.deepEqual(left, []);
});

rule('clock 7', 'and of leases and next attempts that do not count', async () => {
  const shows = async (line: RegExp) => line.test((await app.call('GET', '/metrics')).text);
  // The service's own sweep may be faster.
  await waitFor('a stray lease is counted', async () => {
    await signerDies(await newOrder(app), app.now() + YEAR);
    return await shows(/^reseal_stray_times [1-9]/m);
  });
  const slow = { id: 'i', name: 'a.example' };
  await store.sealing.announce({ ...slow, clockAheadMs: -HOUR });
  assert.ok(await shows(/^reseal_clock_ahead_seconds\{instance="a\.example"\} -3600$/m));
  await store.sealing.withdraw(slow);
  await app.issuance.sweep();
  assert.ok(await shows(/^reseal_stray_times 0$/m));
});

rule('clock 8', 'names stray times and clocks that went back', async () => {
  const folder = newFolder();
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_DNS_SERVERS: await nameServer() };
  assert.equal((await reseal(['account', 'create', 'Acme'], settings)).code, 0);
  const own = new DatabaseSync(join(folder, 'reseal.db'));
  const ahead = Date.now() + YEAR;
  own.exec(
    `insert into instance (id, name, seen_at, seal_keys, sealing_with) values ('i', 'a.example', ${ahead}, '[]', '')`,
  );
  const clock = async () =>
    JSON.parse((await reseal(['doctor', '--json'], settings)).out).findings.find(
      (one: { check: string }) => one.check === 'clock',
    );
  const stray = await clock();
  assert.deepEqual([stray.state, /1 in instance\.seen_at/.test(stray.text)], ['warning', true], stray.text);
  own.exec(`update setting set value = '${ahead}' where name = 'last_write_probe'`);
  own.close();
  const back = await clock();
  assert.deepEqual([back.state, /went back/.test(back.text)], ['problem', true], back.text);
});

const SEAL_KEY = newSealKey();
const clockOff = (ms: number) => () => Date.now() + ms;

rule('clock 4', 'takes none from the others', async () => {
  await using postgres = await sharedPostgres();
  const location = { kind: 'postgresql', url: await postgres.createDatabase(), maxConnections: 2 } as const;
  await using opened = new AsyncDisposableStack();
  const open = async (offMs: number) => {
    const now = clockOff(offMs);
    const one = await openStore(location, sealerWith([SEAL_KEY]), now, { machineNow: now });
    opened.defer(() => one.close());
    return one;
  };
  const instances = [await open(0), await open(-HOUR), await open(HOUR), await open(YEAR)];
  const [right] = instances as [(typeof instances)[0]];
  await right.accounts.insert({ id: 'a', name: 'a', kind: 'standard', locale: 'en', createdAt: 0 });
  await right.issuers.claim(pairOf('x'));
  await right.orders.insert(order('o'));
  await right.certificates.insert(issued('c'));
  for (const [index, signer] of instances.entries()) {
    const lease = { accountId: 'a', orderId: 'o', like: 'c', id: `c${index}` };
    await dieSigning(right, lease, signer.sharedNow());
    for (const other of instances)
      assert.equal(await voidLostIssuances(other, Date.now, newId), 0, 'it is alive for all');
    const free = { ...right, sharedNow: () => right.sharedNow() + SIGNING_LEASE_MS + 1 };
    free.transaction = (work) => right.transaction((tx) => work({ ...tx, sharedNow: free.sharedNow }));
    assert.equal(await voidLostIssuances(free, Date.now, newId), 1, 'and ends for all');
  }
});

test('a step of the machine’s clock moves no lease before the next measurement either', async () => {
  await using postgres = await sharedPostgres();
  let off = 0;
  const now = () => Date.now() + off;
  const location = { kind: 'postgresql', url: await postgres.createDatabase(), maxConnections: 1 } as const;
  const one = await openStore(location, sealerWith([SEAL_KEY]), now, { machineNow: now });
  for (off of [YEAR, -HOUR, 0]) assert.ok(Math.abs(one.sharedNow() - Date.now()) < 5_000, `off by ${off}`);
  off = HOUR;
  assert.equal(Math.round((await one.measureClock()) / 10_000), HOUR / 10_000);
  await one.close();
});

rule('clock 6', 'stays 200 while clocks are wrong', async () => {
  await using postgres = await sharedPostgres();
  const RESEAL_DATABASE_URL = await postgres.createDatabase();
  const settings = { RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: '0', RESEAL_DATABASE_URL };
  const { config } = readConfig({ ...settings, RESEAL_DNS_SERVERS: await nameServer() });
  const lines: LogLine[] = [];
  const now = clockOff(-HOUR);
  const slow = await serve(config, { now, machineNow: now, log: (line) => void lines.push(line) });
  try {
    const warned = lines.flatMap((line) => (line.event === 'warning' && 'text' in line ? [line.text] : []));
    assert.ok(
      warned.some((text) => /3600 s behind the database’s/.test(text)),
      JSON.stringify(warned),
    );
    await using right = await openService(config, { now: Date.now, log: () => {} });
    await using _ = await announceInstance(right.app);
    const response = await fetch(`${slow.url}/readyz`);
    assert.equal(response.status, 200);
    const { data } = (await response.json()) as { data: unknown };
    const clock = { ahead_of_database_seconds: -3_600, instances_differ_by_seconds: 3_600, stray_times: 0 };
    assert.deepEqual(data, { status: 'ready', clock });
  } finally {
    await slow.stop();
  }
  assert.deepEqual((await app.call('GET', '/readyz')).body.data, { status: 'ready' }, 'nothing where all is well');
});
