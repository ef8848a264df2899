// Clocks that are wrong. A service whose clock is off by an hour, a day or a year works under load and is killed, with every
// kind of lease open: of signers, checks and senders, grants, lockouts, rates, lists, heartbeats. Then it is started with the
// right clock. Compromised keys must be revoked at once, and within a minute nothing may be stuck.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { strayTimes } from '../src/adapters/store/engine/times.ts';
import { latestAhead } from '../src/domain/clock.ts';
import { maxCheckDelay } from '../src/domain/validation/check-result.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../src/kernel/durations.ts';
import { type Answer, type Key, TestApp } from '../test/support/app.ts';
import { environmentFor, SETTINGS } from '../test/support/callback-app.ts';
import { authorization, type CloudKey, digest, newCloudKey, withCode } from '../test/support/cloud-keys.ts';
import { dieSigning } from '../test/support/dead-signer.ts';
import { csrFor, newOrder, type PlacedOrder } from '../test/support/orders.ts';
import { HOST, Outside } from '../test/support/outside.ts';
import { spawnReseal } from '../test/support/process.ts';
import { OWN_PRODUCT, productsFile } from '../test/support/products.ts';
import { OK, type Script } from '../test/support/receiver.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { type Service, type Settings, startService, withStore, withTables } from './service.ts';

const OFFSETS = { '+1 h': HOUR_MS, '-1 h': -HOUR_MS, '-1 d': -DAY_MS, '+1 y': 365 * DAY_MS } as const;

/** Needs no validation, so that it is signed whatever the clock says. */
const SIGNED = {
  ...{ ...OWN_PRODUCT, id: 'signed', kind: 'document_signing', names_may_change: 'none', csr: 'optional' },
  ...{ key_sources: ['caller', 'sign-cloud-csc'], allows_wildcard: false, dcv_methods: [], dcv_scopes: [] },
  ...{ keys: [{ type: 'p256' }, { type: 'p384' }], reuse_days: 0, term_days: 800 },
};
const SCHEDULE = Array.from({ length: 30 }, () => '1s').join();
const ORDERS = 8;
const COMPROMISED = 4;
const LOAD_MS = 2_500;
/** Bounds the callbacks that have to arrive within the minute, on a loaded machine too. */
const MAX_ACTS = 10;
/** Beyond the second of patience: a loaded machine. */
const AT_ONCE_MS = 15_000;
const PAUSE_MS = 250;
const HASHES = [digest('sha256', 'x')];
const BODY = { certificate: { csr: csrFor(), common_name: 'Acme Ltd', sign_hash: 'sha256' } };

interface World {
  readonly settings: Settings;
  readonly orders: readonly PlacedOrder[];
  /** For each round. */
  readonly compromised: readonly PlacedOrder[][];
  readonly granted: CloudKey;
  readonly locked: CloudKey;
  /** Hangs while the clock is wrong, so that leases of senders stay open. */
  readonly receiver: { isHanging: boolean };
}

interface ClockPlan {
  readonly rounds: number;
  readonly print: Print;
}

export async function wrongClocks(engine: EngineName, { rounds, print }: ClockPlan): Promise<string[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-clocks-'));
  await using outside = await Outside.open();
  await using database = await ENGINES[engine]();
  const hanging = { isHanging: true };
  const script: Script = (socket) => void (hanging.isHanging || socket.end(OK));
  const { port } = await outside.receiver({ script });
  const settings = {
    ...{ RESEAL_DATA_DIR: folder.path, RESEAL_PRODUCTS_FILE: productsFile(SIGNED), RESEAL_CALLBACK_SCHEDULE: SCHEDULE },
    ...{ ...(environmentFor(outside) as Settings), ...database.settings },
  };
  const offsets = Array.from({ length: rounds }, () => Object.entries(OFFSETS)).flat();
  const world = { ...(await prepare(settings, offsets.length, port)), receiver: hanging };
  const broken: string[] = [];
  for (const [round, [off, offset]] of offsets.entries()) {
    hanging.isHanging = true;
    const left = await workAndDie(world, round, offset);
    hanging.isHanging = false;
    const service = await startService(settings);
    try {
      const started = performance.now();
      const revokedMs = await revokeCompromised(service, world.compromised[round] ?? [], broken);
      const stuck = await untilNothingIsStuck(service, world, started);
      broken.push(...stuck.map((one) => `${engine}, clock ${off}: ${one}`));
      print(
        `${engine} ${off}: left ${left}; compromised keys revoked after ${revokedMs} ms; ` +
          `${stuck.length === 0 ? `all in order after ${Math.round(performance.now() - started)} ms` : stuck.join('; ')}`,
      );
    } finally {
      await service.process.end('SIGKILL', 'group');
    }
  }
  return [...broken, ...(await revokeKeyOfAll(world, engine, print))];
}

/** Orders, keys and settings, made by a service whose clock is right. */
async function prepare(settings: Settings, rounds: number, port: number): Promise<Omit<World, 'receiver'>> {
  await using app = new TestApp(settings.RESEAL_DATA_DIR ?? '');
  app.advance(Date.now() - app.now());
  await app.start(settings);
  const request = { product: 'signed', commonName: 'Acme Ltd' };
  const some = async (count: number, key: 'p256' | 'p384') => {
    const placed: PlacedOrder[] = [];
    while (placed.length < count) placed.push(await newOrder(app, { ...request, key }));
    return placed;
  };
  const orders = await some(ORDERS, 'p256');
  for (const { key } of orders) {
    await app.call('PUT', SETTINGS, { key, json: { url: `https://${HOST}:${port}/`, access_key: 'campaign' } });
  }
  const compromised: PlacedOrder[][] = [];
  while (compromised.length < rounds) compromised.push(await some(COMPROMISED, 'p384'));
  const [granted, locked] = [await newCloudKey(app), await newCloudKey(app)];
  return { settings, orders, compromised, granted, locked };
}

async function call(service: Service, method: string, path: string, key: Key, json?: unknown) {
  const headers = { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, 'Content-Type': 'application/json' };
  const request = {
    method,
    headers,
    signal: AbortSignal.timeout(AT_ONCE_MS),
    ...(json !== undefined && { body: JSON.stringify(json) }),
  };
  const response = await fetch(service.url + path, request).catch(() => undefined);
  const text = (await response?.text().catch(() => '')) ?? '';
  const waitSeconds = Number(response?.headers.get('retry-after') ?? 0);
  return { status: response?.status ?? 0, text, waitSeconds } satisfies Partial<Answer> & { waitSeconds: number };
}
const reissue = (service: Service, { id, key }: PlacedOrder) =>
  call(service, 'POST', `/openapi/v3/orders/${id}/reissue`, key, BODY);
const authorize = (service: Service, { id, key }: CloudKey, change = {}) =>
  call(service, 'POST', '/csc/v2/credentials/authorize', key, authorization(id, HASHES, change));

/** Everything that takes a lease, at once, until SIGKILL. Returns what was left, for people. */
async function workAndDie(world: World, round: number, offset: number): Promise<string> {
  const { settings, orders, granted, locked } = world;
  const preload = {
    NODE_OPTIONS: `--import=${new URL('shifted-clock.mjs', import.meta.url)}`,
    CAMPAIGN_CLOCK_MS: String(offset),
  };
  const service = await startService({ ...settings, ...preload });
  const end = performance.now() + LOAD_MS;
  const until = async (act: () => Promise<unknown>) => {
    for (let count = 0; count < MAX_ACTS && performance.now() < end; count += 1) await act();
  };
  const waits = orders.map(async ({ key }, index) => {
    const certificate = { csr: csrFor(), common_name: `w${round}-${index}.example.com`, sign_hash: 'sha256' };
    const placed = await call(service, 'POST', '/openapi/v3/orders/ssl-dv', key, { certificate });
    if (placed.status !== 200) return;
    const { id } = JSON.parse(placed.text).data;
    await until(() => call(service, 'PUT', `/openapi/v3/orders/${id}/dcv-completed`, key));
  });
  const wrong = async () => {
    for (let count = 0; count < 5; count += 1) await authorize(service, locked, withCode('not the code'));
  };
  const load = Promise.all([
    ...orders.map((order) => until(() => reissue(service, order))),
    ...waits,
    wrong(),
    authorize(service, granted),
  ]);
  await sleep(LOAD_MS);
  await service.process.end('SIGKILL', 'group');
  await load;
  // Signers that died at the worst moment, whenever the kill came. On PostgreSQL their leases follow the database.
  return await withStore(settings, async ({ store, newId }) => {
    const now = store.engine.hasClock ? Date.now() : Date.now() + offset;
    for (const { key, id: orderId, certificateId: like } of [...orders, ...(world.compromised[round] ?? [])]) {
      const found = await store.orders.findForReissue(key.accountId, orderId, []);
      const signing = await store.transaction((tx) => tx.orders.findForUpdate(key.accountId, orderId));
      if (signing?.signing) continue;
      const dying = {
        accountId: key.accountId,
        orderId,
        like: found?.current?.id ?? like,
        id: newId(),
      };
      await dieSigning(store, dying, now);
    }
    const stray = await withTables(settings, (db) => strayTimes(db, Date.now()));
    return stray.map(({ table, count }) => `${count} ${table}`).join(', ') || 'nothing ahead';
  });
}

async function revokeCompromised(service: Service, orders: readonly PlacedOrder[], broken: string[]): Promise<number> {
  const started = performance.now();
  const answers = await Promise.all(
    orders.map(({ key, certificateId }) =>
      call(service, 'POST', `/openapi/v3/certs/${certificateId}/revoke`, key, { reason: 'key_compromise' }),
    ),
  );
  for (const { status, text } of answers) if (status !== 200) broken.push(`a compromised key: ${status} ${text}`);
  return Math.round(performance.now() - started);
}

/** Returns what is still stuck a minute after the start. */
async function untilNothingIsStuck(service: Service, world: World, started: number): Promise<string[]> {
  const pending = new Set(await withTables(world.settings, pendingEvents));
  for (;;) {
    const stuck = [
      ...(await refused(service, world)),
      ...(await withTables(world.settings, (db) => leftovers(db, pending))),
    ];
    if (stuck.length === 0 || performance.now() - started > MINUTE_MS) {
      // Or the next round would lock it for longer.
      await withTables(world.settings, (db) =>
        db.updateTable('cloud_key').set({ wrong_codes: 0, locked_until: 0 }).execute(),
      );
      return stuck;
    }
    await sleep(PAUSE_MS);
  }
}

async function refused(service: Service, { orders, granted, locked }: World): Promise<string[]> {
  const bound = MINUTE_MS / 1_000;
  const asked = [
    ...orders.map(async (order) => ['a reissue', await reissue(service, order), 0] as const),
    (async () => ['a grant', await authorize(service, granted), 2] as const)(),
    (async () => ['a lockout', await authorize(service, locked), bound] as const)(),
  ];
  const answers = await Promise.all(asked);
  const isFine = (status: number, waitSeconds: number, most: number) =>
    status === 200 || (waitSeconds > 0 && waitSeconds <= most);
  return answers.flatMap(([what, { status, text, waitSeconds }, most]) =>
    isFine(status, waitSeconds, most) ? [] : [`${what}: ${status}, retry after ${waitSeconds}: ${text}`],
  );
}

const pendingEvents = async (db: Db): Promise<string[]> =>
  (await db.selectFrom('outbox').select('id').where('state', '=', 'pending').execute()).map(({ id }) => id);

/** `pending`: events that waited when the service was started; what follows makes new ones. */
async function leftovers(db: Db, pending: ReadonlySet<string>): Promise<string[]> {
  const now = Date.now();
  const stray = (await strayTimes(db, now)).map(({ table, column, count }) => `${count} in ${table}.${column}`);
  const unsent = (await pendingEvents(db)).filter((id) => pending.has(id));
  const waiting = await db.selectFrom('waiting_certificate').select(['due_at', 'tries']).execute();
  const late = waiting.filter(({ due_at, tries }) => due_at > latestAhead(now, maxCheckDelay(tries)));
  const lists = await db.selectFrom('crl').select('this_update').execute();
  const wrong = lists.filter(({ this_update: at }) => at > latestAhead(now, 0) || at < now - DAY_MS - HOUR_MS);
  const rates = await db
    .selectFrom('rate_limit')
    .select('key')
    .where('full_at', '>', now + HOUR_MS / 2)
    .execute();
  return [
    ...stray,
    ...(unsent.length > 0 ? [`${unsent.length} callbacks are not delivered`] : []),
    ...(late.length > 0 ? [`${late.length} certificates are not looked at`] : []),
    ...(wrong.length > 0 ? [`${wrong.length} lists are dated wrong`] : []),
    // A bucket is clamped by the next request, which asks for it here once.
    ...(rates.length > ORDERS * 4 ? [`${rates.length} rates are far ahead`] : []),
  ];
}

/** At the end, with a signer lost on every order a moment ago. */
async function revokeKeyOfAll({ settings, orders }: World, engine: EngineName, print: Print): Promise<string[]> {
  const fingerprint = await withStore(settings, async ({ store, newId }) => {
    for (const { key, id: orderId, certificateId: like } of orders) {
      const found = await store.orders.findForReissue(key.accountId, orderId, []);
      const dying = {
        accountId: key.accountId,
        orderId,
        like: found?.current?.id ?? like,
        id: newId(),
      };
      const held = await store.transaction((tx) => tx.orders.findForUpdate(key.accountId, orderId));
      if (!held?.signing) await dieSigning(store, dying, Date.now() + HOUR_MS);
    }
    const [first] = orders;
    const one = first && (await store.certificates.find(first.key.accountId, first.certificateId));
    return one?.publicKey.fingerprint ?? '';
  });
  const started = performance.now();
  const { code, out, err } = await spawnReseal(['cert', 'revoke-key', fingerprint, '--yes', '--json'], settings);
  const ms = Math.round(performance.now() - started);
  if (code !== 0) return [`${engine}: revoke-key ended with ${code}: ${err} ${out}`];
  const left = await withTables(settings, (db) =>
    db
      .selectFrom('certificate')
      .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
      .select('certificate.id')
      .where('key_fingerprint', '=', fingerprint)
      .where('state', 'in', ['issued', 'voided'])
      .where('revoked_at', 'is', null)
      .execute(),
  );
  print(`${engine}: revoke-key revoked ${JSON.parse(out).certificates?.length ?? '?'} certificates in ${ms} ms`);
  return left.length === 0 ? [] : [`${engine}: revoke-key left ${left.length} certificates unrevoked`];
}

export const clocks: Campaign = {
  about:
    'on each engine, N times each: a service whose clock is off by +1 h, -1 h, -1 d, +1 y is killed; nothing stays stuck',
  defaultN: 3,
  async run(n, print) {
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      broken.push(...(await wrongClocks(engine, { rounds: n, print })));
    }
    return broken;
  },
};
