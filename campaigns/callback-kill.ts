// At-least-once delivery under SIGKILL. Orders are reissued concurrently while instances are killed at random and
// restarted, and the receiver fails three times in ten: with an error status, or by closing the connection after reading.
// In the end every certificate has one event, every event was accepted at least once and refers to an existing
// certificate, and duplicates are byte-identical. The leases of killed instances are expired instead of awaited; those of
// live instances expire with them, so two instances occasionally send the same event.
import { randomInt } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { readConfig } from '../src/config/config.ts';
import { Refusal } from '../src/domain/errors.ts';
import { openCallbacks } from '../src/wiring/callbacks.ts';
import { environmentFor } from '../test/support/callback-app.ts';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import { HOST, Outside } from '../test/support/outside.ts';
import type { Script } from '../test/support/receiver.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { fraction } from './random.ts';
import { placeOrders, ReissueClient } from './reissues.ts';
import { type Service, type Settings, startService, withStore, withTables } from './service.ts';
import { kill, victimOf, workersFor } from './victims.ts';

interface CallbackKillPlan {
  readonly certificates: number;
  readonly kills: number;
  readonly instances: number;
  /** Of each instance, as in reissue-kill. */
  readonly workers: number;
  /** Seeds the timing of the kills. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface CallbackKillReport {
  readonly broken: string[];
  kills: number;
  /** Acknowledged certificates; more may have been issued. */
  acknowledged: number;
  issued: number;
  events: number;
  /** Callbacks that reached the receiver, accepted or not. */
  received: number;
  refused: number;
  /** Accepted more than once. */
  duplicates: number;
}

const ORDERS = 8;
const WRITERS_EACH = 2;
const FAILURES = 0.3;
const SETTLE_MS = 180_000;
const STANDSTILL_MS = 60_000;
const PAUSE_MS = 100;
const MAX_TRIES = 20;
const POWER_CUT_EVERY = 5;
const BODY = JSON.stringify(body());
/** Short delays, and so many that thirty consecutive failures must be a bug. */
const SCHEDULE = Array.from({ length: 30 }, (_, index) => `${Math.min(100 * (index + 1), 1_000)}ms`).join();

/** What the receiver got, by webhook-id: the bodies, and how often each was accepted. */
class Inbox {
  readonly bodies = new Map<string, Set<string>>();
  readonly accepted = new Map<string, number>();
  received = 0;
  refused = 0;

  readonly script: Script = (socket, request) => {
    const [head = '', text = ''] = request.split('\r\n\r\n', 2);
    const id = /^webhook-id: (.+)$/im.exec(head)?.[1]?.trim() ?? 'none';
    this.received += 1;
    this.bodies.set(id, (this.bodies.get(id) ?? new Set()).add(text));
    const luck = Math.random();
    if (luck >= FAILURES) {
      this.accepted.set(id, (this.accepted.get(id) ?? 0) + 1);
      return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    }
    this.refused += 1;
    if (luck < FAILURES / 3) socket.destroy();
    else socket.end(`HTTP/1.1 ${luck < (2 * FAILURES) / 3 ? 500 : 429} No\r\nContent-Length: 0\r\n\r\n`);
  };
}

export async function killDuringCallbacks(engine: EngineName, plan: CallbackKillPlan): Promise<CallbackKillReport> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-callback-kill-'));
  await using database = await ENGINES[engine]();
  await using outside = await Outside.open();
  const inbox = new Inbox();
  const receiver = await outside.receiver({ script: inbox.script });
  const settings = {
    ...{ RESEAL_DATA_DIR: folder.path, ...database.settings, RESEAL_CALLBACK_SCHEDULE: SCHEDULE },
    ...(environmentFor(outside) as Settings),
  };
  const orders = await placeOrders(settings, ORDERS);
  await subscribe(settings, orders, `https://${HOST}:${receiver.port}/`);
  const report: CallbackKillReport = {
    ...{ broken: [], kills: 0, acknowledged: 0, issued: 0, events: 0, received: 0, refused: 0, duplicates: 0 },
  };
  const start = () => startService(settings, undefined, ['--workers', String(plan.workers)]);
  const services = await Promise.all(Array.from({ length: plan.instances }, start));
  try {
    const writing = { isDone: false };
    const killing = killAtRandom({ services, start, settings, plan, report, writing, database });
    await Promise.all([reissueUntil(services, orders, plan, report), killing]).finally(() => {
      writing.isDone = true;
    });
    await withTables(settings, expireLeases);
    await untilSettled(settings, plan.print);
    report.broken.push(...(await withTables(settings, (db) => judge(db, inbox, orders, report))));
  } finally {
    await Promise.all(services.map((service) => kill(service, 'everything', '')));
  }
  return report;
}

export async function subscribe(settings: Settings, orders: readonly PlacedOrder[], url: string): Promise<void> {
  await withStore(settings, async (app) => {
    const { callbacks } = openCallbacks(app, readConfig(settings).config, Date.now);
    for (const { key } of orders) {
      const by = { accountId: key.accountId, actor: 'cli', requestId: null };
      await callbacks.save(by, { url, access_key: 'campaign' });
    }
  });
}

/** The item of a lane; lanes share the items round-robin. */
function at<T>(items: readonly T[], lane: number): T {
  const item = items[lane % items.length];
  if (item === undefined) throw new Error('there are no items to share');
  return item;
}

async function reissueUntil(
  services: readonly Service[],
  orders: readonly PlacedOrder[],
  { certificates, kills }: CallbackKillPlan,
  report: CallbackKillReport,
): Promise<void> {
  // While one instance is down the others continue, but wait before they outrun the remaining kills.
  const isAhead = () => report.kills < kills && report.acknowledged >= ((report.kills + 1) / kills) * certificates;
  using client = new ReissueClient(ORDERS * WRITERS_EACH);
  let lastAt = performance.now();
  const writer = async (lane: number) => {
    while (report.acknowledged < certificates || report.kills < kills) {
      if (performance.now() - lastAt > STANDSTILL_MS) throw new Error('no reissue is answered any more');
      if (isAhead()) {
        await sleep(PAUSE_MS / 10);
        continue;
      }
      const answer = await client.reissue(at(services, lane).url, at(orders, lane), BODY);
      // In doubt, or refused because of a dead signer's lease: issued certificates are counted at the end.
      if (answer?.status !== 200) await sleep(PAUSE_MS);
      else {
        report.acknowledged += 1;
        lastAt = performance.now();
      }
    }
  };
  await Promise.all(Array.from({ length: ORDERS * WRITERS_EACH }, (_, lane) => writer(lane)));
}

/** Expires all leases, instead of waiting for those of killed instances. */
async function expireLeases(db: Db): Promise<void> {
  const signings = db.updateTable('signing').set({ lease_ends_at: 1 });
  const events = db.updateTable('outbox').set({ due_at: 1 }).where('lease', 'is not', null);
  const lanes = db.updateTable('callback_lane').set({ due_at: 1 });
  for (const change of [signings, events, lanes]) {
    for (let tries = 1; ; tries += 1) {
      try {
        await change.execute();
        break;
      } catch (error) {
        // Updates many rows in no order next to running instances: retry after a deadlock.
        if (tries === MAX_TRIES || !(error instanceof Refusal)) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }
}

interface Killing {
  readonly services: Service[];
  readonly start: () => Promise<Service>;
  readonly settings: Settings;
  readonly plan: CallbackKillPlan;
  readonly report: CallbackKillReport;
  readonly writing: { readonly isDone: boolean };
  readonly database: { kill?(): Promise<void>; start?(): Promise<void> };
}

async function killAtRandom({ services, start, settings, plan, report, writing, database }: Killing): Promise<void> {
  const { kills, certificates, seed, print } = plan;
  for (let round = 1; round <= kills; round += 1) {
    // Spread over the whole run.
    const threshold = Math.floor(((round - 1 + fraction(`${seed} ${round}`)) / kills) * certificates);
    while (report.acknowledged < threshold && !writing.isDone) await sleep(1);
    await sleep(fraction(`${seed} ${round} delay`) * 20);
    const index = Math.floor(fraction(`${seed} ${round} instance`) * services.length);
    const victim = victimOf(plan.workers, `${seed} ${round}`);
    // Every few rounds the database is killed too, under the processes that keep running.
    const isPowerCut = database.kill !== undefined && round % POWER_CUT_EVERY === 0;
    const isOver = kill(at(services, index), victim, `${seed} ${round}`);
    await Promise.all([isOver, isPowerCut && database.kill?.()]);
    if (isPowerCut) await database.start?.();
    await withTables(settings, expireLeases);
    if (await isOver) services[index] = await start();
    report.kills += 1;
    if (round % 10 === 0 || kills < 10)
      print(
        `${round}/${kills}: killed ${victim}${isPowerCut ? ' with the database' : ''} after ${report.acknowledged} certificates`,
      );
  }
}

async function untilSettled(settings: Settings, print: Print): Promise<void> {
  await withTables(settings, async (db) => {
    for (const end = performance.now() + SETTLE_MS; performance.now() < end; await sleep(PAUSE_MS)) {
      const pending = await db.selectFrom('outbox').select('id').where('state', '=', 'pending').limit(1).execute();
      if (pending.length === 0) return;
    }
    print('some events are still pending');
  });
}

async function judge(
  db: Db,
  inbox: Inbox,
  orders: readonly PlacedOrder[],
  report: CallbackKillReport,
): Promise<string[]> {
  const broken: string[] = [];
  // Events of certificates issued before the callback was configured are suppressed; they do not count.
  const before = new Set(orders.map(({ certificateId }) => certificateId));
  const all = await db.selectFrom('certificate').select(['id', 'order_id']).where('state', '=', 'issued').execute();
  const issued = new Map(all.filter(({ id }) => !before.has(id)).map((one) => [one.id, one]));
  const rows = await db.selectFrom('outbox').select(['id', 'certificate_id', 'state', 'body']).execute();
  const events = rows.filter(({ certificate_id }) => !before.has(certificate_id));
  const announced = new Set(events.map(({ certificate_id }) => certificate_id));
  for (const { id } of issued.values()) if (!announced.has(id)) broken.push(`${id} has no event`);
  if (announced.size !== events.length) broken.push('a certificate has two events');
  for (const { id, state, body, certificate_id } of events) {
    if (state !== 'delivered') broken.push(`${id} is ${state}`);
    if (!inbox.accepted.has(id)) broken.push(`${id} never arrived`);
    if (!issued.has(certificate_id)) broken.push(`${id} announces ${certificate_id}, which does not exist`);
    const bodies = inbox.bodies.get(id);
    if (bodies && (bodies.size > 1 || !bodies.has(body))) broken.push(`${id} arrived with ${bodies.size} bodies`);
  }
  const known = new Set(events.map(({ id }) => id));
  for (const id of inbox.bodies.keys()) if (!known.has(id)) broken.push(`${id} arrived, but is unknown`);
  Object.assign(report, { issued: issued.size, events: events.length });
  Object.assign(report, { received: inbox.received, refused: inbox.refused });
  report.duplicates = [...inbox.accepted.values()].filter((count) => count > 1).length;
  return broken;
}

/** Without workers: SQLite in one process, PostgreSQL shared by three. */
export const CALLBACK_KILL_INSTANCES: Readonly<Record<EngineName, number>> = { SQLite: 1, PostgreSQL: 3 };
const CERTIFICATES_PER_KILL = 50;

export const callbackKill: Campaign = {
  about: `N kills on each engine while N×${CERTIFICATES_PER_KILL} certificates call back to a failing receiver: every event arrives`,
  defaultN: 100,
  async run(n, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const [engine, instancesAlone] of Object.entries(CALLBACK_KILL_INSTANCES) as [EngineName, number][]) {
      const workers = workersFor(engine);
      const instances = workers > 0 ? 1 : instancesAlone;
      const plan = { certificates: n * CERTIFICATES_PER_KILL, kills: n, instances, workers, seed, print };
      const { broken: ours, ...counts } = await killDuringCallbacks(engine, plan);
      print(`${engine}, ${instances} instances, ${workers} workers: ${JSON.stringify(counts)}`);
      broken.push(...ours.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
