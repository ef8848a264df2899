// A clock that was wrong, on both engines: whatever kind of lease, next attempt, lock or rate a dead process has left, an
// hour or a year ahead or behind, nothing waits for it longer than a minute once the clock is right. Every column with such
// a time must be among those that are shown here.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { sql } from 'kysely';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import type { Db } from '../../src/adapters/store/engine/schema.ts';
import { TIMES } from '../../src/adapters/store/engine/times.ts';
import { engineAt } from '../../src/adapters/store/store.ts';
import { readConfig } from '../../src/config/config.ts';
import { NONCE_MS } from '../../src/domain/acme/nonce.ts';
import { GRANT_MS } from '../../src/domain/cloud-keys/cloud-key.ts';
import { notifyExpiry } from '../../src/usecases/callbacks/notify-expiry.ts';
import { repairSchedules } from '../../src/usecases/callbacks/repair-schedules.ts';
import { retentionChores } from '../../src/wiring/retention.ts';
import { leaveAnswer } from '../support/acme-orders.ts';
import { newFolder, newUsedFolder, TestApp } from '../support/app.ts';
import { dieSigning } from '../support/dead-signer.ts';
import { waitFor } from '../support/deliveries.ts';
import { actorFor, answers, openDeliveryWorld } from '../support/dispatcher.ts';
import { bothEngines, type TestEngine } from '../support/engines.ts';
import { LEFT_LOGINS } from '../support/left-sessions.ts';
import { body, newOrder, type PlacedOrder, reissue } from '../support/orders.ts';
import { EVERY_BYTE, issued, order as orderRecord, preparation } from '../support/records.ts';

const HOUR = 3_600_000;
const OFFSETS = {
  'an hour ahead': HOUR,
  'an hour behind': -HOUR,
  'a day behind': -24 * HOUR,
  'a year ahead': 8_760 * HOUR,
};
const RATE = { burst: 2, everyMs: 6_000 };
const { schedule } = readConfig({}).config.callbacks;

type Time = { [Table in keyof typeof TIMES]: `${Table}.${keyof (typeof TIMES)[Table] & string}` }[keyof typeof TIMES];
interface World {
  readonly app: TestApp;
  readonly db: Db;
  /** As the clock that was off would have written it. */
  shift(column: Time, where: string): Promise<void>;
}
/** Leaves something behind; returns what must work once the clock is right and the chores have run. */
type Leave = (world: World) => Promise<() => Promise<void>>;

let counted = 0;
/** Each clock that was off has a cursor of its own. */
let thresholds = 30;
const unique = (): string => `${++counted}`.padStart(6, '0');

async function withDeadSigner({ app, shift }: World): Promise<PlacedOrder> {
  const order = await newOrder(app);
  const { accountId } = order.key;
  const dying = {
    accountId,
    orderId: order.id,
    like: order.certificateId,
    id: app.app.newId(),
  };
  await dieSigning(app.app.store, dying, app.now());
  await shift('signing.lease_ends_at', `order_id = '${order.id}'`);
  return order;
}

const LEFT: Readonly<Partial<Record<Time, Leave>>> = {
  async 'signing.lease_ends_at'(world) {
    const { app } = world;
    const [one, two] = [await withDeadSigner(world), await withDeadSigner(world)];
    return async () => {
      const answer = await reissue(app, one, body());
      assert.equal(answer.status, 200, answer.text);
      const revoked = await app.call('POST', `/openapi/v3/certs/${two.certificateId}/revoke`, { key: two.key });
      assert.equal(revoked.status, 200, revoked.text);
    };
  },
  async 'waiting_certificate.due_at'({ app, shift }) {
    const { store } = app.app;
    const order = await newOrder(app, { vouches: false, commonName: `waits${unique()}.example.com` });
    const found = async () => await store.waiting.find(order.key.accountId, order.certificateId);
    const { tries = -1 } = (await found()) ?? {};
    await store.waiting.claim(Number.MAX_SAFE_INTEGER, app.now() + 120_000, 1_000);
    await shift('waiting_certificate.due_at', `certificate_id = '${order.certificateId}'`);
    return async () => {
      await app.issuance.proveDomains.proveDue();
      await waitFor('it is checked', async () => ((await found())?.tries ?? 0) > tries);
    };
  },
  async 'signing_grant.expires_at'({ app, shift, db }) {
    const { store, newId } = app.app;
    const { key } = await newOrder(app);
    const { accountId } = key;
    const keyId = await newCloudKey(app, accountId);
    const terms = { accountId, keyId, hashes: ['x'], wrappedKey: 'x', certificateId: null };
    const tokenHash = newId();
    await store.signingGrants.insert({ ...terms, tokenHash, expiresAt: app.now() + GRANT_MS });
    await shift('signing_grant.expires_at', `token_hash = '${tokenHash}'`);
    return async () => {
      const left = await db
        .selectFrom('signing_grant')
        .select('token_hash')
        .where('token_hash', '=', tokenHash)
        .execute();
      assert.deepEqual(left, [], 'it was deleted');
      await store.signingGrants.insert({ ...terms, tokenHash, expiresAt: app.now() + GRANT_MS });
      assert.ok(await store.signingGrants.take(accountId, keyId, tokenHash, app.now()));
    };
  },
  ...LEFT_LOGINS,
  async 'acme_used_nonce.expires_at'({ app, shift, db }) {
    const { usedNonces, sharedNow } = app.app.store;
    const nonce = { id: `nonce${unique()}`, expiresAt: sharedNow() + NONCE_MS };
    assert.ok(await usedNonces.spend(nonce));
    await shift('acme_used_nonce.expires_at', `id = '${nonce.id}'`);
    return async () => {
      // No nonce of that time is accepted any more, whether or not its use is remembered.
      const left = await db.selectFrom('acme_used_nonce').select('id').where('id', '=', nonce.id).execute();
      assert.deepEqual(left, [], 'it was deleted');
    };
  },
  'acme_authorization.due_at': ({ app, shift }) =>
    leaveAnswer(app, (id) => shift('acme_authorization.due_at', `id = '${id}'`)),
  async 'cloud_key.locked_until'({ app, shift }) {
    const { store } = app.app;
    const { accountId } = (await newOrder(app)).key;
    const keyId = await newCloudKey(app, accountId);
    const attempt = (at = app.now()) => store.transaction((tx) => tx.cloudKeys.beginAttempt(accountId, keyId, at));
    for (let count = 0; count < 5; count += 1) assert.equal((await attempt())?.kind, 'allowed');
    await shift('cloud_key.locked_until', `id = '${keyId}'`);
    return async () => {
      const first = await attempt();
      if (first?.kind === 'locked') {
        assert.equal(first.until, app.now() + 60_000, 'its length from now: shortened, not dropped');
        assert.equal((await attempt(app.now() + 59_999))?.kind, 'locked');
      }
      assert.equal((await attempt(app.now() + 60_000 * (first?.kind === 'locked' ? 1 : 2)))?.kind, 'allowed');
    };
  },
  async 'rate_limit.full_at'({ app, shift }) {
    const key = `rate ${unique()}`;
    const take = (at = app.now()) => app.app.store.rateLimits.take(key, RATE, at);
    while ((await take()) === 0) if (++counted > 1_000_000) assert.fail('it never ends');
    await shift('rate_limit.full_at', `key = '${key}'`);
    return async () => {
      const waitMs = await take();
      assert.ok(waitMs <= RATE.everyMs, String(waitMs));
      assert.equal(await take(app.now() + waitMs), 0);
    };
  },
  async 'crl.this_update'({ app, shift }) {
    const order = await newOrder(app);
    await app.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key });
    await shift('crl.this_update', 'true');
    const { crls } = app.app.store;
    const before = await crls.heads();
    return async () => {
      await app.issuance.crls.publishDue();
      for (const head of await crls.heads()) {
        const old = before.find(({ issuerId, shard }) => issuerId === head.issuerId && shard === head.shard);
        const age = app.now() - head.thisUpdate;
        assert.ok(age >= 0 && age <= 24 * HOUR, `dated ${age} ms ago`);
        assert.ok(head.number >= (old?.number ?? 0), 'numbers never fall');
      }
    };
  },
  async 'expiry_notice.written_through'({ app, shift }) {
    const { accountId } = await app.newKey();
    const { store, newId } = app.app;
    const settings = { url: 'https://hooks.example.com/', access_key: 'x', enabled_actions: ['order:expiring'] };
    await app.callbacks.callbacks.save(actorFor(accountId), settings);
    thresholds += 10;
    const days = thresholds;
    const runAt = (at: number) => notifyExpiry({ store, newId, now: () => at, noticeDays: [days], onNotice() {} });
    await runAt(app.now());
    await shift('expiry_notice.written_through', `days = ${days}`);
    const [orderId, id] = [newId(), newId()];
    await store.orders.insert(orderRecord(orderId, { accountId, currentCertificateId: id }));
    const [{ id: issuerId = '' } = {}] = await store.issuers.listPublic();
    const ends = { issuerId, notAfter: app.now() + days * 24 * HOUR + 2 * HOUR };
    await store.certificates.insert(issued(id, { accountId, orderId, version: 1, preparation: preparation(id, ends) }));
    return async () => {
      assert.equal(await runAt(app.now() + 3 * HOUR), 1);
      assert.equal(await runAt(app.now() + 4 * HOUR), 0);
    };
  },
  async 'instance.seen_at'({ app, shift }) {
    const { sealing } = app.app.store;
    const id = `lost ${unique()}`;
    await sealing.announce({ id, name: id });
    await shift('instance.seen_at', `id = '${id}'`);
    return async () => assert.ok((await sealing.liveInstances()).every((one) => one.id !== id));
  },
  async 'credential.last_used_at'({ app, shift, db }) {
    const key = await app.newKey();
    const used = async () =>
      Number(
        (await db.selectFrom('credential').select('last_used_at').where('key_id', '=', key.keyId).execute())[0]
          ?.last_used_at,
      );
    await app.call('GET', '/openapi/v3/account', { key });
    await waitFor('its use is noted', used);
    await shift('credential.last_used_at', `key_id = '${key.keyId}'`);
    return async () => {
      await app.call('GET', '/openapi/v3/account', { key });
      await waitFor('its use is noted again', async () => (await used()) === app.now());
    };
  },
};

/** Of the delivery queue, whose clock only its own test moves. */
const LEFT_IN_QUEUE = [
  'outbox.due_at',
  'callback_lane.due_at',
  'callback_lane.closed_until',
  'callback_lane.in_order_until',
];

async function newCloudKey(app: TestApp, accountId: string): Promise<string> {
  const id = app.app.newId();
  const publicKey = { type: 'p256', bits: 256, spki: EVERY_BYTE, fingerprint: id } as const;
  const fresh = { wrappedKey: 'x', hint: null, wrongCodes: 0, lockedUntil: 0, createdAt: app.now(), destroyedAt: null };
  await app.app.store.cloudKeys.insert({ id, accountId, publicKey, ...fresh });
  return id;
}

test('every time that a wrong clock could leave behind is shown here', () => {
  const judged = Object.entries(TIMES).flatMap(([table, columns]) =>
    Object.entries<unknown>(columns)
      .filter(([, kind]) => kind !== 'fact' && kind !== 'number')
      .map(([column]) => `${table}.${column}`),
  );
  assert.deepEqual([...Object.keys(LEFT), ...LEFT_IN_QUEUE].sort(), judged.sort());
});

const NUMERIC = {
  sqlite: `select m.name as t, c.name as c from sqlite_master m, pragma_table_info(m.name) c
    where m.type = 'table' and c.type = 'bigint'`,
  postgresql: `select table_name as t, column_name as c from information_schema.columns
    where table_schema = 'public' and data_type in ('bigint', 'integer', 'timestamp with time zone')`,
} as const;

async function openWorld({ name, newLocation }: TestEngine) {
  const app = new TestApp(name === 'sqlite' ? await newUsedFolder() : newFolder());
  const location =
    name === 'sqlite' ? ({ kind: 'sqlite', file: `${app.folder}/reseal.db` } as const) : await newLocation();
  await app.start(location.kind === 'postgresql' ? { RESEAL_DATABASE_URL: location.url } : {});
  const db = openEngine(engineAt(location), () => {});
  const chores = async () => {
    await app.issuance.sweep();
    for (const { run } of retentionChores(app.app, readConfig({}).config)) await run();
  };
  return {
    ...{ app, db, chores },
    async [Symbol.asyncDispose]() {
      await db.destroy();
      await app.stop();
    },
  };
}

for (const engine of await bothEngines()) {
  describe(engine.name, async () => {
    const { app, db, chores, ...world } = await openWorld(engine);
    after(() => world[Symbol.asyncDispose]());

    test('each numeric column of the database is classified', async () => {
      const { rows } = await sql.raw<{ t: keyof typeof TIMES; c: string }>(NUMERIC[engine.name]).execute(db);
      const found = rows.map(({ t, c }) => `${t}.${c}`);
      const known = Object.entries(TIMES).flatMap(([table, columns]) =>
        Object.keys(columns).map((one) => `${table}.${one}`),
      );
      assert.deepEqual(found.filter((one) => !one.startsWith('sqlite_')).sort(), known.sort());
    });

    for (const [off, offset] of Object.entries(OFFSETS)) {
      test(`what processes left whose clock was ${off}`, async (context) => {
        const shift: World['shift'] = async (column, where) => {
          const [table = '', name = ''] = column.split('.');
          const { rows } = await sql`update ${sql.table(table)} set ${sql.ref(name)} = ${sql.ref(name)} + ${offset}
            where ${sql.raw(where)} and ${sql.ref(name)} is not null returning 1`.execute(db);
          assert.ok(rows.length > 0, `${column} was not set`);
        };
        const left = new Map<string, () => Promise<void>>();
        for (const [column, leave] of Object.entries(LEFT)) left.set(column, await leave({ app, db, shift }));
        await chores();
        for (const [column, works] of left) await context.test(column, works);
      });
    }

    test('keys that were compromised are revoked at once, past signers that were lost at any time', async () => {
      const orders: PlacedOrder[] = [];
      for (const offset of [...Object.values(OFFSETS), 0]) {
        const shift: World['shift'] = async (_, where) => {
          await sql`update signing set lease_ends_at = lease_ends_at + ${offset} where ${sql.raw(where)}`.execute(db);
        };
        orders.push(await withDeadSigner({ app, db, shift }));
      }
      const { store } = app.app;
      const { accountId } = orders[0]!.key;
      const { publicKey } = (await store.certificates.find(accountId, orders[0]!.certificateId))!;
      const revoked = new Set((await app.issuance.revokeKey(publicKey.fingerprint)).map((one) => one.certificateId));
      for (const { certificateId } of orders) assert.ok(revoked.has(certificateId));
      const serials = await db.selectFrom('signing').select('serial').execute();
      assert.deepEqual(serials, [], 'the signers have lost their leases, and what they wrote down is revoked as well');
      const voided = await store.certificates.listVoided({ limit: 100 });
      assert.deepEqual(
        voided.filter((one) => orders.some(({ id }) => id === one.orderId)),
        [],
      );
    });

    for (const [off, offset] of Object.entries(OFFSETS)) {
      test(`deliveries that a sender left whose clock was ${off}`, async () => {
        await using queue = await openDeliveryWorld(await engine.newLocation());
        const repair = repairSchedules(queue.store, queue.now, schedule);
        for (const id of ['leased', 'failing', 'ranged', 'late']) await queue.account(id);
        await queue.emit('late');
        await queue.run(answers(503));
        queue.advance(offset);
        await queue.emit('leased');
        await queue.dies();
        await queue.emit('failing', 9);
        await queue.run(answers(503));
        await queue.emit('ranged', 2);
        await queue.drain('ranged', answers(200));
        await queue.deliveries.resendRange(actorFor('ranged'), { state: 'delivered' }, { limit: 10 });
        await queue.dies();
        queue.advance(-offset);
        // Its lane is due for another event, which must not hide the one that was leased.
        await queue.emit('leased');
        await repair();
        queue.advance(60_000);
        await queue.drain('leased', answers(200));
        await queue.drain('failing', answers(200));
        await queue.drain('ranged', answers(200));
        await queue.drain('late', answers(200));
      });
    }
  });
}
